#include "reference/second/score_bias.h"

#include <cmath>
#include <cstdlib>
#include <limits>

namespace attn::second {
namespace {

long double alibi(AlibiForm form, long double slope, const RowPlace& at, std::int64_t k) {
  const std::int64_t q = at.position();
  switch (form) {
    case AlibiForm::kNone:
      return 0.0L;
    case AlibiForm::kRow:
      return slope * static_cast<long double>(k - q);
    case AlibiForm::kContext:
      return slope * static_cast<long double>(k - at.context);
    case AlibiForm::kZero:
      return slope * static_cast<long double>(k);
    case AlibiForm::kAbs:
      return -slope * static_cast<long double>(std::abs(q - k));
    case AlibiForm::kSqrt:
      return k <= q ? -slope * std::sqrt(static_cast<long double>(q - k)) : 0.0L;
  }
  return 0.0L;
}

}  // namespace

void ScoreBias::add(long double term) {
  sum += term;
  masks = masks || term == -std::numeric_limits<long double>::infinity();
}

BroadcastPlace broadcast_place(const TensorView& view, const RowPlace& at, std::int64_t head,
                               std::int64_t k) {
  BroadcastPlace place{{at.request, head, at.row, k}};
  for (int axis = 0; axis < 4; ++axis) {
    if (view.shape[axis] == 1) place.at[axis] = 0;
  }
  return place;
}

ScoreBias score_bias(const AttentionOp& op, const RowPlace& at, std::int64_t head, std::int64_t k) {
  ScoreBias bias;
  if (op.bias.alibi_form != AlibiForm::kNone) {
    bias.add(alibi(op.bias.alibi_form, value_at(op.bias.alibi_slopes, head), at, k));
  }
  if (const TensorView& added = op.bias.attn_bias; added.present()) {
    const BroadcastPlace place = broadcast_place(added, at, head, k);
    bias.add(value_at(added, place.at[0], place.at[1], place.at[2], place.at[3]));
  }
  if (const TensorView& tree = op.bias.qq_bias; tree.present()) {
    const std::int64_t node = k - at.context;
    if (node >= 0 && node < tree.shape[1] && at.row < tree.shape[0]) {
      bias.add(value_at(tree, at.row, node));
    }
  }
  return bias;
}

}  // namespace attn::second
