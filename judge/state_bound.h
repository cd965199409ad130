// The bound of softmax rows over whole tensors of conditioning sums.
#pragma once

#include <span>

#include "attn/error_bound.h"
#include "judge/softmax_bound.h"

namespace attn::judge {

RowSums row_sums(const TensorView& cond_row, std::int64_t token, std::int64_t head);

// Bounds of out[token, head, :] under `bound`, which is of that row; infinite where there is none.
RowError element_bounds(const RowBound& bound, const ConditioningSums& sums, const TensorView& out,
                        std::int64_t token, std::int64_t head, std::span<double> bounds);

// The same, the row's bound first. A row without a key has bounds 0.
RowError state_row(const SoftmaxBound& bound, const Expectation& expected, std::int64_t token,
                   std::int64_t head, std::span<double> bounds);
RowError probable_state_row(const SoftmaxBound& bound, const Expectation& expected,
                            std::int64_t token, std::int64_t head, std::span<double> bounds);

}  // namespace attn::judge
