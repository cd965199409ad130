#include "property_tests/drift_alarm.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <utility>

#include "attn/conditioning.h"
#include "core/special_values.h"

namespace attn::property_tests {
namespace {

constexpr double kUnit = 0x1p-53;
constexpr double kAlarm = 32.0;
constexpr double kSumSlack = 0x1p-18;
constexpr double kSmallest = std::numeric_limits<double>::denorm_min();
constexpr double kLeastNormal = std::numeric_limits<double>::min();  // below it slack means nothing

double number(const HostTensor& tensor, std::int64_t flat) {
  return decode(tensor.dtype(), tensor.code(flat));
}

double field(const HostTensor& row, std::int64_t i, int f) {
  return number(row, i * kNumRowFields + f);
}

// The size of a maximum or a log-sum-exp; 0 where there is none.
double size_of(double x) { return std::isfinite(x) ? std::fabs(x) : 0.0; }

bool adds_offsets(const Operation& operation) {
  if (const auto* merge = std::get_if<MergeStatesOp>(&operation)) return merge->lse_base_2;
  if (const auto* op = std::get_if<AttentionOp>(&operation)) return op->bias.any();
  if (const auto* op = std::get_if<DifferentialOp>(&operation)) return op->attention.bias.any();
  return false;
}

bool excludes_sink(const Operation& operation) {
  if (const auto* op = std::get_if<AttentionOp>(&operation)) return !op->lse_includes_sink;
  if (const auto* op = std::get_if<MlaSparseOp>(&operation)) return !op->lse_includes_sink;
  return false;
}

// Parts that an exec cuts the keys of the longest request into, at most.
double most_parts(const ExecSpec& exec, const TensorView& seq_lens) {
  double keys = 1.0;
  for (std::int64_t r = 0; r < seq_lens.shape[0]; ++r) {
    keys = std::max(keys, static_cast<double>(int_at(seq_lens, r)));
  }
  double parts = 1.0;
  if (exec.num_splits != 0) parts *= static_cast<double>(exec.num_splits);
  if (exec.kv_chunk != 0) parts *= std::ceil(keys / static_cast<double>(exec.kv_chunk));
  if (exec.has_common_prefix) parts *= 2.0;
  if (exec.dcp_size != 0) parts *= static_cast<double>(exec.dcp_size);
  return std::min(parts, keys);
}

// c u: parts are merged one after another, with one rounding more each.
double alarm_unit(const Operation& operation) {
  double parts = 1.0;
  if (const auto* op = std::get_if<AttentionOp>(&operation)) {
    parts = most_parts(op->exec, op->seq_lens);
  }
  if (const auto* op = std::get_if<MlaOp>(&operation)) parts = most_parts(op->exec, op->seq_lens);
  return kUnit * (kAlarm + parts - 1.0);
}

double lse_alarm(const HostTensor& row, std::int64_t i, bool without_sink, double unit) {
  double sums = field(row, i, kRowPa) + field(row, i, kRowPd);
  if (!without_sink) sums += field(row, i, kRowSinkDistance);
  const double mass = field(row, i, kRowMass);
  if (without_sink && mass > 0.0) sums /= mass;
  const double sizes = size_of(field(row, i, kRowMax)) + size_of(field(row, i, kRowLse)) +
                       (without_sink ? size_of(field(row, i, kRowKeysMax)) : 0.0);
  const double alarm = unit * (1.0 + sizes + sums);
  return std::isnan(alarm) ? kInf : alarm;  // no bound: inf / inf
}

// What a score of the row may be off.
double score_drift(const HostTensor& row, std::int64_t i, double unit) {
  return unit * (1.0 + field(row, i, kRowAMax) + field(row, i, kRowBiasMax) +
                 size_of(field(row, i, kRowMax)));
}

// How much of what is allowed two numbers need; infinite for specials that do not match. Each was
// rounded to F64 once.
double part_of_alarm(double x, double y, double allowed) {
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y) ? 0.0 : kInf;
  if (x == y) return 0.0;
  if (std::isinf(x) || std::isinf(y)) return kInf;
  const double excess = std::fabs(x - y) - kUnit * (std::fabs(x) + std::fabs(y)) - 2.0 * kSmallest;
  return excess <= 0.0 ? 0.0 : excess / allowed;
}

struct Drift {
  std::int64_t elements = 0;
  double largest = 0.0;
};

std::map<std::string, Drift>& drifts() {
  static std::map<std::string, Drift> all;
  return all;
}

// `stored` is not below `exact` nor more than the slack above it.
bool is_upward(double stored, double exact, double drift, double quantum) {
  if (stored == exact) return true;
  return stored >= exact - drift && stored <= exact * (1.0 + kSumSlack) + drift + quantum;
}

bool is_close(double stored, double exact, double drift) {
  return part_of_alarm(stored, exact, drift) <= 1.0;
}

}  // namespace

// Tensors of sums [rows, size], [rows, fields], beginning at the row `first`.
struct DriftAlarm::Rows {
  const HostTensor& row;
  const HostTensor& pv;
  const HostTensor& puv;
  const HostTensor* pav;  // none of merge_states
  bool offsets;
  bool without_sink;
  double unit;  // c u
};

