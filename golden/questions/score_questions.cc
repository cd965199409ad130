#include <utility>

#include "golden/questions/attention_questions.h"

namespace attn::questions {
namespace {

std::vector<AttentionEntry> tree() {
  return {
      {.id = "tree-siblings",
       .name = "six nodes, two branches, nothing added",
       .scenario = "a node sees its siblings, or the bias is laid over the context",
       .rulings = {"tree_bias_new_tokens_only"},
       .setup = {.source = {Family::kMembership, 0x501},
                 .requests = {{6, 11}},
                 .tree = {.parents = {-1, 0, 0, 1, 1, 2}}}},
      {.id = "tree-added",
       .name = "finite biases on the visible nodes, rows behind the tree, a row before position 0",
       .scenario = "the bias used as a mask only, or laid over rows that are not in the tree",
       .rulings = {"tree_bias_added", "tree_bias_new_tokens_only"},
       .setup = {.source = {Family::kBell, 0x502},
                 .requests = {{4, 9}, {6, 8}, {2, 1}},
                 .num_heads = 1,
                 .tree = {.parents = {-1, 0, 0, 2}, .finite_bias = true}}},
      {.id = "tree-verify-hnd",
       .name = "a tree over a paged context",
       .scenario = "the node beside a branch takes all the weight when it is seen",
       .rulings = {"tree_bias_new_tokens_only", "hnd_layout"},
       .setup = {.source = {Family::kNeedleHidden, 0x503},
                 .requests = {{5, 12}, {5, 9}},
                 .cache = CacheForm::kPagedHnd,
                 .blocks = {.permuted = true},
                 .fill = Fill::kNaN,
                 .tree = {.parents = {-1, 0, 1, 0, 3}}}},
  };
}

std::vector<AttentionEntry> masked() {
  return {
      {.id = "masked-bool",
       .name = "a mask of its own for every request, head and row",
       .scenario = "an axis of the mask read in another order shows as bits of the output",
       .setup = {.source = {Family::kMembership, 0x511},
                 .requests = {{3, 8}, {4, 6}},
                 .mask = {.causal = false, .attn_mask = MaskTensor{}}}},
      {.id = "masked-broadcast",
       .name = "one row of mask for all requests, heads and rows, with columns beyond the keys",
       .scenario = "an axis of length 1 not taken for all, or the mask's width for the length",
       .setup = {.source = {Family::kMembership, 0x512},
                 .requests = {{3, 8}, {4, 6}},
                 .mask = {.attn_mask = MaskTensor{.axes = {.per_request = false,
                                                           .per_head = false,
                                                           .per_row = false,
                                                           .unused_columns = 3}}}}},
      {.id = "masked-bias",
       .name = "a float16 bias of its own for every head, NaN in columns beyond the keys",
       .scenario = "the bias scaled like a score, or columns read that no key has",
       .setup = {.source = {Family::kBell, 0x513},
                 .requests = {{3, 8}, {4, 6}},
                 .attn_bias = BiasTensor{.axes = {.per_request = false, .unused_columns = 2},
                                         .dtype = DType::kF16}}},
      {.id = "masked-bias_minus_inf",
       .name = "a bias of -inf hides a quarter of the keys",
       .scenario = "a hidden key beside a visible one takes all the weight when it is seen",
       .setup = {.source = {Family::kNeedleHidden, 0x514},
                 .requests = {{3, 9}, {4, 7}},
                 .cache = CacheForm::kPagedNhd,
                 .attn_bias = BiasTensor{.axes = {.per_head = false}, .hides = true}}},
  };
}

std::vector<AttentionEntry> softcap() {
  return {
      {.id = "softcap-bias-sink",
       .name = "a cap of 2 below a bias, a mask and a sink",
       .scenario = "cap put after bias or mask, or on the sink",
       .rulings = {"softcap_before_bias", "softcap_before_mask", "sink_not_capped",
                   "softcap_after_scale"},
       .setup = {.source = {Family::kLargeLogits, 0x521},
                 .requests = {{3, 8}, {2, 2}},
                 .soft_cap = 2.0,
                 .attn_bias = BiasTensor{.axes = {.per_request = false}},
                 .sinks = {5.0, -1.0}}},
      {.id = "softcap-alibi",
       .name = "a cap of 1 with ALiBi",
       .scenario = "scale applied twice, or ALiBi inside of the cap",
       .rulings = {"softcap_before_bias", "bias_after_cap", "alibi_row"},
       .setup = {.source = {Family::kBell, 0x522},
                 .requests = {{3, 9}, {1, 6}},
                 .soft_cap = 1.0,
                 .cache = CacheForm::kPagedNhd,
                 .fill = Fill::kNaN,
                 .alibi = AlibiForm::kRow}},
  };
}

// Seen in the log-sum-exp, and with a sink in the output: forms differ by a constant of the row.
std::vector<AttentionEntry> alibi() {
  return {
      {.id = "alibi-row",
       .name = "slope times k - q, six heads",
       .scenario = "another origin moves the log-sum-exp, and with a sink the output",
       .rulings = {"alibi_row", "alibi_slopes_non_pow2"},
       .setup = {.source = {Family::kBell, 0x531},
                 .requests = {{2, 8}, {1, 5}},
                 .num_heads = 6,
                 .num_kv_heads = 3,
                 .alibi = AlibiForm::kRow,
                 .drawn_sinks = true}},
      {.id = "alibi-context",
       .name = "slope times the distance from the end of the context, three heads",
       .scenario = "another origin moves the log-sum-exp, and with a sink the output",
       .rulings = {"alibi_anchor_context", "alibi_slopes_non_pow2"},
       .setup = {.source = {Family::kBell, 0x532},
                 .requests = {{3, 9}, {1, 6}},
                 .num_heads = 3,
                 .num_kv_heads = 3,
                 .head_size = 4,
                 .cache = CacheForm::kPagedNhd,
                 .alibi = AlibiForm::kContext,
                 .drawn_sinks = true}},
      {.id = "alibi-zero",
       .name = "slope times k",
       .scenario = "another origin moves the log-sum-exp, and with a sink the output",
       .rulings = {"alibi_anchor_zero"},
       .setup = {.source = {Family::kUniform, 0x533},
                 .requests = {{3, 10}, {2, 2}},
                 .num_heads = 4,
                 .num_kv_heads = 2,
                 .head_size = 4,
                 .alibi = AlibiForm::kZero,
                 .drawn_sinks = true}},
      {.id = "alibi-abs",
       .name = "minus slope times the distance, not causal",
       .scenario = "a sign that turns for later keys",
       .rulings = {"alibi_abs", "noncausal_sees_all"},
       .setup = {.source = {Family::kBell, 0x534},
                 .requests = {{5, 9}},
                 .mask = {.causal = false},
                 .alibi = AlibiForm::kAbs}},
      {.id = "alibi-sqrt",
       .name = "minus slope times the root of the distance, later keys without, not causal",
       .scenario = "the root of a negative distance makes NaN",
       .rulings = {"alibi_sqrt", "noncausal_sees_all"},
       .setup = {.source = {Family::kBell, 0x535},
                 .requests = {{5, 9}},
                 .mask = {.causal = false},
                 .alibi = AlibiForm::kSqrt}},
      {.id = "alibi-heads12",
       .name = "twelve heads, one decode row",
       .scenario = "one geometric series for all heads instead of two",
       .rulings = {"alibi_row", "alibi_slopes_non_pow2"},
       .setup = {.source = {Family::kUniform, 0x536},
                 .requests = {{1, 11}},
                 .num_heads = 12,
                 .num_kv_heads = 4,
                 .head_size = 4,
                 .alibi = AlibiForm::kRow}},
  };
}

}  // namespace

std::vector<AttentionEntry> score_entries() {
  std::vector<AttentionEntry> entries = tree();
  for (AttentionEntry& entry : masked()) entries.push_back(std::move(entry));
  for (AttentionEntry& entry : softcap()) entries.push_back(std::move(entry));
  for (AttentionEntry& entry : alibi()) entries.push_back(std::move(entry));
  return entries;
}

}  // namespace attn::questions
