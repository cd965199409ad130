#include "optimized/cpu/row_terms.h"

#include <bit>
#include <cmath>
#include <limits>

#include "optimized/cpu/tile_kernel.h"

namespace attn::cpu {
namespace {

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// Calls body(j) for every set bit, from the lowest.
template <class Body>
void for_each_bit(std::uint64_t bits, const Body& body) {
  for (; bits != 0; bits &= bits - 1) body(std::countr_zero(bits));
}

std::uint64_t bit(int j) { return std::uint64_t{1} << j; }

}  // namespace

RowTerms::RowTerms(const AttentionOp& op, std::int64_t request, std::int64_t local_row,
                   std::int64_t head)
    : scale_(op.scale),
      soft_cap_(op.logits_soft_cap),
      mask_(element_row(op.mask.attn_mask, request, local_row, head)),
      bias_(element_row(op.bias.attn_bias, request, local_row, head)),
      alibi_form_(op.bias.alibi_form),
      context_len_(op.context_len(request)),
      position_(context_len_ + local_row) {
  if (alibi_form_ != AlibiForm::kNone) slope_ = value_at(op.bias.alibi_slopes, head);
  const TensorView& tree = op.bias.qq_bias;
  if (tree.present() && local_row < tree.shape[0]) {
    tree_bias_ = {tree.at(local_row), tree.stride_bytes[1], tree.dtype};
    tree_size_ = tree.shape[1];
  }
}

RowTerms::ElementRow RowTerms::element_row(const TensorView& view, std::int64_t request,
                                           std::int64_t local_row, std::int64_t head) {
  if (!view.present()) return {};
  const auto index = [&view](int axis, std::int64_t i) { return view.shape[axis] == 1 ? 0 : i; };
  return {view.at(index(0, request), index(1, head), index(2, local_row)),
          view.shape[3] == 1 ? 0 : view.stride_bytes[3], view.dtype};
}

double RowTerms::element(const ElementRow& row, std::int64_t k) {
  return decode(row.dtype, load_code(row.dtype, row.data + k * row.stride_bytes));
}

std::uint64_t RowTerms::finish(std::int64_t first, std::uint64_t keys, float* scores) const {
  if (mask_.data != nullptr) keys = drop_masked(first, keys);
  scale(scores);
  if (soft_cap_ != 0.0) cap(scores);
  const bool biased =
      bias_.data != nullptr || tree_bias_.data != nullptr || alibi_form_ != AlibiForm::kNone;
  if (biased) keys = add_biases(first, keys, scores);
  constexpr float kMasked = -std::numeric_limits<float>::infinity();
  std::uint64_t minus_infinite = 0;
  for (int j = 0; j < kTileKeys; ++j) {
    minus_infinite |= static_cast<std::uint64_t>(scores[j] == kMasked) << j;
  }
  keys &= ~minus_infinite;
  if (keys != ~std::uint64_t{0}) {
    for (int j = 0; j < kTileKeys; ++j) scores[j] = (keys >> j & 1) != 0 ? scores[j] : kMasked;
  }
  return keys;
}

std::uint64_t RowTerms::drop_masked(std::int64_t first, std::uint64_t keys) const {
  std::uint64_t kept = keys;
  for_each_bit(keys, [&](int j) {
    if (mask_.data[(first + j) * mask_.stride_bytes] == std::byte{0}) kept &= ~bit(j);
  });
  return kept;
}

// In double, so that a scale beyond float32 meets its dot product before anything overflows.
void RowTerms::scale(float* scores) const {
  for (int j = 0; j < kTileKeys; ++j) {
    scores[j] = static_cast<float>(static_cast<double>(scores[j]) * scale_);
  }
}

// c * tanh(s / c). Where |s / c| < 2^-13 this is s to 2^-27, also for caps beyond float32.
void RowTerms::cap(float* scores) const {
  for (int j = 0; j < kTileKeys; ++j) {
    const double ratio = static_cast<double>(scores[j]) / soft_cap_;
    if (std::fabs(ratio) < 0x1p-13) continue;
    const float saturated = std::tanh(static_cast<float>(ratio));
    scores[j] = static_cast<float>(soft_cap_ * static_cast<double>(saturated));
  }
}

// All terms are summed in double and rounded with the score once. A term of -inf masks whatever the
// score is.
std::uint64_t RowTerms::add_biases(std::int64_t first, std::uint64_t keys, float* scores) const {
  std::uint64_t kept = keys;
  for_each_bit(keys, [&](int j) {
    const std::int64_t k = first + j;
    double sum = 0.0;
    bool masked = false;
    const auto add = [&](double term) {
      masked = masked || term == kMinusInfinity;
      sum += term;
    };
    if (alibi_form_ != AlibiForm::kNone) add(alibi(k));
    if (bias_.data != nullptr) add(element(bias_, k));
    const std::int64_t column = k - context_len_;
    if (column >= 0 && column < tree_size_) add(element(tree_bias_, column));
    if (masked) kept &= ~bit(j);
    scores[j] = static_cast<float>(static_cast<double>(scores[j]) + sum);
  });
  return kept;
}

double RowTerms::alibi(std::int64_t k) const {
  const auto distance = static_cast<double>(position_ - k);
  switch (alibi_form_) {
    case AlibiForm::kNone:
      return 0.0;
    case AlibiForm::kRow:
      return slope_ * -distance;
    case AlibiForm::kContext:
      return slope_ * static_cast<double>(k - context_len_);
    case AlibiForm::kZero:
      return slope_ * static_cast<double>(k);
    case AlibiForm::kAbs:
      return -slope_ * std::fabs(distance);
    case AlibiForm::kSqrt:
      return k <= position_ ? -slope_ * std::sqrt(distance) : 0.0;
  }
  return 0.0;
}

}  // namespace attn::cpu
