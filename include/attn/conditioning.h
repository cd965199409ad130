// Conditioning sums: how sensitive every element of an answer is to rounding, whatever arithmetic
// computes it. Error bounds of all precision contracts are evaluated from them.
//
// One row = one token and query head; sums over its visible keys, with multiplicity. With u the
// final logits (after cap and biases), m their maximum with the sink, L the log-sum-exp with the
// sink, p = e^(u - L), d = m - u, and a = |scale| * sum_d |q_d * k_d| (of expanded MLA: of the
// products with w_uk, and |k_d|, |v_j| stand for sum_l |c_l * w_uk_ld|, sum_l |c_l * w_uv_lj|,
// which bounds both ways of computing it):
//
//   cond_pv   sum p |v_j|        cond_pav  sum p a |v_j|
//   cond_puv  sum p d |v_j|      cond_v    sum |v_j|
//
// A stored value is never below the true one, but for m, L and m_keys, which are the nearest
// numbers, and the mass. A row without a visible key has zeros (m and L the sink or -inf, m_keys
// -inf); a row whose answer is NaN or whose L is +inf has +inf everywhere but in `visible` and
// `span`.
#pragma once

#include <vector>

#include "attn/output.h"
#include "attn/problem.h"

namespace attn {

// Places of the last axis of cond_row.
enum RowField : int {
  kRowMax,           // m
  kRowLse,           // L, natural log
  kRowVisible,       // number of visible keys
  kRowSpan,          // last - first visible position + 1; of a sparse list: places of the list
  kRowMass,          // sum p, without the sink; never above the true one: it divides
  kRowPa,            // sum p a
  kRowPd,            // sum p d
  kRowSinkDistance,  // p_sink * |sink - m_keys|, 0 without a sink
  kRowAMax,          // max a
  kRowDMax,          // max of d and |sink - m_keys|
  kRowBiasMax,       // max over keys of the sum of |bias terms|
  kRowQueryL1,       // |scale| * sum |q_d|
  kRowKeyL1,         // |scale| * max over keys of sum |k_d|
  kRowQueryMax,      // max |q_d|
  kRowKeyMax,        // max |k_d|, visible keys
  kRowValueMax,      // max |v_j|, visible keys
  kRowKeysMax,       // m_keys: m without the sink
  kNumRowFields
};

// The conditioning sums the operation has, in the order of their names:
//
//   attention, mla, mla_sparse  cond_pav, cond_puv, cond_pv, cond_v  f32, shape of out
//                               cond_row  f64 [num_tokens, num_heads, kNumRowFields]
//   merge_states                the same without cond_pav; keys are the parts that are not empty,
//                               u their natural log-sum-exps, a = 0
//   differential                the same with a leading axis of 2 (both softmaxes), and
//                               cond_o  f64: their outputs before the difference
//   indexer                     cond_ix  f32 [num_tokens, num_keys] = sum_h |w_h| sum_d |q_hd k_d|,
//                               0 for keys outside the row's range
//   cache writes                none: they are compared bit for bit
std::vector<OutputSpec> conditioning_specs(const AttentionProblem& problem);

}  // namespace attn
