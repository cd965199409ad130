// Batches, layers and specs as the tables of composites write them. Readers throw Error, naming the
// path.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn/metadata.h"
#include "attn/metadata_builder.h"
#include "attn/vllm_error.h"
#include "core/strict_json.h"

namespace attn {

// Missing members follow from query_start_loc and seq_lens; without a slot_mapping a batch has at
// most kMaxTokensWithoutSlots tokens, which get the slots 0, 1, 2, ...
inline constexpr std::int32_t kMaxTokensWithoutSlots = 65536;
CommonAttentionMetadata batch_from(const JsonNode& node);
nlohmann::json to_json_value(const CommonAttentionMetadata& batch);  // optional fields if present

// Parts of a batch that rows have alone, too.
std::vector<std::int32_t> int_list_from(const JsonNode& node);
std::vector<bool> booleans_from(const JsonNode& node);
std::vector<RowImages> images_from(const JsonNode& node);  // [[row, [[start, end], ..]], ..]
BlockTable block_table_from(const JsonNode& node);
nlohmann::json to_json_value(const BlockTable& table);
nlohmann::json to_json_value(const std::vector<ImageRange>& ranges);

// {"l0": {"sliding_window": 512, "clamp": false}}; a missing member is a missing attribute.
std::vector<LayerTraits> layers_from(const JsonNode& node);
std::vector<std::string> strings_from(const JsonNode& node);
KvCacheSpec spec_from(const JsonNode& node);

nlohmann::json error_json(const VllmError& error);  // {"error": {"type", "text"}}

// What vLLM raises is an answer.
template <class Function>
nlohmann::json value_or_error(const Function& function) {
  try {
    return function();
  } catch (const VllmError& error) {
    return error_json(error);
  }
}

}  // namespace attn
