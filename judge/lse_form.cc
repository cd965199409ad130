#include "attn/lse_form.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "attn/error.h"
#include "core/special_values.h"

namespace attn {
namespace {

// log(e^a + e^b).
double log_add(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return kNaN;
  const double high = std::max(a, b);
  const double low = std::min(a, b);
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}

// One row's log-sum-exp; `sink` is -inf when there is none, `counts_sink` what the problem asks.
double translated(double lse, const LseForm& form, double sink, bool counts_sink) {
  if (std::isnan(sink)) return sink;  // of the whole row, counted or not
  if (form.base == LseBase::k2) lse *= std::numbers::ln2;
  const bool from_sink = form.includes_sink && counts_sink && sink == kInf;
  if (form.empty == EmptyLse::kPlusInfinity && lse == kInf && !from_sink) lse = -kInf;
  return counts_sink && !form.includes_sink ? log_add(lse, sink) : lse;
}

}  // namespace

HostTensor reference_lse(const TensorView& lse, const LseForm& form, const TensorView& sinks,
                         bool lse_includes_sink) {
  if (lse.rank != 2) throw Error(fmt::format("lse is {}, expected two axes", to_string(lse)));
  const bool tokens_first = form.layout == LseLayout::kTokensHeads;
  const TensorView by_head = tokens_first ? swap_axes(lse, 0, 1) : lse;
  if (sinks.present() && (sinks.rank != 1 || sinks.shape[0] != by_head.shape[0])) {
    throw Error(fmt::format("sinks are {}, expected [{}]", to_string(sinks), by_head.shape[0]));
  }
  HostTensor natural(DType::kF64, {by_head.shape[0], by_head.shape[1]});
  for (std::int64_t h = 0; h < by_head.shape[0]; ++h) {
    const double sink = sinks.present() ? value_at(sinks, h) : -kInf;
    for (std::int64_t t = 0; t < by_head.shape[1]; ++t) {
      natural.set(translated(value_at(by_head, h, t), form, sink, lse_includes_sink), h, t);
    }
  }
  return natural;
}

}  // namespace attn
