// Small random problems for the tests of the CPU backend, over every attribute, layout and
// encoding.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "attn/dtype.h"
#include "attn/operation.h"

namespace attn::cpu_tests {

using Shape = std::vector<std::int64_t>;

// Tensors with stable addresses.
class Memory {
 public:
  // Every byte `fill`; `spacing` units from one element of the last axis to the next.
  TensorView add(DType dtype, const Shape& shape, std::uint8_t fill = 0, std::int64_t spacing = 1);

  // Contiguous, with these values in C order.
  TensorView list(DType dtype, const Shape& shape, const std::vector<double>& values);

 private:
  std::deque<std::vector<std::byte>> tensors_;
};

// Overwrites one element of a view of a Memory.
template <class... Index>
void put(const TensorView& view, double value, Index... index) {
  store_code(view.dtype, encode(view.dtype, value, Overflow::kInfinity),
             const_cast<std::byte*>(view.at(index...)));
}

struct RandomProblem {
  Memory memory;
  AttentionOp op;
};

// The same problem for the same seed. Everything no row may read (padding rows, slots without a
// token, block table tails, the gaps of strided tensors) is filled with bytes `unread`.
void make_random_problem(std::uint64_t seed, std::uint8_t unread, RandomProblem& problem);

// Request r of `op` alone, in a batch of its own.
AttentionOp alone(const AttentionOp& op, std::int64_t r, Memory& memory);

}  // namespace attn::cpu_tests
