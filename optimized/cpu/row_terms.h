// From dot products to final scores of one row: scale, soft cap, biases, element masks.
#pragma once

#include <cstdint>

#include "attn/operation.h"

namespace attn::cpu {

// One row: a query token and head of a request. Looks at the problem's tensors; makes no copies.
class RowTerms {
 public:
  RowTerms(const AttentionOp& op, std::int64_t request, std::int64_t local_row, std::int64_t head);

  // `scores` holds the dot products of query and keys [first, first + kTileKeys), `keys` the bits
  // of those the base mask shows. Leaves final scores, -inf for every key that is not visible, and
  // returns the bits of the visible ones. What masked elements hold has no influence.
  std::uint64_t finish(std::int64_t first, std::uint64_t keys, float* scores) const;

 private:
  std::uint64_t drop_masked(std::int64_t first, std::uint64_t keys) const;
  void scale(float* scores) const;
  void cap(float* scores) const;
  std::uint64_t add_biases(std::int64_t first, std::uint64_t keys, float* scores) const;
  double alibi(std::int64_t k) const;

  // A row of a tensor [num_reqs|1, num_heads|1, query_len|1, seq_len|1], or absent.
  struct ElementRow {
    const std::byte* data = nullptr;
    std::int64_t stride_bytes = 0;  // 0 when one element serves every key
    DType dtype = DType::kF32;
  };
  static ElementRow element_row(const TensorView& view, std::int64_t request,
                                std::int64_t local_row, std::int64_t head);
  static double element(const ElementRow& row, std::int64_t k);

  double scale_;
  double soft_cap_;
  ElementRow mask_;
  ElementRow bias_;
  ElementRow tree_bias_;  // indexed by k - context_len
  std::int64_t tree_size_ = 0;
  AlibiForm alibi_form_;
  double slope_ = 0.0;
  std::int64_t context_len_;
  std::int64_t position_;  // absolute
};

}  // namespace attn::cpu
