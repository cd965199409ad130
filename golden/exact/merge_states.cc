#include "golden/exact/merge_states.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "golden/exact/store_state.h"

namespace attn::exact {
namespace {

// A part is a key with its natural log-sum-exp as logit and its out as value; nothing was
// multiplied to get the logit, so its size is that of the logit in the error bound: 0.
ScoredKey part_as_key(std::int64_t place, double lse, bool base_2, int bits) {
  Real logit(bits, lse);
  if (base_2) logit *= log_of_2(bits);
  return {place, std::move(logit), Real(bits), Real(bits), Real(bits), Real(bits)};
}

}  // namespace

int answer(const MergeStatesOp& op, const Outputs& outputs) {
  const std::int64_t num_heads = op.out_parts.shape[2];
  const std::int64_t size_v = op.out_parts.shape[3];
  return answer_rows(op.out_parts.shape[1] * num_heads, [&](std::int64_t i, int bits) {
    const std::int64_t token = i / num_heads;
    const std::int64_t head = i % num_heads;
    std::vector<std::int64_t> parts;
    std::vector<ScoredKey> keys;
    for (std::int64_t part = 0; part < op.out_parts.shape[0]; ++part) {
      const double lse = value_at(op.lse_parts, part, head, token);
      if (std::isinf(lse)) continue;  // empty, whichever sign
      const auto place = static_cast<std::int64_t>(parts.size());
      keys.push_back(part_as_key(place, lse, op.lse_base_2, bits));
      parts.push_back(part);
    }
    const auto read_out = [&](std::size_t key) {
      Elements out;
      for (std::int64_t j = 0; j < size_v; ++j) {
        out.push(Real(bits, value_at(op.out_parts, parts[key], token, head, j)));
      }
      return out;
    };
    const QuerySize no_query{Real(bits), Real(bits)};
    const RowState state =
        state_of_row(std::move(keys), std::nullopt, no_query, size_v, read_out, bits);
    RoundedRow rounded;
    store_out(rounded, outputs, token, head, state);
    store_lse(rounded, outputs, token, head, state, true);
    store_sums(rounded, outputs, token, head, state);
    return rounded;
  });
}

}  // namespace attn::exact
