// Rows of the table `metadata` about batches; those about groups of layers are in group_rows.cc.
#include <fmt/core.h>

#include <algorithm>

#include "attn/batch_reorder.h"
#include "attn/context_parallel.h"
#include "attn/decode_split.h"
#include "attn/derived_batches.h"
#include "attn/error.h"
#include "attn/image_spans.h"
#include "attn/local_batches.h"
#include "attn/ubatch.h"
#include "composite/batch_json.h"
#include "composite/table_kinds.h"
#include "core/table_values.h"

namespace attn {
namespace {

using nlohmann::json;

json split_decodes_and_prefills_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "batch", "options", "expect"});
  const CommonAttentionMetadata batch = batch_from(row.at("batch"));
  const JsonNode given = row.at("options");
  given.expect_only({"decode_threshold", "require_uniform", "treat_short_extends_as_decodes"});
  DecodeSplitOptions options;
  if (given.has("decode_threshold")) {
    options.decode_threshold = int_from(given.at("decode_threshold"));
  }
  if (given.has("require_uniform")) {
    options.require_uniform = given.at("require_uniform").boolean();
  }
  if (given.has("treat_short_extends_as_decodes")) {
    options.treat_short_extends_as_decodes = given.at("treat_short_extends_as_decodes").boolean();
  }
  return value_or_error([&]() -> json {
    const DecodeSplit split = split_decodes_and_prefills(batch, options);
    return json::array(
        {split.num_decodes, split.num_prefills, split.num_decode_tokens, split.num_prefill_tokens});
  });
}

json split_extends_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "batch", "options", "expect"});
  const CommonAttentionMetadata batch = batch_from(row.at("batch"));
  const JsonNode options = row.at("options");
  options.expect_only({"decode_threshold"});
  const std::int32_t threshold =
      options.has("decode_threshold") ? int_from(options.at("decode_threshold")) : 1;
  return value_or_error([&]() -> json {
    const ExtendSplit split = split_decodes_prefills_and_extends(batch, threshold);
    return json::array({split.num_decodes, split.num_extends, split.num_prefills,
                        split.num_decode_tokens, split.num_extend_tokens,
                        split.num_prefill_tokens});
  });
}

json split_dcp_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "query_start_loc", "seq_lens_cpu_upper_bound",
                   "max_query_len", "num_actual_tokens", "expect"});
  const std::vector<std::int32_t> starts = int_list_from(row.at("query_start_loc"));
  std::optional<std::vector<std::int32_t>> bounds;
  if (!row.at("seq_lens_cpu_upper_bound").is_null()) {
    bounds = int_list_from(row.at("seq_lens_cpu_upper_bound"));
  }
  const ContextSplit split = split_dcp_context_queries(
      starts, bounds, int_from(row.at("max_query_len")), int_from(row.at("num_actual_tokens")));
  return json::array(
      {split.num_decodes, split.num_extends, split.num_decode_tokens, split.num_extend_tokens});
}

json split_prefill_chunks_row(const JsonNode& row) {
  row.expect_only(
      {"id", "kind", "fixed", "seq_lens", "workspace_size", "request_offset", "expect"});
  const std::vector<std::int32_t> seq_lens = int_list_from(row.at("seq_lens"));
  return value_or_error([&]() -> json {
    json chunks = json::array();
    for (const RowRange& chunk : split_prefill_chunks(seq_lens, int_from(row.at("workspace_size")),
                                                      int_from(row.at("request_offset")))) {
      chunks.push_back({chunk.first, chunk.past});
    }
    return chunks;
  });
}

json reorder_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "num_scheduled_tokens", "num_computed_tokens",
                   "num_prompt_tokens", "decode_threshold", "expect"});
  const std::vector<std::int32_t> scheduled = int_list_from(row.at("num_scheduled_tokens"));
  const std::vector<std::int32_t> computed = int_list_from(row.at("num_computed_tokens"));
  const std::vector<std::int32_t> prompt = int_list_from(row.at("num_prompt_tokens"));
  const BatchReorder reorder =
      reorder_batch({scheduled, computed, prompt}, int_from(row.at("decode_threshold")));
  return {{"changed", reorder.changed()}, {"order", reorder.order}, {"swaps", reorder.swaps}};
}

json local_batch_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "attn_chunk_size", "block_size", "batch", "expect"});
  const CommonAttentionMetadata batch = batch_from(row.at("batch"));
  const std::int32_t chunk_size = int_from(row.at("attn_chunk_size"));
  const std::int32_t block_size = int_from(row.at("block_size"));
  // A virtual row has at least one token.
  expect_answer(row.at("attn_chunk_size"), batch.num_reqs + batch.query_start_loc_cpu.back(),
                chunk_size / std::max(block_size, 1));
  return value_or_error([&]() -> json {
    const LocalBatch local = make_local_batch(batch, chunk_size, block_size, Derivation::kVllm);
    BlockTable other = batch.block_table;
    for (std::int32_t& entry : other.entries) {
      if (entry > INT32_MAX - 1000) row.at("batch").fail("block ids that 1000 can be added to");
      entry += 1000;
    }
    json answer = to_json_value(local.batch);
    answer["remapped"] = to_json_value(local.blocks.remap(other));
    return answer;
  });
}

