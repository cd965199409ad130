#include "golden/exact/bias.h"

#include <cstdlib>

namespace attn::exact {
namespace {

// What the slope is multiplied by; exact but for the square root.
Real alibi_distance(AlibiForm form, const RowPlace& row, std::int64_t k, int bits) {
  const auto exactly = [&](std::int64_t n) { return Real(bits, static_cast<double>(n)); };
  switch (form) {
    case AlibiForm::kRow:
      return exactly(k - row.position);
    case AlibiForm::kContext:
      return exactly(k - row.context_len);
    case AlibiForm::kZero:
      return exactly(k);
    case AlibiForm::kAbs:
      return exactly(-std::abs(row.position - k));
    case AlibiForm::kSqrt:
      return exactly(0) - sqrt(exactly(row.position - k));
    case AlibiForm::kNone:
      break;
  }
  return exactly(0);
}

}  // namespace

AddedBias added_bias(const BiasSpec& bias, const RowPlace& row, std::int64_t head, std::int64_t k,
                     int bits) {
  AddedBias added{Real(bits), Real(bits)};
  const auto add = [&](const Real& term) {
    added.hides = added.hides || (term.is_infinite() && term.is_negative());
    added.sum += term;
    added.size += abs(term);
  };
  // Keys after the row have no term in the sqrt form, whatever the slope is.
  const bool sqrt_of_later_key = bias.alibi_form == AlibiForm::kSqrt && k > row.position;
  if (bias.alibi_form != AlibiForm::kNone && !sqrt_of_later_key) {
    add(alibi_distance(bias.alibi_form, row, k, bits) *
        Real(bits, value_at(bias.alibi_slopes, head)));
  }
  if (bias.attn_bias.present()) {
    const DType type = bias.attn_bias.dtype;
    add(Real(bits, decode(type, load_code(type, broadcast_at(bias.attn_bias, row, head, k)))));
  }
  if (bias.qq_bias.present()) {
    const std::int64_t nodes = bias.qq_bias.shape[0];
    const std::int64_t column = k - row.context_len;
    if (row.row < nodes && column >= 0 && column < nodes) {
      add(Real(bits, value_at(bias.qq_bias, row.row, column)));
    }
  }
  return added;
}

}  // namespace attn::exact
