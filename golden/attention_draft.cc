// attention and differential.
#include <fmt/core.h>

#include <iterator>

#include "attn/error.h"
#include "core/hex_float.h"
#include "golden/case_draft.h"
#include "golden/dense_copy.h"

namespace attn::golden {
namespace {

void draft_axes(const AttentionOp& op, CaseDraft& draft) {
  const TensorView& key = op.kv.key;
  const TensorView& value = op.kv.value;
  draft.axis("num_reqs", axis_or_zero(op.seq_lens, 0));
  draft.axis("num_tokens", last_start(op.query_start_loc, axis_or_zero(op.query, 0)));
  draft.axis("num_heads", axis_or_zero(op.query, 1));
  draft.axis("num_kv_heads", axis_or_zero(key, key.rank - 2));
  draft.axis("head_size", axis_or_zero(key, key.rank - 1) * elements_per_unit(key.dtype));
  draft.axis("head_size_v", axis_or_zero(value, value.rank - 1) * elements_per_unit(value.dtype));
}

void draft_mask(const MaskSpec& mask, CaseDraft& draft) {
  const auto attribute = [&](const char* name, std::int64_t value, std::int64_t off) {
    if (value != off) draft.attrs[name] = value;
  };
  draft.attrs["causal"] = mask.causal;
  attribute("window_left", mask.window_left, MaskSpec::kUnbounded);
  attribute("window_right", mask.window_right, MaskSpec::kUnbounded);
  attribute("sink_token_length", mask.sink_token_length, 0);
  attribute("attention_chunk_size", mask.attention_chunk_size, 0);
  attribute("attention_chunk_lookback", mask.attention_chunk_lookback, 0);
  attribute("rswa_window", mask.rswa_window, 0);
  if (mask.mm_prefix_clamp || mask.mm_prefix_ranges.present()) {
    draft.attrs["mm_prefix_clamp"] = mask.mm_prefix_clamp;
  }
  draft.input("causal_per_req", mask.causal_per_req);
  draft.input("rswa_prefix_lens", mask.rswa_prefix_lens);
  draft.input("mm_prefix_ranges", mask.mm_prefix_ranges);
  draft.input("attn_mask", mask.attn_mask);
}

void draft_bias(const BiasSpec& bias, CaseDraft& draft) {
  constexpr const char* kForms[] = {"", "row", "context", "zero", "abs", "sqrt"};
  const auto form = static_cast<std::size_t>(bias.alibi_form);
  if (form >= std::size(kForms)) throw Error(fmt::format("alibi_form {} has no name", form));
  if (form != 0) draft.attrs["alibi_form"] = kForms[form];
  draft.input("alibi_slopes", bias.alibi_slopes);
  draft.input("attn_bias", bias.attn_bias);
  draft.input("qq_bias", bias.qq_bias);
}

}  // namespace

void draft(const AttentionOp& op, CaseDraft& draft) {
  draft_axes(op, draft);
  draft_kv(op.kv, draft);
  draft_mask(op.mask, draft);
  draft_bias(op.bias, draft);
  draft_exec(op.exec, draft);
  draft.attrs["scale"] = to_hex_float(op.scale);
  if (op.logits_soft_cap != 0.0) draft.attrs["logits_soft_cap"] = to_hex_float(op.logits_soft_cap);
  if (op.sinks.present() || !op.lse_includes_sink) {
    draft.attrs["lse_includes_sink"] = op.lse_includes_sink;
  }
  draft.input("query", op.query);
  draft.input("query_start_loc", op.query_start_loc);
  draft.input("seq_lens", op.seq_lens);
  draft.input("sinks", op.sinks);
  draft.input("q_scale", op.q_scale);
  draft.input("output_scale", op.output_scale);
}

void draft(const DifferentialOp& op, CaseDraft& draft) {
  golden::draft(op.attention, draft);
  draft.attrs["diff_lambda"] = to_hex_float(op.lambda);
  draft.attrs["diff_lambda_init"] = to_hex_float(op.lambda_init);
  if (op.eps != 0.0) draft.attrs["diff_eps"] = to_hex_float(op.eps);
  draft.input("diff_norm_weight", op.norm_weight);
}

}  // namespace attn::golden
