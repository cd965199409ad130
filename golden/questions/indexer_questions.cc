// The logits that choose keys for sparse attention.
#include <utility>

#include "golden/questions/other_questions.h"

namespace attn::questions {
namespace {

struct IndexerSetup {
  Source source = {};
  std::vector<std::int64_t> k_start = {};  // of each token
  std::vector<std::int64_t> k_end = {};
  std::int64_t num_keys = 9;
  std::int64_t num_heads = 3;
  std::int64_t head_size = 16;
  DType dtype = DType::kF32;
  DType key_dtype = DType::kF32;
  bool k_scale = false;  // f32 [num_keys, 1]
};

IndexerOp draw_indexer(const IndexerSetup& setup, TensorStore& memory) {
  const FamilyValues values(setup.source, 1.0, setup.head_size);
  const auto num_tokens = static_cast<std::int64_t>(setup.k_start.size());
  IndexerOp op;
  op.query = memory.keep(drawn(setup.dtype, {num_tokens, setup.num_heads, setup.head_size},
                               [&](const std::vector<std::int64_t>& at) {
                                 return values.query(
                                     {.position = at[0], .head = at[1], .dim = at[2]}, setup.dtype);
                               }));
  HostTensor keys(setup.key_dtype, {setup.num_keys, setup.head_size});
  for (std::int64_t n = 0; n < setup.num_keys; ++n) {
    for (std::int64_t d = 0; d < setup.head_size; ++d) {
      keys.set_code(n * setup.head_size + d,
                    values.key_code({.position = n, .dim = d}, setup.key_dtype));
    }
  }
  op.key = memory.keep(std::move(keys));
  if (setup.k_scale) {
    op.k_scale = memory.keep(
        drawn(DType::kF32, {setup.num_keys, 1}, [&](const std::vector<std::int64_t>& at) {
          return random_scale(words_at(setup.source, RandomTensor::kKScale, {.position = at[0]}));
        }));
  }
  op.weights = memory.keep(
      drawn(DType::kF32, {num_tokens, setup.num_heads}, [&](const std::vector<std::int64_t>& at) {
        const Place place = {.position = at[0], .head = at[1]};
        return bell(words_at(setup.source, RandomTensor::kWeights, place));
      }));
  op.k_start = memory.keep(int_tensor(setup.k_start));
  op.k_end = memory.keep(int_tensor(setup.k_end));
  return op;
}

}  // namespace

void add_indexer_questions(std::vector<Question>& to) {
  const IndexerSetup ranges = {
      .source = {Family::kBell, 0x3c01}, .k_start = {0, 0, 3, 5, 8}, .k_end = {9, 4, 3, 7, 9}};
  to.push_back(drawn_question("indexer-ranges", "ranges of keys, one of them empty",
                              "an end that counts as inside; negative products not cut at 0",
                              {"indexer_k_end_exclusive"}, ranges.source));
  to.back().operation = draw_indexer(ranges, to.back().memory);

  const IndexerSetup codes = {.source = {Family::kAllCodes, 0x3c02},
                              .k_start = {0, 0, 0, 0},
                              .k_end = {6, 7, 8, 9},
                              .dtype = DType::kBF16,
                              .key_dtype = DType::kF8E4M3FN,
                              .k_scale = true};
  to.push_back(drawn_question("indexer-fp8", "e4m3 keys with a scale each, causal ranges",
                              "the scale of another key; a row that misses its own token",
                              {"indexer_own_token_included", "kv_scales"}, codes.source));
  to.back().operation = draw_indexer(codes, to.back().memory);
}

}  // namespace attn::questions