DriftAlarm::DriftAlarm(const Operation& operation, const Tensors& sums)
    : operation_(name(static_cast<OpKind>(operation.index()))) {
  if (const auto ix = sums.find("cond_ix"); ix != sums.end()) {
    std::vector<double>& logits = allowed_["logits"];
    for (std::int64_t i = 0; i < ix->second.num_units(); ++i) {
      logits.push_back(kAlarm * kUnit * number(ix->second, i));
    }
  }
  if (!sums.contains("cond_row")) return;
  const auto pav = sums.find("cond_pav");
  const Rows rows = {sums.at("cond_row"),     sums.at("cond_pv"),
                     sums.at("cond_puv"),     pav == sums.end() ? nullptr : &pav->second,
                     adds_offsets(operation), excludes_sink(operation),
                     alarm_unit(operation)};
  const auto* differential = std::get_if<DifferentialOp>(&operation);
  add_states(rows, differential != nullptr ? "cond_o" : "out", differential == nullptr);
  if (differential != nullptr) add_differential(*differential, sums);
  const auto* attention = std::get_if<AttentionOp>(&operation);
  if (attention != nullptr && attention->output_scale.present()) {
    output_scale_ = value_at(attention->output_scale, 0);
  }
}

void DriftAlarm::add_states(const Rows& rows, const std::string& out, bool lse) {
  const std::vector<std::int64_t>& shape = rows.pv.shape();
  const std::int64_t size = shape.back();
  const std::int64_t num_rows = rows.row.num_units() / kNumRowFields;
  std::vector<double>& elements = allowed_[out];
  for (std::int64_t i = 0; i < num_rows; ++i) {
    const double offset = rows.offsets ? size_of(field(rows.row, i, kRowMax)) : 0.0;
    const double drift = score_drift(rows.row, i, rows.unit);
    drift_of_rows_.push_back(drift);
    for (std::int64_t j = i * size; j < (i + 1) * size; ++j) {
      const double pv = number(rows.pv, j);
      const double pav = rows.pav != nullptr ? number(*rows.pav, j) : 0.0;
      elements.push_back(rows.unit * ((1.0 + offset) * pv + pav + number(rows.puv, j)));
      drift_of_distances_.push_back(pv == 0.0 ? 0.0 : drift * pv);
    }
  }
  if (!lse) return;
  const std::int64_t heads = shape[1];
  std::vector<double>& lses = allowed_["lse"];
  for (std::int64_t h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < shape[0]; ++t) {
      lses.push_back(lse_alarm(rows.row, t * heads + h, rows.without_sink, rows.unit));
    }
  }
}

// z = (1 - lambda_init) * w_j * y_j / s with y = y0 - lambda * y1 and s = sqrt(mean y^2 + eps), or
// (1 - lambda_init) * y. The root mean square is 1-Lipschitz: s is off by at most the root mean
// square of what y is off.
void DriftAlarm::add_differential(const DifferentialOp& op, const Tensors& sums) {
  const HostTensor& sides = sums.at("cond_o");
  const std::vector<double>& side_alarms = allowed_.at("cond_o");
  const std::int64_t count = sides.num_units() / 2;
  const std::int64_t size = 2 * op.attention.head_size_v();
  const double factor = std::fabs(1.0 - op.lambda_init);
  std::vector<double> elements(static_cast<std::size_t>(count));
  for (std::int64_t first = 0; first < count; first += size) {
    std::vector<double> y;
    std::vector<double> alarm;
    double square = 0.0;
    double alarm_square = 0.0;
    for (std::int64_t j = first; j < first + size; ++j) {
      const double y0 = number(sides, j);
      const double y1 = op.lambda * number(sides, count + j);
      y.push_back(y0 - y1);
      alarm.push_back(side_alarms[static_cast<std::size_t>(j)] +
                      std::fabs(op.lambda) * side_alarms[static_cast<std::size_t>(count + j)] +
                      4.0 * kUnit * (std::fabs(y0) + std::fabs(y1)));
      square += y.back() * y.back();
      alarm_square += alarm.back() * alarm.back();
    }
    const auto n = static_cast<double>(size);
    const double s = std::sqrt(square / n + op.eps);
    const double b = std::sqrt(alarm_square / n);
    for (std::size_t j = 0; j < y.size(); ++j) {
      double& to = elements[static_cast<std::size_t>(first) + j];
      if (!op.norm_weight.present()) {
        to = factor * (alarm[j] + 2.0 * kUnit * std::fabs(y[j]));
        continue;
      }
      const double w = factor * std::fabs(value_at(op.norm_weight, j));
      const double own = (alarm[j] + std::fabs(y[j]) * b / s) / (s - b);
      const bool vacuous = !(b < s / 2.0);
      to = vacuous ? kInf : w * (own + (n + 8.0) * kUnit * std::fabs(y[j]) / s);
    }
  }
  allowed_["out"] = std::move(elements);
}

