// From an operation to the axes, attributes and inputs of its case: the builders of
// case_operation.h, backwards.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "attn/host_tensor.h"
#include "attn/operation.h"

namespace attn::golden {

// Nothing is judged: what an operation has is written, whether or not it belongs there.
struct CaseDraft {
  nlohmann::json axes = nlohmann::json::object();
  nlohmann::json attrs = nlohmann::json::object();
  std::map<std::string, HostTensor> inputs;
  bool heads_first = false;  // caches of K and V lie as HND

  // An axis that the tensors of an invalid operation make negative is 0.
  void axis(const char* name, std::int64_t size);
  void input(const std::string& name, const TensorView& view);  // nothing when it is absent
};

// Throws Error for what no case file can say.
CaseDraft draft_of(const Operation& operation);

// Its parts: one an operation, by subject.
void draft(const AttentionOp& op, CaseDraft& draft);
void draft(const DifferentialOp& op, CaseDraft& draft);
void draft(const MlaOp& op, CaseDraft& draft);
void draft(const MlaSparseOp& op, CaseDraft& draft);
void draft(const IndexerOp& op, CaseDraft& draft);
void draft(const MergeStatesOp& op, CaseDraft& draft);
void draft(const CacheWriteOp& op, CaseDraft& draft);
void draft(const MlaCacheWriteOp& op, CaseDraft& draft);

// Keys and values of attention and differential, with kv_layout, block_size, kv_cache_layout,
// kv_cache_dtype.
void draft_kv(const KvCacheView& kv, CaseDraft& draft);

// Last element of starts of requests, when there is one; else `fallback`.
std::int64_t last_start(const TensorView& starts, std::int64_t fallback);

// Attribute exec, when anything is asked.
void draft_exec(const ExecSpec& exec, CaseDraft& draft);

// What kv_cache_dtype a cache of one stored type has. Throws Error when there is none.
std::string cache_dtype_of(KvEncoding encoding, const TensorView& key, const TensorView& value);

}  // namespace attn::golden
