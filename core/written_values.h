// Checks of what is written into a cache.
#pragma once

#include <string_view>

#include "attn/view.h"

namespace attn::checks {

// At least as many rows (first axis) as slots.
void expect_rows(std::string_view what, const TensorView& rows, const TensorView& slot_mapping);

// A scale that values are divided by: no element is 0.
void expect_no_zero_scale(std::string_view what, const TensorView& scale);

// Every element of a row that is written is finite: a scale is computed from their largest. `rows`
// has two or three axes; what lies on a device is not looked at.
void expect_finite_rows(std::string_view what, const TensorView& rows,
                        const TensorView& slot_mapping);

}  // namespace attn::checks
