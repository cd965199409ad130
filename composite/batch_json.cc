#include "composite/batch_json.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "core/table_values.h"

namespace attn {
namespace {

template <class T>
std::vector<T> integers_from(const JsonNode& node) {
  std::vector<T> values;
  for (const JsonNode& element : node.elements()) {
    const std::int64_t value = element.integer(std::numeric_limits<T>::min());
    if (value > std::numeric_limits<T>::max()) element.fail("an integer that fits its field");
    values.push_back(static_cast<T>(value));
  }
  return values;
}

bool given(const JsonNode& node, std::string_view key) {
  return node.has(key) && !node.at(key).is_null();
}

// Fields that are none unless they are given.
void read_optional_fields(const JsonNode& node, CommonAttentionMetadata& batch) {
  using Ints = std::optional<std::vector<std::int32_t>>;
  const auto ints = [&](std::string_view key, Ints& field) {
    if (given(node, key)) field = integers_from<std::int32_t>(node.at(key));
  };
  const auto integer = [&](std::string_view key, std::optional<std::int32_t>& field) {
    if (given(node, key)) field = int_from(node.at(key));
  };
  if (given(node, "is_prefilling")) batch.is_prefilling = booleans_from(node.at("is_prefilling"));
  if (given(node, "mm_req_doc_ranges")) {
    batch.mm_req_doc_ranges = images_from(node.at("mm_req_doc_ranges"));
  }
  if (given(node, "positions")) {
    batch.positions = integers_from<std::int64_t>(node.at("positions"));
  }
  ints("logits_indices_padded", batch.logits_indices_padded);
  integer("num_logits_indices", batch.num_logits_indices);
  integer("max_logits_per_req", batch.max_logits_per_req);
  ints("encoder_seq_lens", batch.encoder_seq_lens);
  ints("encoder_seq_lens_cpu", batch.encoder_seq_lens_cpu);
  ints("dcp_local_seq_lens", batch.dcp_local_seq_lens);
  ints("dcp_local_seq_lens_cpu_upper_bound", batch.dcp_local_seq_lens_cpu_upper_bound);
  ints("req_idx", batch.req_idx);
  ints("rswa_prefix_lens", batch.rswa_prefix_lens);
}

void read_starts(const JsonNode& node, CommonAttentionMetadata& batch) {
  const JsonNode starts = node.at("query_start_loc");
  batch.query_start_loc = integers_from<std::int32_t>(starts);
  const auto& locations = batch.query_start_loc;
  if (locations.empty() || locations.front() != 0 ||
      !std::is_sorted(locations.begin(), locations.end())) {
    starts.fail("ascending integers from 0");
  }
  batch.query_start_loc_cpu = locations;
  batch.num_reqs = static_cast<std::int32_t>(locations.size()) - 1;
  batch.seq_lens = integers_from<std::int32_t>(node.at("seq_lens"));
  if (batch.seq_lens.size() + 1 != locations.size()) node.at("seq_lens").fail("one per request");
}

void read_bounds(const JsonNode& node, CommonAttentionMetadata& batch) {
  batch.num_actual_tokens = batch.query_start_loc.back();
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    batch.max_query_len = std::max(batch.max_query_len, batch.query_len(row));
  }
  for (const std::int32_t length : batch.seq_lens) {
    batch.max_seq_len = std::max(batch.max_seq_len, length);
  }
  const auto integer = [&](std::string_view key, std::int32_t& field) {
    if (node.has(key)) field = int_from(node.at(key));
  };
  integer("num_actual_tokens", batch.num_actual_tokens);
  integer("max_query_len", batch.max_query_len);
  integer("max_seq_len", batch.max_seq_len);
  batch.seq_lens_cpu_upper_bound = batch.seq_lens;
  if (!node.has("seq_lens_cpu_upper_bound")) return;
  batch.seq_lens_cpu_upper_bound.reset();
  const JsonNode bounds = node.at("seq_lens_cpu_upper_bound");
  if (!bounds.is_null()) batch.seq_lens_cpu_upper_bound = integers_from<std::int32_t>(bounds);
}

void read_memory(const JsonNode& node, CommonAttentionMetadata& batch) {
  if (node.has("block_table")) {
    batch.block_table = block_table_from(node.at("block_table"));
  } else {
    batch.block_table = {1, std::vector<std::int32_t>(batch.seq_lens.size(), 0)};
  }
  if (node.has("slot_mapping")) {
    batch.slot_mapping = integers_from<std::int64_t>(node.at("slot_mapping"));
    return;
  }
  if (batch.num_actual_tokens < 0 || batch.num_actual_tokens > kMaxTokensWithoutSlots) {
    node.fail("at most 65536 tokens without a slot_mapping");
  }
  batch.slot_mapping.resize(static_cast<std::size_t>(batch.num_actual_tokens));
  std::iota(batch.slot_mapping.begin(), batch.slot_mapping.end(), std::int64_t{0});
}

}  // namespace

