#include "attn/error.h"
#include "golden/case_operation.h"
#include "golden/kv_cache_inputs.h"

namespace attn::golden {
namespace {

MaskSpec take_mask(CaseInputs& inputs) {
  const CaseAttributes& attrs = inputs.attrs();
  MaskSpec mask;
  mask.causal = attrs.causal.value_or(false);
  mask.causal_per_req = inputs.take_if_given("causal_per_req");
  mask.window_left = attrs.window_left.value_or(MaskSpec::kUnbounded);
  mask.window_right = attrs.window_right.value_or(MaskSpec::kUnbounded);
  mask.sink_token_length = attrs.sink_token_length;
  mask.attention_chunk_size = attrs.attention_chunk_size;
  mask.attention_chunk_lookback = attrs.attention_chunk_lookback;
  mask.rswa_window = attrs.rswa_window;
  mask.rswa_prefix_lens = inputs.take_if_given("rswa_prefix_lens");
  mask.mm_prefix_ranges = inputs.take_if_given("mm_prefix_ranges");
  mask.mm_prefix_clamp = attrs.mm_prefix_clamp;
  mask.attn_mask = inputs.take_if_given("attn_mask");
  return mask;
}

BiasSpec take_bias(CaseInputs& inputs) {
  BiasSpec bias;
  bias.alibi_form = inputs.attrs().alibi_form;
  bias.alibi_slopes = inputs.take_if_given("alibi_slopes");
  bias.attn_bias = inputs.take_if_given("attn_bias");
  bias.qq_bias = inputs.take_if_given("qq_bias");
  return bias;
}

// What attention and differential share; not sinks, output_scale and exec.
AttentionOp take_scores(CaseInputs& inputs) {
  AttentionOp op;
  op.query = inputs.take("query", 3);
  op.query_start_loc = inputs.take("query_start_loc", 1);
  op.seq_lens = inputs.take("seq_lens", 1);
  op.kv = take_kv(inputs);
  op.scale = inputs.attrs().scale.value_or(1.0);
  op.logits_soft_cap = inputs.attrs().logits_soft_cap;
  op.mask = take_mask(inputs);
  op.bias = take_bias(inputs);
  op.q_scale = inputs.take_if_given("q_scale");
  return op;
}

}  // namespace

AttentionOp attention_operation(CaseInputs& inputs) {
  const bool paged = inputs.attrs().kv_layout != KvLayout::kVarlen;
  const std::string context =
      paged ? operation_text(OpKind::kAttention) : "operation attention with kv_layout varlen";
  inputs.expect_attributes(
      {"kv_layout", paged ? "kv_cache_layout" : "", paged ? "block_size" : "", "kv_cache_dtype",
       "scale", "causal", "window_left", "window_right", "sink_token_length",
       "attention_chunk_size", "attention_chunk_lookback", "rswa_window", "mm_prefix_clamp",
       "logits_soft_cap", "alibi_form", "lse_includes_sink", "exec"},
      context);
  AttentionOp op = take_scores(inputs);
  op.sinks = inputs.take_if_given("sinks");
  op.lse_includes_sink = inputs.attrs().lse_includes_sink;
  op.output_scale = inputs.take_if_given("output_scale");
  op.exec = inputs.attrs().exec;
  inputs.expect_all_taken(context);
  return op;
}

DifferentialOp differential_operation(CaseInputs& inputs) {
  if (inputs.attrs().kv_layout != KvLayout::kVarlen) {
    throw Error("case.attrs.kv_layout must be varlen for operation differential");
  }
  const std::string context = operation_text(OpKind::kDifferential);
  inputs.expect_attributes(
      {"kv_layout", "kv_cache_dtype", "scale", "causal", "window_left", "window_right",
       "sink_token_length", "attention_chunk_size", "attention_chunk_lookback", "rswa_window",
       "mm_prefix_clamp", "logits_soft_cap", "alibi_form", "diff_lambda", "diff_lambda_init",
       "diff_eps"},
      context);
  DifferentialOp op;
  op.attention = take_scores(inputs);
  op.lambda = inputs.attrs().diff_lambda;
  op.lambda_init = inputs.attrs().diff_lambda_init;
  op.eps = inputs.attrs().diff_eps;
  op.norm_weight = inputs.take_if_given("diff_norm_weight");
  inputs.expect_all_taken(context);
  return op;
}

}  // namespace attn::golden
