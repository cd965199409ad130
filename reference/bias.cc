#include "reference/bias.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace attn::reference {
namespace {

double alibi(AlibiForm form, double slope, const RowPosition& at, std::int64_t k) {
  const auto distance = static_cast<double>(at.q - k);
  switch (form) {
    case AlibiForm::kNone:
      return 0.0;
    case AlibiForm::kRow:
      return slope * -distance;
    case AlibiForm::kContext:
      return slope * static_cast<double>(k - at.context_len);
    case AlibiForm::kZero:
      return slope * static_cast<double>(k);
    case AlibiForm::kAbs:
      return -slope * std::fabs(distance);
    case AlibiForm::kSqrt:
      return k <= at.q ? -slope * std::sqrt(distance) : 0.0;
  }
  return 0.0;
}

double attn_bias(const TensorView& bias, const RowPosition& at, std::int64_t head, std::int64_t k) {
  if (!bias.present()) return 0.0;
  const auto index = [&](int axis, std::int64_t i) { return bias.shape[axis] == 1 ? 0 : i; };
  return value_at(bias, index(0, at.request), index(1, head), index(2, at.row), index(3, k));
}

double qq_bias(const TensorView& bias, const RowPosition& at, std::int64_t k) {
  if (!bias.present()) return 0.0;
  const std::int64_t column = k - at.context_len;
  const std::int64_t size = bias.shape[0];
  const bool inside = 0 <= column && column < size && at.row < size;
  return inside ? value_at(bias, at.row, column) : 0.0;
}

}  // namespace

std::array<double, 3> bias_terms(const BiasSpec& bias, const RowPosition& at, std::int64_t head,
                                 std::int64_t k) {
  const double slope =
      bias.alibi_form == AlibiForm::kNone ? 0.0 : value_at(bias.alibi_slopes, head);
  return {alibi(bias.alibi_form, slope, at, k), attn_bias(bias.attn_bias, at, head, k),
          qq_bias(bias.qq_bias, at, k)};
}

bool any_masks(const std::array<double, 3>& terms) {
  return std::find(terms.begin(), terms.end(), -std::numeric_limits<double>::infinity()) !=
         terms.end();
}

}  // namespace attn::reference
