#include "golden/exact/row_state.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "attn/conditioning.h"

namespace attn::exact {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// e^x for x <= 0. A visible key never has the weight 0 (0 * inf would be NaN, and a sum rounded
// upward must see it): below e^-10^8, near the end of MPFR's range of exponents (2^-2^30), any
// number that no format can tell from 0 will do.
Real weight(const Real& x) {
  const Real lowest(x.bits(), -1e8);
  return exp(x < lowest ? lowest : x);
}

class Row {
 public:
  Row(std::vector<ScoredKey> keys, std::optional<double> sink, const QuerySize& query,
      std::int64_t size_v, const std::function<Elements(std::size_t)>& read_value, int bits)
      : keys_(std::move(keys)),
        sink_(sink),
        query_(query),
        size_v_(size_v),
        read_value_(read_value),
        bits_(bits),
        state_{{zeros(size_v, bits), zeros(size_v, bits)},
               zeros(size_v, bits),
               zeros(size_v, bits),
               zeros(size_v, bits),
               number(-kInfinity),
               number(0.0),
               number(-kInfinity),
               number(0.0),
               zeros(kNumRowFields, bits)} {
    if (sink_ == -kInfinity) sink_.reset();
  }

  RowState state() {
    const bool unknown = has_unknown_logit() || (sink_ && std::isnan(*sink_));
    hide_keys();
    count();
    if (unknown) return undefined();
    if (!visible_.empty()) sum_keys();
    if (sink_ == kInfinity) return drowned();
    if (visible_.empty()) return empty();
    normalise();
    const auto is_nan = [](const Real& x) { return x.is_nan(); };
    if (std::any_of(state_.out.value.begin(), state_.out.value.end(), is_nan)) unbounded();
    return std::move(state_);
  }

 private:
  Real number(double x) const { return Real(bits_, x); }
  Real& field(RowField f) { return state_.row[static_cast<std::size_t>(f)]; }
  const ScoredKey& key(std::size_t i) const { return keys_[visible_[i]]; }

  bool has_unknown_logit() const {
    return std::any_of(keys_.begin(), keys_.end(), [](const ScoredKey& k) {
      return k.logit.is_nan() || (k.logit.is_infinite() && !k.logit.is_negative());
    });
  }

  void hide_keys() {
    for (std::size_t i = 0; i < keys_.size(); ++i) {
      const Real& u = keys_[i].logit;
      if (!(u.is_infinite() && u.is_negative())) visible_.push_back(i);
    }
  }

  void count() {
    if (visible_.empty()) return;
    field(kRowVisible) = number(static_cast<double>(visible_.size()));
    const auto [first, last] = std::minmax_element(
        visible_.begin(), visible_.end(),
        [&](std::size_t a, std::size_t b) { return keys_[a].place < keys_[b].place; });
    field(kRowSpan) = number(static_cast<double>(keys_[*last].place - keys_[*first].place + 1));
  }

  // Everything but the counts becomes +inf: where the answer is NaN or lse +inf there is no bound.
  void unbounded() {
    const Real infinity = number(kInfinity);
    for (std::vector<Real>* sums :
         {&state_.out.size, &state_.cond_pav, &state_.cond_puv, &state_.cond_v}) {
      std::fill(sums->begin(), sums->end(), infinity);
    }
    for (int f = 0; f < kNumRowFields; ++f) {
      if (f != kRowVisible && f != kRowSpan) field(static_cast<RowField>(f)) = infinity;
    }
  }

  RowState undefined() {
    const Real nan = number(std::numeric_limits<double>::quiet_NaN());
    std::fill(state_.out.value.begin(), state_.out.value.end(), nan);
    state_.lse = state_.lse_keys = nan;
    unbounded();
    return std::move(state_);
  }

  // sink +inf
  RowState drowned() {
    std::fill(state_.out.value.begin(), state_.out.value.end(), number(0.0));
    state_.lse = number(kInfinity);
    unbounded();
    return std::move(state_);
  }

  RowState empty() {
    if (sink_) state_.lse = number(*sink_);
    field(kRowMax) = field(kRowLse) = state_.lse;
    field(kRowKeysMax) = number(-kInfinity);
    return std::move(state_);
  }