json fast_prefill_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "batch", "expect"});
  const CommonAttentionMetadata batch = batch_from(row.at("batch"));
  return value_or_error([&]() -> json {
    const std::optional<CommonAttentionMetadata> wanted = fast_prefill(batch, Derivation::kVllm);
    return wanted ? to_json_value(*wanted) : json{{"unchanged", true}};
  });
}

json slices_json(const std::vector<UBatchSlice>& slices) {
  json list = json::array();
  for (const UBatchSlice& slice : slices) {
    list.push_back({slice.first_row, slice.past_row, slice.first_token, slice.past_token});
  }
  return list;
}

json ubatch_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "num_tokens_padded", "num_reqs_padded", "num_ubatches",
                   "split_point", "batch", "expect"});
  const CommonAttentionMetadata batch = batch_from(row.at("batch"));
  const std::int32_t num_tokens_padded = int_from(row.at("num_tokens_padded"));
  const std::int32_t num_ubatches = int_from(row.at("num_ubatches"));
  std::optional<std::vector<std::int32_t>> points;
  if (!row.at("split_point").is_null()) points = int_list_from(row.at("split_point"));
  expect_answer(row.at("num_ubatches"), batch.num_reqs + batch.num_actual_tokens,
                points ? static_cast<std::int64_t>(points->size()) : num_ubatches);
  std::vector<std::int32_t> query_lens;
  query_lens.reserve(batch.seq_lens.size());
  for (std::int32_t r = 0; r < batch.num_reqs; ++r) query_lens.push_back(batch.query_len(r));
  return value_or_error([&]() -> json {
    const UBatchSlices slices = create_ubatch_slices(
        query_lens, num_tokens_padded, int_from(row.at("num_reqs_padded")), num_ubatches, points);
    json batches = json::array();
    for (const UBatchSlice& slice : slices.slices) {
      batches.push_back(value_or_error(
          [&] { return to_json_value(split_batch(slice, batch, Derivation::kVllm)); }));
    }
    return {{"slices", slices_json(slices.slices)},
            {"padded", slices_json(slices.padded)},
            {"last_empty", is_last_ubatch_empty(batch.query_start_loc_cpu.back(), num_tokens_padded,
                                                num_ubatches)},
            {"batches", batches}};
  });
}

json unpadded_row(const JsonNode& row) {
  row.expect_only(
      {"id", "kind", "fixed", "batch", "num_actual_tokens", "num_actual_reqs", "expect"});
  const CommonAttentionMetadata part =
      unpadded(batch_from(row.at("batch")), int_from(row.at("num_actual_tokens")),
               int_from(row.at("num_actual_reqs")), Derivation::kVllm);
  json answer = to_json_value(part);
  json computed = json::array();
  for (std::int32_t r = 0; r < part.num_reqs; ++r) {
    computed.push_back(std::int64_t{part.seq_lens[static_cast<std::size_t>(r)]} -
                       part.query_len(r));
  }
  answer["num_computed_tokens"] = computed;
  answer["batch_size"] = part.seq_lens.size();
  return answer;
}

json uniform_decode_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "num_reqs", "num_tokens", "max_query_len",
                   "decode_graph_eligible", "expect"});
  const int num_reqs = int_from(row.at("num_reqs"));
  const int num_tokens = int_from(row.at("num_tokens"));
  const int longest = int_from(row.at("max_query_len"));
  return {{"uniform", is_uniform_decode(num_reqs, num_tokens, longest)},
          {"token_count", or_null(uniform_token_count(num_reqs, num_tokens, longest,
                                                      row.at("decode_graph_eligible").boolean()))}};
}

json dcp_local_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "seq_lens", "dcp_size", "dcp_rank",
                   "cp_kv_cache_interleave_size", "expect"});
  const std::vector<std::int32_t> seq_lens = int_list_from(row.at("seq_lens"));
  const int size = int_from(row.at("dcp_size"));
  const int interleave = int_from(row.at("cp_kv_cache_interleave_size"));
  if (!row.at("dcp_rank").is_null()) {
    return dcp_local_seq_lens(seq_lens, size, int_from(row.at("dcp_rank")), interleave);
  }
  if (size < 1) row.at("dcp_size").fail("at least 1");
  expect_answer(row.at("dcp_size"), static_cast<std::int64_t>(seq_lens.size()), size);
  json of_rows = json::array();
  for (const std::int32_t seq_len : seq_lens) {
    json of_ranks = json::array();
    for (int rank = 0; rank < size; ++rank) {
      of_ranks.push_back(dcp_local_seq_len(seq_len, size, rank, interleave));
    }
    of_rows.push_back(of_ranks);
  }
  return of_rows;
}

