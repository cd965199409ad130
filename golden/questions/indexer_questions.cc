// The logits that choose keys for sparse attention.
#include "golden/questions/indexer_setup.h"
#include "golden/questions/other_questions.h"

namespace attn::questions {
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
