#include "golden/questions/extended_features.h"

#include <algorithm>

namespace attn::questions {
namespace {

void window(AttentionSetup& setup, std::int64_t length) { setup.mask.window_left = length - 1; }

// The same range for every request, half of it before position `length`.
void image(AttentionSetup& setup, std::int64_t length) {
  const auto first = static_cast<int>(length / 2);
  const auto last = static_cast<int>(length + length / 2);
  setup.mask.mm_ranges.assign(setup.requests.size(), {{first, last}});
}

// Forms of a cache that have a place for scales beside the codes.
void need_pages(AttentionSetup& setup) {
  if (setup.cache == CacheForm::kVarlen) setup.cache = CacheForm::kPagedNhd;
}

void need_plain_pages(AttentionSetup& setup) {
  need_pages(setup);
  if (setup.cache == CacheForm::kPackedNhd) setup.cache = CacheForm::kPagedNhd;
  if (setup.cache == CacheForm::kPackedHnd) setup.cache = CacheForm::kPagedHnd;
}

std::int64_t shortest(const AttentionSetup& setup) {
  const std::vector<std::int64_t> lengths = seq_lens(setup);
  return *std::min_element(lengths.begin(), lengths.end());
}

void non_causal(AttentionSetup& setup) { setup.mask.causal = false; }

}  // namespace

const std::vector<Feature>& length_features() {
  static const std::vector<Feature> all = {
      {"sliding_window", "causal", {"window_counts_self", "bottom_right"}, window},
      {"sliding_window",
       "symmetric",
       {"noncausal_window_symmetric", "window_inclusive_both_sides"},
       [](AttentionSetup& setup, std::int64_t length) {
         non_causal(setup);
         window(setup, length);
         setup.mask.window_right = length - 1;
       }},
      {"sliding_window",
       "left_only",
       {"noncausal_left_only"},
       [](AttentionSetup& setup, std::int64_t length) {
         non_causal(setup);
         window(setup, length);
       }},
      {"sink_tokens",
       "window",
       {"window_counts_self"},
       [](AttentionSetup& setup, std::int64_t length) {
         window(setup, length);
         setup.mask.sink_token_length = std::min<std::int64_t>(length, 4);
       }},
      {"chunked_local",
       "causal",
       {"chunk_floor"},
       [](AttentionSetup& setup, std::int64_t length) { setup.mask.chunk_size = length; }},
      {"chunked_local",
       "lookback",
       {"chunk_floor", "chunk_lookback"},
       [](AttentionSetup& setup, std::int64_t length) {
         setup.mask.chunk_size = length;
         setup.mask.chunk_lookback = 1;
       }},
      {"rswa",
       "prefix",
       {"rswa_prefix_visible", "window_counts_self"},
       [](AttentionSetup& setup, std::int64_t length) {
         setup.mask.rswa_window = length;
         setup.mask.rswa_prefix_lens.assign(setup.requests.size(), length / 2);
       }},
      {"mm_prefix",
       "clamped",
       {"mm_clamp", "mm_inclusive", "window_counts_self"},
       [](AttentionSetup& setup, std::int64_t length) {
         window(setup, length);
         image(setup, length);
         setup.mask.mm_clamp = true;
       }},
      {"mm_prefix",
       "unclamped",
       {"mm_noclamp", "mm_inclusive", "window_counts_self"},
       [](AttentionSetup& setup, std::int64_t length) {
         window(setup, length);
         image(setup, length);
       }},
      {"split_kv",
       "chunk",
       {"split_equals_one_pass", "chunk_invariance"},
       [](AttentionSetup& setup, std::int64_t length) { setup.exec.kv_chunk = length; }},
      {"cascade",
       "prefix",
       {"cascade_equals_plain"},
       [](AttentionSetup& setup, std::int64_t length) {
         setup.exec.common_prefix_len = std::min(length, shortest(setup));
         setup.exec.has_common_prefix = true;
       }},
      {"dcp", "4", {"sharded_equals_whole"}, [](AttentionSetup& setup, std::int64_t length) {
         setup.exec.dcp_size = 4;
         setup.exec.dcp_interleave = length;
       }}};
  return all;
}

const std::vector<Feature>& score_features() {
  static const std::vector<Feature> all = {
      {"full",
       "all",
       {"noncausal_sees_all"},
       [](AttentionSetup& setup, std::int64_t) { non_causal(setup); }},
      {"causal", "all", {"bottom_right"}, [](AttentionSetup&, std::int64_t) {}},
      {"tree",
       "siblings",
       {"tree_bias_new_tokens_only"},
       [](AttentionSetup& setup, std::int64_t) { setup.tree.parents = {-1, 0, 0, 1, 1, 2}; }},
      {"masked",
       "bool",
       {},
       [](AttentionSetup& setup, std::int64_t) {
         setup.mask.attn_mask = MaskTensor{.axes = {.per_head = false}};
       }},
      {"masked",
       "bias",
       {},
       [](AttentionSetup& setup, std::int64_t) {
         setup.attn_bias = BiasTensor{.axes = {.per_request = false}};
       }},
      {"softcap",
       "2",
       {"softcap_after_scale"},
       [](AttentionSetup& setup, std::int64_t) { setup.soft_cap = 2.0; }},
      {"alibi",
       "row",
       {"alibi_row"},
       [](AttentionSetup& setup, std::int64_t) { setup.alibi = AlibiForm::kRow; }},
      {"sinks",
       "drawn",
       {"sink_in_denominator", "lse_includes_sink"},
       [](AttentionSetup& setup, std::int64_t) { setup.drawn_sinks = true; }}};
  return all;
}

const std::vector<Feature>& memory_features() {
  static const std::vector<Feature> all = {
      {"diffkv",
       "half",
       {"diffkv_scale_from_dk"},
       [](AttentionSetup& setup, std::int64_t) { setup.head_size_v = setup.head_size / 2; }},
      {"quantised",
       "e4m3",
       {"kv_scales", "per_head_scales", "fp8_formats"},
       [](AttentionSetup& setup, std::int64_t) {
         setup.kv_dtype = DType::kF8E4M3FN;
         setup.kv_scales = Scales::kPerHead;
       }},
      {"quantised_per_token_head",
       "int8",
       {"per_token_head_scales"},
       [](AttentionSetup& setup, std::int64_t) {
         need_pages(setup);
         setup.kv_dtype = DType::kI8;
         setup.encoding = KvEncoding::kPerTokenHead;
       }},
      {"nvfp4",
       "plain",
       {"nvfp4_group16", "nvfp4_low_nibble_even"},
       [](AttentionSetup& setup, std::int64_t) {
         need_plain_pages(setup);
         setup.kv_dtype = DType::kF4E2M1;
         setup.encoding = KvEncoding::kNvfp4;
       }},
      {"output_quantised", "e4m3", {"output_fp8_static"}, [](AttentionSetup& setup, std::int64_t) {
         setup.output_scale = true;
       }}};
  return all;
}

std::vector<Feature> all_features() {
  std::vector<Feature> all;
  for (const auto* some : {&length_features(), &score_features(), &memory_features()}) {
    all.insert(all.end(), some->begin(), some->end());
  }
  return all;
}

}  // namespace attn::questions
