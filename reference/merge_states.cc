#include "reference/merge_states.h"

#include <cmath>
#include <numbers>
#include <optional>

#include "attn/parallel.h"
#include "reference/store.h"

namespace attn::reference {
namespace {

State union_of_parts(const MergeStatesOp& op, std::int64_t token, std::int64_t head) {
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
  return attend(live, values, size, std::nullopt, true);
}

}  // namespace

void merge_states(const MergeStatesOp& op, const Outputs& outputs) {
  const std::int64_t heads = op.out_parts.shape[2];
  parallel_for(op.out_parts.shape[1], [&](std::int64_t token, int) {
    for (std::int64_t head = 0; head < heads; ++head) {
      store_state(outputs, token, head, union_of_parts(op, token, head));
    }
  });
}

}  // namespace attn::reference