double DriftAlarm::allowed(std::string_view name, std::int64_t flat) const {
  return allowed_.find(name)->second.at(static_cast<std::size_t>(flat));
}

std::string DriftAlarm::difference(const Tensors& a, const Tensors& b, double times) const {
  Tensors exact_codes_a;
  Tensors exact_codes_b;
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end()) continue;
    if (other->second.shape() != tensor.shape()) return name + ": shape";
    const auto alarm = allowed_.find(name);
    if (alarm == allowed_.end()) {
      const bool compared_elsewhere = name.starts_with("cond_") || name == "out_codes";
      if (compared_elsewhere) continue;
      exact_codes_a.emplace(name, tensor);
      exact_codes_b.emplace(name, other->second);
      continue;
    }
    Drift& drift = drifts()[operation_ + " " + name];
    for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
      const double x = number(tensor, i);
      const double y = number(other->second, i);
      const double allowed = times * alarm->second.at(static_cast<std::size_t>(i));
      const double part = part_of_alarm(x, y, allowed);
      if (times == 1.0) {
        ++drift.elements;
        drift.largest = std::max(drift.largest, part);
      }
      if (part <= 1.0) continue;
      return fmt::format("{}{} {:a} and {:a}, {:a} apart, alarm at {:a}", name, place_in(tensor, i),
                         x, y, x - y, allowed);
    }
  }
  std::string difference = bit_difference(exact_codes_a, exact_codes_b);
  return difference.empty() ? code_difference(a, b, times) : difference;
}

std::string DriftAlarm::code_difference(const Tensors& a, const Tensors& b, double times) const {
  const auto codes_a = a.find("out_codes");
  const auto codes_b = b.find("out_codes");
  if (codes_a == a.end() || codes_b == b.end()) return {};
  const HostTensor& out = a.at("out");
  for (std::int64_t i = 0; i < out.num_units(); ++i) {
    const std::uint64_t x = codes_a->second.code(i);
    const std::uint64_t y = codes_b->second.code(i);
    if (same_code(DType::kF8E4M3FN, x, y)) continue;
    const double value = number(out, i);
    const double off = times * allowed("out", i) + 4.0 * kUnit * std::fabs(value);
    const auto code_value = [&](double v) {
      return decode(DType::kF8E4M3FN,
                    encode(DType::kF8E4M3FN, v / output_scale_, Overflow::kSaturate));
    };
    const double lowest = code_value(value - off);
    const double highest = code_value(value + off);
    const auto possible = [&](std::uint64_t code) {
      const double v = decode(DType::kF8E4M3FN, code);
      return lowest <= v && v <= highest;
    };
    if (possible(x) && possible(y)) continue;
    return fmt::format("out_codes{} {:#x} and {:#x} of {:a}", place_in(out, i), x, y,
                       value / output_scale_);
  }
  return {};
}

std::string DriftAlarm::row_difference(const HostTensor& row, const HostTensor& exact) const {
  for (std::int64_t at = 0; at < row.num_units(); ++at) {
    const double x = number(row, at);
    const double y = number(exact, at);
    const double drift = drift_of_rows_.at(static_cast<std::size_t>(at / kNumRowFields));
    bool holds = false;
    switch (at % kNumRowFields) {
      case kRowVisible:
      case kRowSpan:
        holds = x == y;
        break;
      case kRowMax:
      case kRowLse:
      case kRowKeysMax:
        holds = is_close(x, y, drift);
        break;
      case kRowMass:
        holds = x == y || (x <= y && x >= y * (1.0 - kSumSlack) - kLeastNormal);
        break;
      case kRowPd:
      case kRowSinkDistance:
      case kRowDMax:
        holds = is_upward(x, y, drift, kLeastNormal);
        break;
      default:
        holds = is_upward(x, y, 0.0, kLeastNormal);
    }
    if (!holds) return fmt::format("cond_row{} {:a}, exactly {:a}", place_in(row, at), x, y);
  }
  return {};
}

std::string DriftAlarm::sums_difference(const Tensors& sums, const Tensors& exact) const {
  for (const auto& [name, tensor] : sums) {
    if (!name.starts_with("cond_") || name == "cond_o") continue;
    const HostTensor& other = exact.at(name);
    if (name == "cond_row") {
      std::string difference = row_difference(tensor, other);
      if (!difference.empty()) return difference;
      continue;
    }
    for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
      const double drift =
          name == "cond_puv" ? drift_of_distances_.at(static_cast<std::size_t>(i)) : 0.0;
      const double x = number(tensor, i);
      const double y = number(other, i);
      if (is_upward(x, y, drift, 0x1p-149)) continue;
      return fmt::format("{}{} {:a}, exactly {:a}", name, place_in(tensor, i), x, y);
    }
  }
  return {};
}

std::string largest_drifts() {
  std::string text;
  for (const auto& [name, drift] : drifts()) {
    fmt::format_to(std::back_inserter(text),
                   "{:24} {:>12} elements, largest part of the alarm {:.3f}\n", name,
                   drift.elements, drift.largest);
  }
  return text;
}

}  // namespace attn::property_tests
