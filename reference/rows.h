// Softmax over the keys of every row: what attention, latent attention and differential attention
// share.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "attn/operation.h"
#include "reference/conditioning.h"
#include "reference/softmax.h"

namespace attn::reference {

// Keys and values of a request, decoded; rows of `positions`, columns padded as RowMatrix says.
class KeyValueSource {
 public:
  virtual ~KeyValueSource() = default;
  virtual RowMatrix keys(std::int64_t request, std::int64_t kv_head,
                         std::span<const std::int64_t> positions) const = 0;
  virtual RowMatrix values(std::int64_t request, std::int64_t kv_head,
                           std::span<const std::int64_t> positions) const = 0;

  // Sizes of what keys and values are computed from, for the conditioning sums: of a sum, the sum
  // of the sizes. `keys` and `values` are those of the same positions.
  virtual RowMatrix key_magnitudes(std::int64_t, std::int64_t, std::span<const std::int64_t>,
                                   const RowMatrix& keys) const {
    return keys.cwiseAbs();
  }
  virtual RowMatrix value_magnitudes(std::int64_t, std::int64_t, std::span<const std::int64_t>,
                                     const RowMatrix& values) const {
    return values.cwiseAbs();
  }
};

// An operation's rows without its cache. Fields as in AttentionOp.
struct RowProblem {
  TensorView query;  // [>= num_tokens, num_heads, head_size]
  TensorView q_scale;
  TensorView query_start_loc;
  TensorView seq_lens;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_size_v = 0;
  double scale = 1.0;
  double logits_soft_cap = 0.0;
  MaskSpec mask;
  BiasSpec bias;
  TensorView sinks;
  bool lse_includes_sink = true;
  ExecSpec exec;

  std::int64_t num_heads() const { return query.shape[1]; }
  std::int64_t query_len(std::int64_t request) const {
    return int_at(query_start_loc, request + 1) - int_at(query_start_loc, request);
  }
};

// Receives the answer of one row, or its conditioning sums. Called from several threads, for
// different rows.
using TakeRow = std::function<void(std::int64_t token, std::int64_t head, const State& state)>;
using TakeSums = std::function<void(std::int64_t token, std::int64_t head, const RowSums& sums)>;

// Answers every row; the sums are computed when `take_sums` is given. Cost: products over visible
// keys only, plus one predicate test per (row, key).
void solve_rows(const RowProblem& problem, const KeyValueSource& source, const TakeRow& take_row,
                const TakeSums& take_sums = {});

// Writes a row to outputs [token, head]; the sums only where they are asked for.
TakeRow to_state_of(const Outputs& outputs);
TakeSums to_sums_of(const Outputs& outputs);

}  // namespace attn::reference
