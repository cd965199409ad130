// Scripted backends for tests of composites: a description in JSON, with what every child of a
// composite must have filled in.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "composite/scripted_backend.h"
#include "core/strict_json.h"

namespace attn {

inline AttentionBackendPtr scripted_child(const std::string& name,
                                          const std::shared_ptr<CallLog>& log,
                                          nlohmann::json members = nlohmann::json::object()) {
  members["name"] = name;
  members["module"] = "test.backends";
  members["class"] = name + "Backend";
  if (!members.contains("forward_includes_kv_cache_update")) {
    members["forward_includes_kv_cache_update"] = false;
  }
  const JsonDocument document(members.dump(), name);
  return scripted_backend(child_description_from(document.root()), name, log);
}

// A batch of these query and sequence lengths.
inline CommonAttentionMetadata batch_of_lengths(const std::vector<std::int32_t>& query_lens,
                                                const std::vector<std::int32_t>& seq_lens) {
  CommonAttentionMetadata batch;
  batch.query_start_loc = {0};
  for (const std::int32_t length : query_lens) {
    batch.query_start_loc.push_back(batch.query_start_loc.back() + length);
    batch.max_query_len = std::max(batch.max_query_len, length);
  }
  for (const std::int32_t length : seq_lens)
    batch.max_seq_len = std::max(batch.max_seq_len, length);
  batch.query_start_loc_cpu = batch.query_start_loc;
  batch.seq_lens = seq_lens;
  batch.seq_lens_cpu_upper_bound = seq_lens;
  batch.num_reqs = static_cast<std::int32_t>(seq_lens.size());
  batch.num_actual_tokens = batch.query_start_loc.back();
  batch.block_table = {1, std::vector<std::int32_t>(seq_lens.size(), 0)};
  batch.slot_mapping.assign(static_cast<std::size_t>(batch.num_actual_tokens), 0);
  return batch;
}

// The text of what `call` throws as E; empty when it throws nothing.
template <class E, class Call>
std::string thrown(const Call& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  return "";
}

}  // namespace attn
