#include "property_tests/problem_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ostream>
#include <utility>

namespace attn::property_tests {
namespace {

constexpr std::string_view kLengthNames[] = {"equal", "ragged", "beyond"};
constexpr std::string_view kScaleNames[] = {"none", "one", "per_head", "per_request_head"};
constexpr std::string_view kAlibiNames[] = {"none", "row", "context", "zero", "abs", "sqrt"};
constexpr std::string_view kBiasNames[] = {"none", "finite", "some_masked"};
constexpr std::string_view kSinkNames[] = {"none", "finite", "some_minus_infinity"};
constexpr std::string_view kCacheNames[] = {"varlen", "paged_nhd", "paged_hnd", "packed_nhd",
                                            "packed_hnd"};
constexpr std::string_view kFillNames[] = {"zero", "nan", "inf", "-inf", "largest"};

template <class Enum, std::size_t kSize>
std::string_view name_in(const std::string_view (&names)[kSize], Enum value) {
  return names[static_cast<std::size_t>(value)];
}

bool uses_window(MaskKind mask) {
  switch (mask) {
    case MaskKind::kCausal:
    case MaskKind::kNone:
    case MaskKind::kCausalPerRequest:
    case MaskKind::kRanges:
      return false;
    default:
      return true;
  }
}

bool uses_reach(MaskKind mask) {
  return mask == MaskKind::kRectangle || mask == MaskKind::kWindowSinkTokens ||
         mask == MaskKind::kChunked || mask == MaskKind::kChunkedNonCausal ||
         mask == MaskKind::kRswa;
}

int round_up(int n, int multiple) { return (n + multiple - 1) / multiple * multiple; }

void normalise_memory(ProblemConfig& config) {
  MemoryForm& memory = config.memory;
  const KvEncoding encoding = encoding_of(config.kv);
  if (encoding != KvEncoding::kPlain && memory.cache == CacheForm::kVarlen) {
    memory.cache = CacheForm::kPagedNHD;
  }
  if (encoding == KvEncoding::kNvfp4 && is_packed(memory.cache)) {
    memory.cache = is_hnd(memory.cache) ? CacheForm::kPagedHND : CacheForm::kPagedNHD;
  }
  if (memory.cache == CacheForm::kVarlen) {
    memory.block_size = 1;
    memory.block_order = 0;
    memory.spare_blocks = 0;
    memory.table_padding = 0;
  }
  const bool score_tensor = config.attn_mask || config.attn_bias != BiasKind::kNone;
  if (!score_tensor) {
    config.one_for_all = 0;
    memory.column_padding = 0;
  }
}

// Writes what differs from a default.
class Line {
 public:
  template <class T>
  void add(std::string_view what, const T& value, const T& usual) {
    if (value == usual) return;
    fmt::format_to(std::back_inserter(text_), " {}={}", what, value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

void print_shape(Line& line, const ProblemConfig& c) {
  line.add("reqs", c.num_reqs, 0);
  line.add("lengths", name_in(kLengthNames, c.lengths), kLengthNames[0]);
  line.add("query_len", c.query_len, -1);
  line.add("context_len", c.context_len, -1);
  line.add("kv_heads", c.num_kv_heads, 0);
  line.add("group", c.group, 0);
  line.add("head_size", c.head_size, 0);
  line.add("head_size_v", c.head_size_v, c.head_size);
  line.add("query", name(c.query_dtype), name(DType::kF32));
  line.add("kv", name(c.kv), name(KvFormat::kF32));
  line.add("kv_scales", name_in(kScaleNames, c.kv_scales), kScaleNames[0]);
  line.add("q_scale", name_in(kScaleNames, c.q_scale), kScaleNames[0]);
}

void print_scores(Line& line, const ProblemConfig& c) {
  line.add("mask", name(c.mask), std::string_view());
  line.add("window", c.window, uses_window(c.mask) ? -1 : 1);
  line.add("reach", c.reach, uses_reach(c.mask) ? -1 : 0);
  line.add("attn_mask", c.attn_mask, false);
  line.add("drawn_scale", c.drawn_scale, false);
  line.add("soft_cap", c.soft_cap, false);
  line.add("alibi", name_in(kAlibiNames, c.alibi), kAlibiNames[0]);
  line.add("attn_bias", name_in(kBiasNames, c.attn_bias), kBiasNames[0]);
  line.add("one_for_all", c.one_for_all, 0u);
  line.add("tree", c.tree, false);
  line.add("sinks", name_in(kSinkNames, c.sinks), kSinkNames[0]);
  line.add("lse_includes_sink", c.lse_includes_sink, true);
  line.add("output_codes", c.output_codes, false);
}

void print_exec_and_memory(Line& line, const ProblemConfig& c) {
  const std::int64_t none = 0;
  line.add("num_splits", c.exec.num_splits, none);
  line.add("kv_chunk", c.exec.kv_chunk, none);
  line.add("common_prefix_len", c.exec.common_prefix_len, c.exec.has_common_prefix ? -1 : none);
  line.add("dcp_size", c.exec.dcp_size, none);
  line.add("dcp_interleave", c.exec.dcp_interleave, none);
  const MemoryForm usual;
  line.add("cache", name_in(kCacheNames, c.memory.cache), kCacheNames[0]);
  line.add("block_size", c.memory.block_size, usual.block_size);
  line.add("block_order", c.memory.block_order, usual.block_order);
  line.add("spare_blocks", c.memory.spare_blocks, usual.spare_blocks);
  line.add("table_padding", c.memory.table_padding, usual.table_padding);
  line.add("row_padding", c.memory.row_padding, usual.row_padding);
  line.add("dim_padding", c.memory.dim_padding, usual.dim_padding);
  line.add("column_padding", c.memory.column_padding, usual.column_padding);
  line.add("fill", name_in(kFillNames, c.memory.fill), kFillNames[0]);
}

}  // namespace

DType dtype_of(KvFormat format) {
  constexpr DType kTypes[] = {DType::kF32,      DType::kF16,        DType::kBF16,
                              DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2,
                              DType::kI8,       DType::kF8E4M3FN,   DType::kF4E2M1};
  return kTypes[static_cast<std::size_t>(format)];
}

KvEncoding encoding_of(KvFormat format) {
  if (format == KvFormat::kNvfp4) return KvEncoding::kNvfp4;
  const bool per_token =
      format == KvFormat::kInt8PerTokenHead || format == KvFormat::kFp8PerTokenHead;
  return per_token ? KvEncoding::kPerTokenHead : KvEncoding::kPlain;
}

ProblemConfig normalised(ProblemConfig c) {
  const bool lists_keys = c.family == Family::kMembership || c.family == Family::kExactLane;
  if (lists_keys && encoding_of(c.kv) != KvEncoding::kPlain) c.kv = KvFormat::kF32;
  if (lists_keys || encoding_of(c.kv) != KvEncoding::kPlain) c.kv_scales = ScaleShape::kNone;
  if (c.lengths == Lengths::kBeyond) c.context_len = 0;
  if (c.family == Family::kMembership) c.head_size_v = (c.query_len + c.context_len + 7) / 8;
  if (encoding_of(c.kv) == KvEncoding::kNvfp4) {
    c.head_size = round_up(c.head_size, 16);
    c.head_size_v = round_up(c.head_size_v, 16);
  }
  if (c.q_scale == ScaleShape::kPerRequestHead) c.q_scale = ScaleShape::kPerHead;
  if (!uses_window(c.mask)) c.window = 1;
  if (!uses_reach(c.mask)) c.reach = 0;
  if (c.sinks == SinkKind::kNone) c.lse_includes_sink = true;
  if (c.exec.num_splits != 0) c.exec.kv_chunk = 0;
  if (!c.exec.has_common_prefix) c.exec.common_prefix_len = 0;
  if (c.exec.dcp_size == 0) c.exec.dcp_interleave = 0;
  normalise_memory(c);
  return c;
}

std::string_view name(MaskKind mask) {
  constexpr std::string_view kNames[] = {
      "causal",      "none",      "causal_per_request", "window",        "symmetric_window",
      "left_window", "rectangle", "window_sink_tokens", "chunked",       "chunked_non_causal",
      "rswa",        "ranges",    "ranges_window",      "ranges_clamped"};
  return name_in(kNames, mask);
}

std::string_view name(KvFormat format) {
  constexpr std::string_view kNames[] = {"f32",
                                         "f16",
                                         "bf16",
                                         "f8_e4m3fn",
                                         "f8_e4m3fnuz",
                                         "f8_e5m2",
                                         "int8_per_token_head",
                                         "fp8_per_token_head",
                                         "nvfp4"};
  return name_in(kNames, format);
}

std::string_view name(Family family) {
  switch (family) {
    case Family::kUniform:
      return "uniform";
    case Family::kBell:
      return "bell";
    case Family::kNegativeLogits:
      return "negative_logits";
    case Family::kLargeLogits:
      return "large_logits";
    case Family::kExactLane:
      return "exact_lane";
    case Family::kMembership:
      return "membership";
    case Family::kAllCodes:
      return "all_codes";
    case Family::kConstantValues:
      return "constant_values";
  }
  return "?";
}

std::string to_string(const ProblemConfig& config) {
  Line line;
  line.add("family", name(config.family), std::string_view());
  line.add("seed", fmt::format("{:#x}", config.seed), std::string());
  print_shape(line, config);
  print_scores(line, config);
  print_exec_and_memory(line, config);
  return line.take().substr(1);
}

std::ostream& operator<<(std::ostream& stream, const ProblemConfig& config) {
  return stream << to_string(config);
}

}  // namespace attn::property_tests
