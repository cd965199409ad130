// Multi-head latent attention: both forms, plain and quantised caches, parts.
#include <utility>

#include "golden/questions/latent_setup.h"
#include "golden/questions/other_questions.h"

namespace attn::questions {
namespace {

Question mla_question(std::string id, std::string name, std::string scenario,
                      std::vector<std::string> rulings, const LatentSetup& setup) {
  Question question = drawn_question(std::move(id), std::move(name), std::move(scenario),
                                     std::move(rulings), setup.source);
  question.operation = draw_mla(setup, question.memory);
  return question;
}

void add_absorbed(std::vector<Question>& to) {
  to.push_back(
      mla_question("mla-absorbed-decode", "absorbed form, one new token each, blocks out of order",
                   "latent and rope part swapped, or a scale from the latent size",
                   {"mla_absorbed", "mla_scale", "latent_first_rope_last", "block_permutation"},
                   {.source = {Family::kPermutedBlocks, 0x3a01},
                    .query_lens = {1, 1, 1},
                    .seq_lens = {9, 4, 13},
                    .num_heads = 4,
                    .dtype = DType::kBF16,
                    .cache_dtype = DType::kBF16,
                    .blocks = {.permuted = true, .unused_tail = true}}));
  to.push_back(
      mla_question("mla-absorbed-prefill", "absorbed form, a prompt and a chunk",
                   "a causal mask that ignores the context of a chunk",
                   {"mla_absorbed", "mla_scale", "bottom_right"},
                   {.source = {Family::kBell, 0x3a02}, .query_lens = {5, 3}, .seq_lens = {5, 8}}));
  to.push_back(mla_question("mla-absorbed-non_causal", "absorbed form without a causal mask",
                            "a causal mask that cannot be switched off",
                            {"mla_absorbed", "noncausal_sees_all"},
                            {.source = {Family::kUniform, 0x3a03},
                             .query_lens = {3, 2},
                             .seq_lens = {6, 2},
                             .causal = false}));
}

void add_absorbed_parts(std::vector<Question>& to) {
  const Source poisoned = {Family::kPoisoned, 0x3a04};
  to.push_back(mla_question("mla-absorbed-kv_chunk",
                            "absorbed form in parts of three keys, poisoned memory",
                            "a wrong lse in the merge of parts; slots behind the last key read",
                            {"mla_absorbed", "split_equals_one_pass", "masked_never_read"},
                            {.source = poisoned,
                             .query_lens = {1, 4},
                             .seq_lens = {7, 10},
                             .blocks = {.permuted = true, .unused_tail = true},
                             .fill = drawn_fill(poisoned),
                             .exec = {.kv_chunk = 3}}));
  to.back().flags = {"poisoned"};
  to.push_back(
      mla_question("mla-absorbed-empty", "absorbed form with rows that see nothing",
                   "rows before position 0, of a request without keys, and a request without rows",
                   {"mla_absorbed", "empty_row_zero", "q_len_gt_S", "q_len_zero", "seq_len_zero"},
                   {.source = {Family::kBell, 0x3a05},
                    .query_lens = {3, 1, 0},
                    .seq_lens = {1, 0, 4},
                    .blocks = {.unused_tail = true}}));
  to.back().flags = {"q_len_gt_seq_len", "seq_len_zero"};
}

void add_expanded(std::vector<Question>& to) {
  to.push_back(mla_question("mla-expanded-prefill", "expanded form, a prompt and a chunk",
                            "projections transposed, or rope first",
                            {"mla_expanded", "mla_scale", "latent_first_rope_last"},
                            {.source = {Family::kBell, 0x3a06},
                             .query_lens = {4, 2},
                             .seq_lens = {4, 7},
                             .form = MlaForm::kExpanded}));
  to.push_back(mla_question("mla-expanded-decode", "expanded form, one new token each, in parts",
                            "a decode path that is not the prefill path; parts merged before the "
                            "values are projected",
                            {"mla_expanded", "mla_scale", "split_equals_one_pass"},
                            {.source = {Family::kBell, 0x3a07},
                             .query_lens = {1, 1},
                             .seq_lens = {11, 6},
                             .head_size_v = 24,
                             .form = MlaForm::kExpanded,
                             .dtype = DType::kBF16,
                             .cache_dtype = DType::kBF16,
                             .exec = {.kv_chunk = 4}}));
}

void add_quantised(std::vector<Question>& to) {
  to.push_back(mla_question("mla-fp8_e4m3", "absorbed form, e4m3 cache with one scale",
                            "a scale applied to keys and not to values, or not to the rope part",
                            {"mla_absorbed", "kv_scales"},
                            {.source = {Family::kBell, 0x3a08},
                             .query_lens = {1, 2},
                             .seq_lens = {6, 9},
                             .dtype = DType::kBF16,
                             .cache_dtype = DType::kF8E4M3FN,
                             .k_scale = true}));
  to.push_back(mla_question("mla-fp8_ds_mla", "absorbed form, rows with scales of their own",
                            "a group's scale used for its neighbour; rope taken for codes",
                            {"mla_absorbed", "mla_scale", "fp8_ds_mla_layout"},
                            {.source = {Family::kBell, 0x3a09},
                             .query_lens = {1, 2},
                             .seq_lens = {3, 6},
                             .num_heads = 1,
                             .latent = kDsMlaLatent,
                             .rope = kDsMlaRope,
                             .nope = 128,
                             .dtype = DType::kBF16,
                             .cache_dtype = DType::kBF16,
                             .encoding = KvEncoding::kFp8DsMla,
                             .blocks = {.permuted = true, .unused_tail = true},
                             .fill = Fill::kNaN}));
  to.back().flags = {"poisoned"};
}

}  // namespace

void add_mla_questions(std::vector<Question>& to) {
  add_absorbed(to);
  add_absorbed_parts(to);
  add_expanded(to);
  add_quantised(to);
}

}  // namespace attn::questions
