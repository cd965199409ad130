#include "judge/exact_lane.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attn/conditioning.h"
#include "judge/row_values.h"

namespace attn::judge {
namespace {

// The stored values, when a row's answer is their weighted mean and nothing else; else absent.
TensorView plain_values(const AttentionProblem& problem) {
  if (const AttentionOp* op = problem.attention()) {
    const bool plain = op->kv.encoding == KvEncoding::kPlain && !op->kv.v_scale.present();
    return plain && !op->sinks.present() ? op->kv.value : TensorView{};
  }
  const auto* sparse = std::get_if<MlaSparseOp>(&problem.operation());
  const auto* mla = sparse != nullptr ? &sparse->mla : std::get_if<MlaOp>(&problem.operation());
  if (mla == nullptr || (sparse != nullptr && sparse->sinks.present())) return {};
  const bool plain = mla->form == MlaForm::kAbsorbed && mla->encoding == KvEncoding::kPlain;
  if (!plain || mla->k_scale.present()) return {};
  return slice(mla->kv_cache, 2, 0, mla->kv_lora_rank);
}

// Whether all finite elements are integers: what no row sees may be poisoned.
bool holds_integers(const TensorView& values) {
  const std::int64_t size = values.shape[values.rank - 1];
  std::vector<double> row(static_cast<std::size_t>(size));
  const std::int64_t rows = size == 0 ? 0 : values.num_units() / size;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::int64_t rest = i;
    const std::byte* from = static_cast<const std::byte*>(values.data);
    for (int axis = values.rank - 2; axis >= 0; --axis) {
      from += rest % values.shape[axis] * values.stride_bytes[axis];
      rest /= values.shape[axis];
    }
    read_values(from, values.dtype, values.stride_bytes[values.rank - 1], size, row.data());
    for (const double x : row) {
      if (std::isfinite(x) && x != std::nearbyint(x)) return false;
    }
  }
  return true;
}

bool caps_inexactly(const AttentionProblem& problem, const Arithmetic& arithmetic) {
  const AttentionOp* op = problem.attention();
  return op != nullptr && op->logits_soft_cap != 0.0 && arithmetic.cap_abs != 0.0;
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::frexp(x, &exponent) == 0.5;
}

bool is_binary32_or_64(NumberFormat format) {
  return format == NumberFormat::kF32 || format == NumberFormat::kF64;
}

// Integers up to it are added exactly: with two bits to spare for instructions that align.
double integers_of(const Summation& sum) {
  return 0.25 / sum.inner.value_or(unit_roundoff(sum.type));
}

// Keys up to which a weight of 1, or of 1/n when normalised, survives its rounding.
double keys_of(const Rounding& p, bool normalized) {
  if (!is_power_of_two(p.scale)) return 0.0;
  if (p.type == NumberFormat::kExact) return 0x1p20;
  if (p.scale > largest_finite(p.type) || p.scale < smallest_normal(p.type)) return 0.0;
  return normalized ? p.scale / smallest_normal(p.type) : 0x1p20;
}

}  // namespace

ExactLane::ExactLane(const AttentionProblem& problem, const Arithmetic& a,
                     const Expectation& expected, DType out_type)
    : sums_row_(expected.sums.row), sums_v_(expected.sums.v), out_type_(out_type) {
  const TensorView values = plain_values(problem);
  const bool merges_exactly = a.splits == 1 || (a.merge_kind == MergeKind::kAccumulators &&
                                                a.merge_part.type == NumberFormat::kExact);
  if (!values.present() || !sums_row_.present() || sums_row_.rank != 3 || !sums_v_.present())
    return;
  value_type_ = values.dtype;
  eligible_ = merges_exactly && !caps_inexactly(problem, a) && a.max_lag == 0.0 &&
              a.p_roundings == 0 && is_binary32_or_64(a.vector) && is_binary32_or_64(a.pv.type) &&
              is_binary32_or_64(a.sum.type) && embeds(value_type_, a.value.type) &&
              embeds(value_type_, a.pv.type) && embeds(value_type_, a.vector) &&
              a.value.scale == 1.0 && a.out.scale == 1.0 && a.out.type == format_of(out_type);
  const std::pair<bool, NumberFormat> flushes[] = {
      {a.flush, a.vector}, {a.value.flush, a.value.type}, {a.out.flush, a.out.type}};
  for (const auto& [flush, format] : flushes) {
    if (flush) smallest_ = std::max(smallest_, smallest_normal(format));
  }
  integer_values_ = eligible_ && holds_integers(values);
  largest_sum_ = std::min(integers_of(a.pv), 0.25 / unit_roundoff(a.vector));
  largest_keys_ = std::min(keys_of(a.p, a.p_normalized), integers_of(a.sum));
}

bool ExactLane::is_zero_row(std::int64_t token, std::int64_t head) const {
  return value_at(sums_row_, token, head, kRowVisible) > 0.0 &&
         value_at(sums_row_, token, head, kRowAMax) == 0.0 &&
         value_at(sums_row_, token, head, kRowDMax) == 0.0 &&
         value_at(sums_row_, token, head, kRowBiasMax) == 0.0;
}

bool ExactLane::is_exact(double expected, double visible, double sum_of_sizes,
                         double& exact) const {
  if (!std::isfinite(expected)) return false;
  if (visible == 1.0) {
    exact = decode(value_type_, encode(value_type_, expected, Overflow::kInfinity));
  } else {
    if (sum_of_sizes > largest_sum_) return false;
    exact = std::nearbyint(expected * visible) / visible;
  }
  const double size = std::fabs(exact);
  return std::fabs(exact - expected) <= 0x1p-40 * std::fabs(expected) &&
         (size == 0.0 || size >= smallest_) &&
         decode(out_type_, encode(out_type_, exact, Overflow::kInfinity)) == exact;
}

bool ExactLane::row(std::int64_t token, std::int64_t head, std::span<const double> out,
                    std::span<double> exact) const {
  if (!sums_row_.present() || sums_row_.rank != 3) return false;
  const bool all_zero =
      std::all_of(out.begin(), out.end(), [](double value) { return value == 0.0; });
  if (all_zero &&
      value_at(sums_row_, token, head, kRowLse) == std::numeric_limits<double>::infinity()) {
    std::fill(exact.begin(), exact.end(), 0.0);
    return true;
  }
  if (!eligible_ || !is_zero_row(token, head)) return false;
  const double visible = value_at(sums_row_, token, head, kRowVisible);
  if (!(visible <= largest_keys_)) return false;
  if (visible != 1.0 && !(integer_values_ && is_power_of_two(visible))) return false;
  for (std::size_t j = 0; j < out.size(); ++j) {
    const double sizes = value_at(sums_v_, token, head, static_cast<std::int64_t>(j));
    if (!is_exact(out[j], visible, sizes, exact[j])) return false;
  }
  return true;
}

}  // namespace attn::judge
