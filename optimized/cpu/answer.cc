#include "optimized/cpu/answer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace attn::cpu {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A row's answer: out = acc * factor, or `constant` in every element.
struct RowAnswer {
  bool is_constant;
  double constant;
  double factor;
  double lse;
};

RowAnswer constant_answer(double value, double lse) { return {true, value, 0.0, lse}; }

// `max` and `sum` of the keys (max -inf: none is visible, NaN: the answer is NaN) joined with one
// more term e^sink that has no value; -inf = no sink.
RowAnswer answer_of(double max, double sum, double sink, bool lse_includes_sink) {
  if (std::isnan(max) || std::isnan(sink)) return constant_answer(kNaN, kNaN);
  const bool empty = max == -kInfinity;
  const double keys_lse = empty ? -kInfinity : max + std::log(sum);
  if (sink == kInfinity) return constant_answer(0.0, lse_includes_sink ? kInfinity : keys_lse);
  if (empty) return constant_answer(0.0, lse_includes_sink ? sink : keys_lse);
  const double top = std::max(max, sink);
  const double keys_weight = std::exp(max - top);
  const double total = sum * keys_weight + std::exp(sink - top);
  // Not 0 however far the sink is above: an infinite or NaN value stays what it is.
  const double factor = std::max(keys_weight / total, std::numeric_limits<double>::min());
  return {false, 0.0, factor, lse_includes_sink ? top + std::log(total) : keys_lse};
}

template <class Element, class... Index>
void store(const MutableTensorView& view, Element element, Index... index) {
  std::memcpy(view.at(index...), &element, sizeof element);
}

}  // namespace

AnswerWriter::AnswerWriter(const AttentionOp& op, const Outputs& outputs)
    : op_(op), outputs_(outputs), head_size_v_(op.head_size_v()) {
  if (op.output_scale.present()) output_scale_ = value_at(op.output_scale, 0);
}

void AnswerWriter::write(const SoftmaxStates& states, std::int64_t row, std::int64_t token,
                         std::int64_t head) const {
  const double sink = op_.sinks.present() ? value_at(op_.sinks, head) : -kInfinity;
  const RowAnswer answer = answer_of(states.max[row], states.sum[row], sink, op_.lse_includes_sink);
  if (outputs_.lse.present()) {
    store(outputs_.lse, static_cast<float>(answer.lse), head, token);
  }
  const float* acc = states.acc_row(row);
  for (std::int64_t d = 0; d < head_size_v_; ++d) {
    const auto out = static_cast<float>(
        answer.is_constant ? answer.constant : static_cast<double>(acc[d]) * answer.factor);
    if (outputs_.out.present()) store(outputs_.out, out, token, head, d);
    if (outputs_.out_codes.present()) {
      const auto code = static_cast<std::uint8_t>(
          encode(DType::kF8E4M3FN, static_cast<double>(out) / output_scale_, Overflow::kSaturate));
      store(outputs_.out_codes, code, token, head, d);
    }
  }
}

}  // namespace attn::cpu