std::vector<std::int32_t> int_list_from(const JsonNode& node) {
  return integers_from<std::int32_t>(node);
}

std::vector<bool> booleans_from(const JsonNode& node) {
  std::vector<bool> values;
  for (const JsonNode& element : node.elements()) values.push_back(element.boolean());
  return values;
}

std::vector<RowImages> images_from(const JsonNode& node) {
  std::vector<RowImages> images;
  for (const JsonNode& element : node.elements()) {
    const std::vector<JsonNode> pair = element.elements();
    if (pair.size() != 2) element.fail("[row, ranges]");
    RowImages row{int_from(pair[0]), {}};
    for (const JsonNode& range : pair[1].elements()) {
      const auto ends = integers_from<std::int32_t>(range);
      if (ends.size() != 2) range.fail("[start, end]");
      row.ranges.push_back({ends[0], ends[1]});
    }
    images.push_back(std::move(row));
  }
  return images;
}

BlockTable block_table_from(const JsonNode& node) {
  BlockTable table;
  for (const JsonNode& element : node.elements()) {
    const auto row = integers_from<std::int32_t>(element);
    if (table.entries.empty()) table.width = static_cast<std::int64_t>(row.size());
    if (static_cast<std::int64_t>(row.size()) != table.width) element.fail("as many as above");
    table.entries.insert(table.entries.end(), row.begin(), row.end());
  }
  return table;
}

CommonAttentionMetadata batch_from(const JsonNode& node) {
  node.expect_only({"query_start_loc",
                    "seq_lens",
                    "seq_lens_cpu_upper_bound",
                    "num_actual_tokens",
                    "max_query_len",
                    "max_seq_len",
                    "block_table",
                    "slot_mapping",
                    "causal",
                    "is_prefilling",
                    "mm_req_doc_ranges",
                    "positions",
                    "logits_indices_padded",
                    "num_logits_indices",
                    "max_logits_per_req",
                    "encoder_seq_lens",
                    "encoder_seq_lens_cpu",
                    "dcp_local_seq_lens",
                    "dcp_local_seq_lens_cpu_upper_bound",
                    "req_idx",
                    "rswa_prefix_lens"});
  CommonAttentionMetadata batch;
  read_starts(node, batch);
  read_bounds(node, batch);
  read_memory(node, batch);
  if (node.has("causal")) {
    const JsonNode causal = node.at("causal");
    if (causal.is_array()) {
      batch.causal_per_req = booleans_from(causal);
    } else {
      batch.causal = causal.boolean();
    }
  }
  read_optional_fields(node, batch);
  validate_sizes(batch);
  return batch;
}

std::vector<LayerTraits> layers_from(const JsonNode& node) {
  std::vector<LayerTraits> layers;
  for (const auto& [name, layer] : node.members()) {
    layer.expect_only({"sliding_window", "clamp"});
    LayerTraits traits;
    traits.name = name;
    if (layer.has("sliding_window")) {
      traits.sliding_window = optional_int_from(layer.at("sliding_window"));
    }
    if (layer.has("clamp")) {
      traits.mm_prefix_clamp_sliding_window = layer.at("clamp").boolean();
    }
    layers.push_back(std::move(traits));
  }
  return layers;
}

std::vector<std::string> strings_from(const JsonNode& node) {
  std::vector<std::string> strings;
  for (const JsonNode& element : node.elements()) strings.push_back(element.string());
  return strings;
}

KvCacheSpec spec_from(const JsonNode& node) {
  node.expect_only({"block_size", "num_kv_heads", "head_size", "dtype"});
  KvCacheSpec spec;
  spec.block_size = int_from(node.at("block_size"));
  spec.num_kv_heads = int_from(node.at("num_kv_heads"));
  spec.head_size = int_from(node.at("head_size"));
  spec.dtype = model_dtype_from(node.at("dtype"));
  if (spec.block_size < 1) node.at("block_size").fail("an integer >= 1");
  return spec;
}

nlohmann::json error_json(const VllmError& error) {
  return {{"error", {{"type", error.type()}, {"text", error.what()}}}};
}

}  // namespace attn
