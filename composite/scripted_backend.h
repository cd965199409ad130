// Backends that do what a description says and write down how they are called: the children of
// composites in tables.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "attn/attention_backend.h"
#include "core/child_description.h"

namespace attn {

// Calls that scripted backends saw, in the tables' own form.
class CallLog {
 public:
  void add(nlohmann::json call) { calls_.push_back(std::move(call)); }
  // The calls since the last time.
  nlohmann::json take();

 private:
  nlohmann::json calls_ = nlohmann::json::array();
};

// `role` is how the log calls the backend. It keeps no reference to the log when that is null.
AttentionBackendPtr scripted_backend(ChildDescription description, std::string role,
                                     std::shared_ptr<CallLog> log);

// What a scripted builder made.
class ScriptedMetadata final : public AttentionMetadata {
 public:
  ScriptedMetadata(const AttentionBackend& backend, std::string role,
                   const CommonAttentionMetadata& batch)
      : backend_(backend), role_(std::move(role)), address_(&batch), batch_(batch) {}

  const AttentionBackend& backend() const override { return backend_; }
  const std::string& role() const { return role_; }
  bool same_as(const CommonAttentionMetadata& batch) const { return address_ == &batch; }
  const CommonAttentionMetadata& batch() const { return batch_; }  // as the builder saw it

 private:
  const AttentionBackend& backend_;
  std::string role_;
  const CommonAttentionMetadata* address_;  // only compared
  CommonAttentionMetadata batch_;
};

struct NamedWorkspace final : WorkspaceBuffer {
  explicit NamedWorkspace(std::string text) : name(std::move(text)) {}
  std::string name;
};

// The two optional scales of a forward call, known by their addresses.
TensorView named_scale(const std::string& name);  // "scale", "block_scale"; Error otherwise

}  // namespace attn
