// The numbers that no finite sum or product reaches.
#pragma once

#include <limits>

namespace attn {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace attn
