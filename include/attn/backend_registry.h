// vLLM's registries of attention backends: members in order, their class paths, overrides.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

enum class RegistryKind { kAttention, kMamba };

// One of AttentionBackendEnum and MambaAttentionBackendEnum. Errors that vLLM raises are VllmError.
class BackendRegistry {
 public:
  struct Member {
    std::string name;
    std::optional<std::string> value;  // the default path; none for CUSTOM
  };

  explicit BackendRegistry(RegistryKind kind);  // with vLLM's members

  const std::vector<Member>& members() const { return members_; }
  std::string_view enum_name() const;                // "AttentionBackendEnum"
  std::string printed(std::string_view name) const;  // "AttentionBackendEnum.FLASH_ATTN"

  bool contains(std::string_view name) const { return find(name) != nullptr; }
  // Throws when there is no such member; case counts.
  const Member& at(std::string_view name) const;
  // The member with this value, as the enum's lookup by value finds it: the last one registered
  // without a path hides those before it.
  const Member& by_value(std::string_view value) const;

  bool is_overridden(std::string_view name) const;
  // The override, else the default; throws when it is empty or none.
  std::string path(std::string_view name) const;
  std::string module(std::string_view name) const;  // the path without the last dotted part
  // What asking for the class raises; nothing when it can be imported. Only the modules of vLLM's
  // default paths exist, without NO_ATTENTION's.
  void expect_class(std::string_view name) const;

  void override_path(std::string_view name, std::string class_path);
  void clear_override(std::string_view name);  // no error when there is none

  // Appends a member. An empty path registers the name only.
  void add(std::string_view name, std::string class_path);

 private:
  const Member* find(std::string_view name) const;

  RegistryKind kind_;
  std::vector<Member> members_;
  std::map<std::string, std::string, std::less<>> overrides_;
};

}  // namespace attn
