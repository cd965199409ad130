#include "core/written_values.h"

#include <cmath>

#include "core/checks.h"

namespace attn::checks {

void expect_rows(std::string_view what, const TensorView& rows, const TensorView& slot_mapping) {
  if (rows.shape[0] < slot_mapping.shape[0]) {
    fail("{} has {} rows, slot_mapping {}", what, rows.shape[0], slot_mapping.shape[0]);
  }
}

void expect_no_zero_scale(std::string_view what, const TensorView& scale) {
  for (std::int64_t i = 0; i < scale.shape[0]; ++i) {
    if (value_at(scale, i) == 0.0) fail("{}[{}] is 0, values are divided by it", what, i);
  }
}

void expect_finite_rows(std::string_view what, const TensorView& rows,
                        const TensorView& slot_mapping) {
  if (rows.space != MemorySpace::kHost) return;
  const std::int64_t heads = rows.rank == 3 ? rows.shape[1] : 1;
  for (std::int64_t t = 0; t < slot_mapping.shape[0]; ++t) {
    if (int_at(slot_mapping, t) < 0) continue;
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = 0; d < rows.shape[rows.rank - 1]; ++d) {
        const double value = rows.rank == 3 ? value_at(rows, t, h, d) : value_at(rows, t, d);
        if (std::isfinite(static_cast<float>(value))) continue;  // scales are computed in float32
        if (rows.rank == 3) fail("{}[{},{},{}] is {}, must be finite", what, t, h, d, value);
        fail("{}[{},{}] is {}, must be finite", what, t, d, value);
      }
    }
  }
}

}  // namespace attn::checks
