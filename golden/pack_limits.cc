#include "golden/pack_limits.h"

#include <fmt/core.h>

#include "attn/error.h"

namespace attn::golden {
namespace {

struct Limits {
  std::int64_t cases;
  std::int64_t folder_bytes;
  std::int64_t case_bytes;
  std::int64_t multiply_adds;  // of a case
};

constexpr Limits kCore = {200, 4'000'000, 64'000, std::int64_t{1} << 20};
constexpr Limits kExtended = {2000, 256'000'000, 256'000'000, std::int64_t{1} << 26};

const Limits& limits_of(const std::string& tier) { return tier == "core" ? kCore : kExtended; }

void expect_at_most(std::string_view what, std::int64_t value, std::int64_t limit,
                    const std::string& tier) {
  if (value > limit) {
    throw Error(fmt::format("{} are {}, tier {} allows {}", what, value, tier, limit));
  }
}

std::int64_t pairs(const TensorView& query_start_loc, const TensorView& seq_lens) {
  std::int64_t sum = 0;
  for (std::int64_t r = 0; r < seq_lens.shape[0]; ++r) {
    sum += (int_at(query_start_loc, r + 1) - int_at(query_start_loc, r)) * int_at(seq_lens, r);
  }
  return sum;
}

struct Products {
  std::int64_t operator()(const AttentionOp& op) const {
    return pairs(op.query_start_loc, op.seq_lens) * op.num_heads() *
           (op.head_size() + op.head_size_v());
  }
  std::int64_t operator()(const DifferentialOp& op) const {
    const AttentionOp& a = op.attention;
    return pairs(a.query_start_loc, a.seq_lens) * a.num_heads() *
           (a.head_size() + 2 * a.head_size_v());
  }
  std::int64_t operator()(const MlaOp& op) const {
    return pairs(op.query_start_loc, op.seq_lens) * op.query.shape[1] * per_pair(op);
  }
  std::int64_t operator()(const MlaSparseOp& op) const {
    return op.topk_indices.shape[0] * op.topk_indices.shape[1] * op.mla.query.shape[1] *
           per_pair(op.mla);
  }
  std::int64_t operator()(const IndexerOp& op) const {
    return op.query.num_units() * op.key.shape[0];
  }
  std::int64_t operator()(const MergeStatesOp& op) const { return op.out_parts.num_units(); }
  std::int64_t operator()(const CacheWriteOp&) const { return 0; }
  std::int64_t operator()(const MlaCacheWriteOp&) const { return 0; }

 private:
  // The latent counts for keys and for values, also where the definition expands it.
  static std::int64_t per_pair(const MlaOp& op) {
    return 2 * op.kv_lora_rank + op.qk_rope_head_dim;
  }
};

}  // namespace

std::int64_t multiply_adds(const AttentionProblem& problem) {
  return std::visit(Products(), problem.operation());
}

void expect_case_within(const std::string& tier, std::int64_t bytes, std::int64_t multiply_adds) {
  const Limits& limits = limits_of(tier);
  expect_at_most("bytes of the file", bytes, limits.case_bytes, tier);
  expect_at_most("multiply-adds", multiply_adds, limits.multiply_adds, tier);
}

void expect_pack_within(const std::string& tier, const PackCounts& counts,
                        std::int64_t folder_bytes) {
  const Limits& limits = limits_of(tier);
  expect_at_most("cases", counts.cases, limits.cases, tier);
  expect_at_most("bytes of the folder", folder_bytes, limits.folder_bytes, tier);
}

}  // namespace attn::golden