  // Weights relative to the keys' own maximum, and lse without the sink. Distances d are measured
  // from the maximum with the sink.
  void sum_keys() {
    keys_max_ = key(0).logit;
    for (std::size_t i = 1; i < visible_.size(); ++i) keys_max_ = max(keys_max_, key(i).logit);
    max_ = sink_ && std::isfinite(*sink_) ? max(keys_max_, number(*sink_)) : keys_max_;
    Real& mass = field(kRowMass);
    for (std::size_t i = 0; i < visible_.size(); ++i) {
      const ScoredKey& k = key(i);
      const Real e = weight(k.logit - keys_max_);
      const Real d = max_ - k.logit;
      mass += e;
      field(kRowPa).add_product(e, k.size);
      field(kRowPd).add_product(e, d);
      take_largest(kRowAMax, k.size);
      take_largest(kRowDMax, d);
      take_largest(kRowBiasMax, k.bias_size);
      take_largest(kRowKeyL1, k.key_l1);
      take_largest(kRowKeyMax, k.key_max);
      sum_values(read_value_(visible_[i]), e, k.size, d);
    }
    const Real log_mass = log(mass);
    state_.lse_keys = keys_max_ + log_mass;
    state_.lse_keys_size = abs(keys_max_) + abs(log_mass);
  }

  void sum_values(const Elements& v, const Real& e, const Real& a, const Real& d) {
    const Real ea = e * a;
    const Real ed = e * d;
    for (std::size_t j = 0; j < static_cast<std::size_t>(size_v_); ++j) {
      state_.out.value[j].add_product(e, v.value[j]);
      state_.out.size[j].add_product(e, v.size[j]);
      state_.cond_pav[j].add_product(ea, v.size[j]);
      state_.cond_puv[j].add_product(ed, v.size[j]);
      state_.cond_v[j] += v.size[j];
      take_largest(kRowValueMax, v.size[j]);
    }
  }

  // From weights relative to the keys' maximum to probabilities.
  void normalise() {
    const Real keys_part = weight(keys_max_ - max_);
    Real total = field(kRowMass) * keys_part;
    Real sink_part = number(0.0);
    if (sink_) sink_part = weight(number(*sink_) - max_);
    total += sink_part;
    const auto scale_to_probability = [&](Real& sum) {
      sum *= keys_part;
      sum /= total;
    };
    for (std::vector<Real>* sums :
         {&state_.out.value, &state_.out.size, &state_.cond_pav, &state_.cond_puv}) {
      std::for_each(sums->begin(), sums->end(), scale_to_probability);
    }
    for (const RowField f : {kRowMass, kRowPa, kRowPd}) scale_to_probability(field(f));
    const Real log_total = log(total);
    state_.lse = max_ + log_total;
    state_.lse_size = abs(max_) + abs(log_total);
    field(kRowMax) = max_;
    field(kRowLse) = state_.lse;
    field(kRowKeysMax) = keys_max_;
    field(kRowQueryL1) = query_.l1;
    field(kRowQueryMax) = query_.max;
    if (!sink_) return;
    const Real distance = abs(number(*sink_) - keys_max_);
    field(kRowSinkDistance) = sink_part * distance / total;
    take_largest(kRowDMax, distance);
  }

  void take_largest(RowField f, const Real& x) { field(f) = max(field(f), x); }

  std::vector<ScoredKey> keys_;
  std::optional<double> sink_;
  const QuerySize& query_;
  const std::int64_t size_v_;
  const std::function<Elements(std::size_t)>& read_value_;
  const int bits_;
  std::vector<std::size_t> visible_;
  Real keys_max_{bits_};
  Real max_{bits_};
  RowState state_;
};

}  // namespace

RowState state_of_row(std::vector<ScoredKey> keys, std::optional<double> sink,
                      const QuerySize& query, std::int64_t size_v,
                      const std::function<Elements(std::size_t i)>& read_value, int bits) {
  return Row(std::move(keys), sink, query, size_v, read_value, bits).state();
}

}  // namespace attn::exact
