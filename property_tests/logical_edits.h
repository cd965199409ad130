// Changes to a problem whose effect on the answer is known.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "property_tests/logical_problem.h"

namespace attn::property_tests {

// (request, query head, local row, key)
using ScorePlace = std::function<bool(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;
using ScoreTerm = std::function<double(std::int64_t, std::int64_t, std::int64_t, std::int64_t)>;

// Hides from every row the keys for which `hidden` holds, besides those that attn_mask hides.
void hide_keys(LogicalProblem& problem, const ScorePlace& hidden);

// Adds `term` to every score, besides attn_bias.
void add_bias(LogicalProblem& problem, const ScoreTerm& term);

// Gives every query head a KV head of its own, a copy of the one it reads.
void repeat_kv_heads(LogicalProblem& problem);

// Puts a key and value of zeros before all others: every position grows by one. attn_mask shows it,
// attn_bias has `bias(head)` for it.
void prepend_zero_key(LogicalProblem& problem, const std::function<double(std::int64_t)>& bias);

// Keeps the keys at `positions` of a request, in their order.
void keep_keys(LogicalRequest& request, const std::vector<std::int64_t>& positions);

// Stores the values instead of the codes: encoding kPlain in `dtype`, no scales, the query in
// `dtype` too. Exact when the products of codes and scales are in that type.
void decode_cache(LogicalProblem& problem, DType dtype);

// Takes key and value `k` of request `r`, all KV heads, from a problem of the same shapes.
void replace_key_and_value(LogicalProblem& problem, const LogicalProblem& other, std::int64_t r,
                           std::int64_t k);

enum class Side { kKey, kValue };

// Makes dim 0 of one row NaN, by its code or, where codes have none, by its scale. Returns how many
// dims that makes NaN (from dim 0).
std::int64_t put_nan(LogicalProblem& problem, Side side, std::int64_t r, std::int64_t k,
                     std::int64_t kv_head);

// A number below `n` as a function of a seed: the i-th of the draws that a property makes besides
// its config.
std::int64_t draw_below(std::uint64_t seed, std::uint64_t i, std::int64_t n);

}  // namespace attn::property_tests
