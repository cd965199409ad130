// Latent attention over lists of keys.
#include <cmath>
#include <utility>

#include "golden/questions/other_questions.h"
#include "golden/questions/topk_lists.h"

namespace attn::questions {
namespace {

constexpr std::int64_t kListLength = 8;

void add_positions(std::vector<Question>& to) {
  const LatentSetup setup = {.source = {Family::kPermutedBlocks, 0x3b01},
                             .query_lens = {1, 2},
                             .seq_lens = {9, 12},
                             .dtype = DType::kBF16,
                             .cache_dtype = DType::kBF16,
                             .blocks = {.permuted = true, .unused_tail = true}};
  Question question = drawn_question(
      "mla_sparse-request", "lists of positions, found through the block table",
      "positions taken for slots; -1 taken for the last slot; duplicates counted once",
      {"sparse_minus_one_skipped", "sparse_duplicates_count", "block_permutation"}, setup.source);
  MlaSparseOp op;
  op.mla = draw_mla(setup, question.memory);
  op.topk_indices = question.memory.keep(draw_positions(setup, kListLength));
  question.operation = op;
  to.push_back(std::move(question));
}

// Every slot holds a key, also one of the other request. The block table is never read.
void add_slots(std::vector<Question>& to) {
  const LatentSetup setup = {
      .source = {Family::kBell, 0x3b02}, .query_lens = {2, 1}, .seq_lens = {8, 4}};
  Question question = drawn_question(
      "mla_sparse-slot", "lists of slots",
      "slots taken for positions; a table read that has no block",
      {"sparse_minus_one_skipped", "sparse_duplicates_count", "masked_never_read"}, setup.source);
  MlaSparseOp op;
  op.mla = draw_mla(setup, question.memory);
  op.mla.block_table =
      question.memory.keep(drawn(DType::kI32, {2, 2}, [](const std::vector<std::int64_t>&) {
        return static_cast<double>(kUnusedBlock);
      }));
  op.topk_indices =
      question.memory.keep(draw_lists(setup, kListLength, [](std::int64_t) { return 12U; }));
  op.index_space = TopkIndexSpace::kSlot;
  question.operation = op;
  to.push_back(std::move(question));
}

void add_list_lengths(std::vector<Question>& to) {
  const LatentSetup setup = {
      .source = {Family::kUniform, 0x3b03}, .query_lens = {3, 1}, .seq_lens = {7, 5}};
  const std::vector<std::int64_t> kept = {3, 0, kListLength, 5};
  Question question = drawn_question("mla_sparse-topk_lens", "lists cut to a prefix",
                                     "what lies behind the end of a list read as a position",
                                     {"topk_length_prefix", "empty_row_zero"}, setup.source);
  HostTensor lists = draw_positions(setup, kListLength);
  for (std::size_t t = 0; t < kept.size(); ++t) {
    for (std::int64_t i = kept[t]; i < kListLength; ++i) lists.set(kUnusedBlock, t, i);
  }
  MlaSparseOp op;
  op.mla = draw_mla(setup, question.memory);
  op.topk_indices = question.memory.keep(std::move(lists));
  op.topk_lens = question.memory.keep(int_tensor(kept));
  question.operation = op;
  to.push_back(std::move(question));
}

// The second head has no sink; the second row has no key.
void add_sinks(std::vector<Question>& to) {
  const LatentSetup setup = {
      .source = {Family::kBell, 0x3b04}, .query_lens = {1, 2}, .seq_lens = {6, 9}};
  Question question = drawn_question(
      "mla_sparse-sinks", "sinks, one of -inf, and a list of nothing",
      "a sink left out, or NaN from a row without keys",
      {"sink_in_denominator", "sink_minus_inf_is_none", "lse_includes_sink", "empty_row_with_sink"},
      setup.source);
  HostTensor lists = draw_positions(setup, kListLength);
  for (std::int64_t i = 0; i < kListLength; ++i) lists.set(-1.0, 1, i);
  HostTensor sinks = drawn(DType::kF32, {2}, [&](const std::vector<std::int64_t>& at) {
    return 2.0 * bell(words_at(setup.source, RandomTensor::kSinks, {.head = at[0]}));
  });
  sinks.set(-HUGE_VAL, 1);
  MlaSparseOp op;
  op.mla = draw_mla(setup, question.memory);
  op.topk_indices = question.memory.keep(std::move(lists));
  op.sinks = question.memory.keep(std::move(sinks));
  question.operation = op;
  to.push_back(std::move(question));
}

}  // namespace

void add_mla_sparse_questions(std::vector<Question>& to) {
  add_positions(to);
  add_slots(to);
  add_list_lengths(to);
  add_sinks(to);
}

}  // namespace attn::questions