PromptFeature feature_from(const JsonNode& node) {
  node.expect_only({"modality", "offset", "length", "is_embed"});
  PromptFeature feature = {node.at("modality").string(), int_from(node.at("offset")),
                           int_from(node.at("length")), std::nullopt};
  if (!node.at("is_embed").is_null()) feature.is_embed = booleans_from(node.at("is_embed"));
  return feature;
}

json mm_prefix_ranges_row(const JsonNode& row) {
  row.expect_only({"id", "kind", "fixed", "features", "options", "expect"});
  std::vector<std::vector<PromptFeature>> features;
  for (const JsonNode& of_row : row.at("features").elements()) {
    features.emplace_back();
    for (const JsonNode& one : of_row.elements()) features.back().push_back(feature_from(one));
  }
  const JsonNode options = row.at("options");
  options.expect_only({"sliding_window", "clamp_sliding_window", "span_pad"});
  json answer = json::array();
  for (const RowImages& images :
       mm_prefix_ranges(features, {optional_int_from(options.at("sliding_window")),
                                   options.at("clamp_sliding_window").boolean(),
                                   int_from(options.at("span_pad"))})) {
    answer.push_back({images.row, to_json_value(images.ranges)});
  }
  return answer;
}

json mm_prefix_query_ranges_row(const JsonNode& row) {
  row.expect_only(
      {"id", "kind", "fixed", "query_start_loc", "seq_lens", "mm_req_doc_ranges", "expect"});
  const std::vector<std::int32_t> starts = int_list_from(row.at("query_start_loc"));
  const std::vector<std::int32_t> seq_lens = int_list_from(row.at("seq_lens"));
  std::optional<std::vector<RowImages>> ranges;
  if (!row.at("mm_req_doc_ranges").is_null()) ranges = images_from(row.at("mm_req_doc_ranges"));
  if (!starts.empty() && starts.back() > kMaxTokensWithoutSlots) {
    row.at("query_start_loc").fail("at most 65536 tokens");
  }
  std::int64_t num_ranges = 0;
  for (const RowImages& images : ranges.value_or(std::vector<RowImages>{})) {
    num_ranges += static_cast<std::int64_t>(images.ranges.size());
  }
  expect_answer(row.at("mm_req_doc_ranges"), num_ranges, starts.empty() ? 0 : starts.back());
  const json rows = to_json_value(mm_prefix_query_ranges(ranges, starts, seq_lens));
  json padded;
  if (const auto lists = padded_ranges(ranges, static_cast<std::int32_t>(seq_lens.size()))) {
    padded = json::array();
    for (const std::vector<ImageRange>& list : *lists) padded.push_back(to_json_value(list));
  }
  return {{"num_rows", rows.size()}, {"rows", rows}, {"padded_tensor", padded}};
}

struct Kind {
  std::string_view name;
  json (*answer)(const JsonNode& row);
};
constexpr Kind kKinds[] = {
    {"split_decodes_and_prefills", split_decodes_and_prefills_row},
    {"split_decodes_prefills_and_extends", split_extends_row},
    {"split_dcp_context_queries", split_dcp_row},
    {"split_prefill_chunks", split_prefill_chunks_row},
    {"reorder_batch", reorder_row},
    {"local_virtual_batches", local_batch_row},
    {"fast_prefill", fast_prefill_row},
    {"ubatch", ubatch_row},
    {"unpadded", unpadded_row},
    {"uniform_decode", uniform_decode_row},
    {"dcp_local_seq_lens", dcp_local_row},
    {"mm_prefix_ranges", mm_prefix_ranges_row},
    {"mm_prefix_query_ranges", mm_prefix_query_ranges_row},
};

json answer_row(const JsonNode& row) {
  const std::string name = row.at("kind").string();
  for (const Kind& kind : kKinds) {
    if (kind.name == name) return kind.answer(row);
  }
  if (const std::optional<json> answer = answer_group_row(name, row)) return *answer;
  row.at("kind").fail("a kind of metadata row");
}

}  // namespace

void expect_answer(const JsonNode& node, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  if (columns > kMost / std::max<std::int64_t>(rows, 1)) {
    node.fail(fmt::format("an answer of at most 2^20 entries, not {} times {}", rows, columns));
  }
}

LineKind metadata_table(const JsonNode& header) {
  header.expect_only({"format", "table", "vllm_version", "seed", "rows"});
  return {{"expect"}, [](const JsonNode& row) -> json { return {{"expect", answer_row(row)}}; }};
}

}  // namespace attn
