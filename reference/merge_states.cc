#include "reference/merge_states.h"

#include <cmath>
#include <numbers>
#include <optional>
#include <vector>

#include "attn/parallel.h"
#include "reference/conditioning.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

void merge_row(const MergeStatesOp& op, std::int64_t token, std::int64_t head,
               const Outputs& outputs) {
  const std::int64_t num_parts = op.out_parts.shape[0];
  const std::int64_t size = op.out_parts.shape[3];
  RowMatrix values = zero_rows(static_cast<std::size_t>(num_parts), size);
  ScoredKeys live;
  for (std::int64_t p = 0; p < num_parts; ++p) {
    const double lse = value_at(op.lse_parts, p, head, token);
    if (std::isinf(lse)) continue;
    for (std::int64_t d = 0; d < size; ++d)
      values(p, d) = value_at(op.out_parts, p, token, head, d);
    live.score.push_back(op.lse_base_2 ? lse * std::numbers::ln2 : lse);
    live.value_row.push_back(p);
  }
  const State state = attend(live, values, size, std::nullopt, true);
  store_state(outputs, token, head, state);
  if (!wants_sums(outputs)) return;
  // Live parts are numbered; they have neither query nor keys.
  std::vector<std::int64_t> places(static_cast<std::size_t>(num_parts));
  for (std::size_t j = 0; j < live.value_row.size(); ++j) {
    places[static_cast<std::size_t>(live.value_row[j])] = static_cast<std::int64_t>(j);
  }
  const RowMatrix nothing = zero_rows(static_cast<std::size_t>(num_parts), 0);
  const Magnitudes no_keys = with_row_sizes(nothing);
  const Magnitudes value_sizes = with_row_sizes(values.cwiseAbs());
  const ConditionedRow row = {live, {}, places, nothing, no_keys, value_sizes, 1.0, std::nullopt};
  store_sums(outputs, row_sums(row, state), token, head);
}

}  // namespace

void merge_states(const MergeStatesOp& op, const Outputs& outputs) {
  const std::int64_t heads = op.out_parts.shape[2];
  parallel_for(op.out_parts.shape[1], [&](std::int64_t token, int) {
    for (std::int64_t head = 0; head < heads; ++head) {
      merge_row(op, token, head, outputs);
    }
  });
}

}  // namespace attn::reference
