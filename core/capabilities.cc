#include "attn/capabilities.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <tuple>

#include "core/contains.h"

namespace attn {
namespace {

bool more_than_one(const TensorView& scale) { return scale.present() && scale.num_units() > 1; }

// A feature of the problem, whether it is on, and its name in a reason.
struct Use {
  Feature feature;
  bool on;
  std::string_view text;
};

std::vector<Use> features_used(const AttentionOp& op) {
  const MaskSpec& mask = op.mask;
  const bool any_alibi = op.bias.alibi_form != AlibiForm::kNone;
  const bool sqrt = op.bias.alibi_form == AlibiForm::kSqrt;
  return {
      {Feature::kNonCausal, !mask.causal, "non-causal attention"},
      {Feature::kCausalPerRequest, mask.causal_per_req.present(), "causal flag per request"},
      {Feature::kSlidingWindow,
       mask.window_left != MaskSpec::kUnbounded || mask.window_right != MaskSpec::kUnbounded,
       "sliding window"},
      {Feature::kSinkTokens, mask.sink_token_length != 0, "sink tokens"},
      {Feature::kChunkedLocal, mask.attention_chunk_size != 0, "chunked local attention"},
      {Feature::kRswa, mask.rswa_window != 0, "R-SWA"},
      {Feature::kMmPrefix, mask.mm_prefix_ranges.present(), "multimodal prefix ranges"},
      {Feature::kAttnMask, mask.attn_mask.present(), "attention mask"},
      {Feature::kSoftCap, op.logits_soft_cap != 0.0, "logits soft cap"},
      {Feature::kAlibi, any_alibi && !sqrt, "ALiBi"},
      {Feature::kAlibiSqrt, sqrt, "ALiBi sqrt form"},
      {Feature::kAttnBias, op.bias.attn_bias.present(), "additive bias"},
      {Feature::kTreeBias, op.bias.qq_bias.present(), "tree bias"},
      {Feature::kSinks, op.sinks.present(), "attention sinks"},
      {Feature::kQueryScale, op.q_scale.present(), "query scale"},
      {Feature::kPerHeadScales,
       more_than_one(op.kv.k_scale) || more_than_one(op.kv.v_scale) || more_than_one(op.q_scale),
       "per-head quant scales"},
      {Feature::kOutputQuantised, op.output_scale.present(), "quantised output"},
      {Feature::kDifferentHeadSizeV, op.head_size_v() != op.head_size(),
       "head_size_v different from head_size"},
  };
}

void attention_reasons(const Capabilities& c, const AttentionOp& op,
                       std::vector<std::string>& reasons) {
  const auto reject = [&](std::string_view what, auto... value) {
    reasons.push_back(fmt::format("{} not supported", fmt::join(std::tuple(what, value...), " ")));
  };
  if (!c.head_size.allows(op.head_size())) reject("head_size", op.head_size());
  if (op.head_size_v() != op.head_size() && !c.head_size.allows(op.head_size_v())) {
    reject("head_size_v", op.head_size_v());
  }
  if (!contains(c.query_dtypes, op.query.dtype)) reject("query dtype", name(op.query.dtype));
  if (!contains(c.kv_encodings, op.kv.encoding)) {
    reject("cache encoding", name(op.kv.encoding));
  }
  const auto reject_type = [&](std::string_view what, DType type) {
    const bool listed = op.kv.encoding == KvEncoding::kPlain || type == DType::kI4;
    if (listed && !contains(c.kv_dtypes, type)) reject(what, name(type));
  };
  reject_type("key dtype", op.kv.key.dtype);
  reject_type("value dtype", op.kv.value.dtype);
  if (!contains(c.kv_layouts, op.kv.layout)) reject("cache layout", name(op.kv.layout));
  for (const Use& use : features_used(op)) {
    if (use.on && !c.has(use.feature)) reject(use.text);
  }
}

// The tensors of an operation that may lie on a device.
struct DataTensors {
  using Views = std::vector<TensorView>;

  Views operator()(const AttentionOp& op) const {
    const KvCacheView& kv = op.kv;
    return {op.query,
            kv.key,
            kv.value,
            kv.k_scale_cache,
            kv.v_scale_cache,
            kv.k_block_scale,
            kv.v_block_scale,
            op.mask.attn_mask,
            op.bias.attn_bias,
            op.bias.qq_bias,
            op.bias.alibi_slopes,
            op.sinks};
  }
  Views operator()(const DifferentialOp& op) const {
    Views views = (*this)(op.attention);
    views.push_back(op.norm_weight);
    return views;
  }
  Views operator()(const MlaOp& op) const { return {op.query, op.kv_cache, op.w_uk, op.w_uv}; }
  Views operator()(const MlaSparseOp& op) const {
    Views views = (*this)(op.mla);
    views.push_back(op.sinks);
    return views;
  }
  Views operator()(const IndexerOp& op) const { return {op.query, op.key, op.weights, op.k_scale}; }
  Views operator()(const MergeStatesOp& op) const { return {op.out_parts, op.lse_parts}; }
  Views operator()(const CacheWriteOp& op) const {
    return {op.key,
            op.value,
            op.cache.key,
            op.cache.value,
            op.cache.k_scale_cache,
            op.cache.v_scale_cache};
  }
  Views operator()(const MlaCacheWriteOp& op) const { return {op.kv_c, op.k_pe, op.kv_cache}; }
};

bool uses_device_memory(const Operation& operation) {
  const std::vector<TensorView> views = std::visit(DataTensors{}, operation);
  return std::any_of(views.begin(), views.end(),
                     [](const TensorView& v) { return v.space == MemorySpace::kDevice; });
}

}  // namespace

std::vector<std::string> unsupported_reasons(const Capabilities& capabilities,
                                             const AttentionProblem& problem) {
  std::vector<std::string> reasons;
  if (!contains(capabilities.operations, problem.kind())) {
    reasons.push_back(fmt::format("operation {} not supported", name(problem.kind())));
    return reasons;
  }
  if (!capabilities.device_memory && uses_device_memory(problem.operation())) {
    reasons.push_back("device memory not supported");
  }
  if (const AttentionOp* op = problem.attention()) attention_reasons(capabilities, *op, reasons);
  return reasons;
}

ExecSpec honoured_exec(const Capabilities& capabilities, const ExecSpec& asked) {
  ExecSpec honoured;
  if (capabilities.honours_splits) {
    honoured.num_splits = asked.num_splits;
    honoured.kv_chunk = asked.kv_chunk;
  }
  if (capabilities.honours_common_prefix) {
    honoured.common_prefix_len = asked.common_prefix_len;
    honoured.has_common_prefix = asked.has_common_prefix;
  }
  if (capabilities.honours_dcp) {
    honoured.dcp_size = asked.dcp_size;
    honoured.dcp_interleave = asked.dcp_interleave;
  }
  return honoured;
}

}  // namespace attn
