#include "judge/softmax_bound.h"

#include <algorithm>
#include <cmath>

#include "core/special_values.h"
#include "judge/summation_depth.h"

namespace attn::judge {
namespace {

// Standard deviations of the probabilistic tier: 2 exp(-6^2 / 2) = 3e-8 an element.
constexpr double kDeviations = 6.0;
// 1 over the smallest code of a format with scales in its cache (f8_e4m3fn: 2^-9).
constexpr double kPerSmallestCode = 0x1p9;

bool all_finite(const RowSums& sums) {
  return std::none_of(sums.begin(), sums.end(),
                      [](double x) { return x == kInf || std::isnan(x); });
}

}  // namespace

// |computed - exact| of the final logit of key k is at most a a_k + u |u_k| + zero.
struct SoftmaxBound::Logit {
  double a, u, zero;
};

// The exponent of key k's weight is off by at most alpha a_k + beta d_k + kappa, and by x for every
// key; |e^y - 1| <= rate |y| for |y| <= x.
struct SoftmaxBound::Exponent {
  double alpha, beta, kappa, x, rate, growth;  // growth = e^x
};

struct SoftmaxBound::Factors {
  double sums_exponential;  // l = e^(L - m)
  double steps;             // T, rescalings of the online softmax
  double values, weights;   // phi_N, phi_l
  double lost;              // absolute error of a weight by underflow, weights up to 1
  double rounded;           // and by rounding it for the sum with values
  double sum_quantum;       // q_l: of a weight in the row sum
  double underflow;         // W without its growth
};

SoftmaxBound::SoftmaxBound(const Arithmetic& arithmetic, const SoftmaxTerms& terms)
    : arithmetic_(arithmetic),
      terms_(terms),
      u_(unit_roundoff(arithmetic.vector)),
      omega_(underflow(arithmetic, arithmetic.vector)),
      query_(operand_error(arithmetic, arithmetic.query, terms.query, terms.query_scale)),
      key_(operand_error(arithmetic, arithmetic.key, terms.key, terms.key_scale)),
      value_(operand_error(arithmetic, arithmetic.value, terms.value, terms.value_scale)) {
  if (terms.projected > 0) set_projection();
  const auto length = static_cast<double>(terms.dot_length);
  c_a_ = gamma_factor(summation_depth(arithmetic.dot, length, length, true) + query_.unit +
                      key_.unit + arithmetic.scale_roundings * u_ + keys_projected_);
  nu_ = gamma_factor(arithmetic.normalize_roundings * u_);
  c_e_ = gamma_factor(arithmetic.exp_arg_roundings * u_);
  c_s_ = gamma_factor(arithmetic.exp_shift_roundings * u_);
}

// The products with w_uk and w_uv: of keys and values (materialised), or of the query and the
// latent answer (absorbed). The latter is normalised before, so its roundings differ from latent
// element to latent element.
void SoftmaxBound::set_projection() {
  // A contract that says nothing of them makes them as it makes scores.
  const Arithmetic::Projection project = arithmetic_.project.value_or(
      Arithmetic::Projection{arithmetic_.dot, Rounding{arithmetic_.vector}});
  const auto length = static_cast<double>(terms_.projected);
  const double products = summation_depth(project.sum, length, length, true);
  const double stored = project.round.unit();
  // What is stored becomes an operand again.
  const auto again = [stored](const Rounding& rounding) {
    return rounding.unit() > stored ? rounding.unit() : 0.0;
  };
  keys_projected_ = products + stored +
                    operand_error(arithmetic_, arithmetic_.key, terms_.w_uk).unit +
                    std::max(again(arithmetic_.query), again(arithmetic_.key));
  values_projected_ = products + 2.0 * stored +
                      operand_error(arithmetic_, arithmetic_.value, terms_.w_uv).unit +
                      again(arithmetic_.value) + arithmetic_.normalize_roundings * u_;
  // What underflow takes there is multiplied by weights that no conditioning sum has.
  const double lost = std::max({key_.quantum, value_.quantum, arithmetic_.merge_part.quantum(),
                                half_quantum(project.round.type)});
  if (lost > smallest_normal(NumberFormat::kBF16)) projection_fault_ = "a projection may underflow";
}

SoftmaxBound::Logit SoftmaxBound::logit(const RowSums& sums) const {
  const auto length = static_cast<double>(terms_.dot_length);
  double a = c_a_;
  // Products of scaled operands underflow in units of theirs.
  double scales = terms_.query_scale * terms_.key_scale /
                  std::min(1.0, arithmetic_.query.scale * arithmetic_.key.scale);
  if (terms_.key_scale_in_cache) scales *= std::max(1.0, sums[kRowKeyMax] * kPerSmallestCode);
  double zero = (1.0 + a) * (query_.quantum * sums[kRowKeyL1] + key_.quantum * sums[kRowQueryL1] +
                             query_.quantum * key_.quantum * length * terms_.abs_scale +
                             2.0 * length * underflow(arithmetic_, arithmetic_.dot.type) * scales *
                                 terms_.abs_scale) +
                omega_;
  if (terms_.soft_cap > 0.0) {
    const double tanh_error = gamma_factor(3.0 * u_ + arithmetic_.cap_rel);
    zero = (zero + terms_.soft_cap * (arithmetic_.cap_abs + 2.0 * omega_)) * (1.0 + tanh_error) +
           omega_;
    a = a * (1.0 + tanh_error) + tanh_error;
  }
  const int biases = terms_.num_biases;
  double u = gamma_factor((arithmetic_.logit_roundings + biases) * u_ + arithmetic_.logit.unit());
  // A bias may underflow, and so may its sum.
  const double stored =
      arithmetic_.logit.quantum() + (arithmetic_.logit_roundings + 2.0 * biases) * omega_;
  if (biases == 0) return {(1.0 + u) * a, u, (1.0 + u) * zero + stored};
  if (biases == 1) {
    // |bias| <= |score| + |logit| <= a + |u|: no sum of biases is needed.
    const double bias = arithmetic_.bias_rel;
    return {(1.0 + u) * (a + bias), u + (1.0 + u) * bias, (1.0 + u) * zero + stored};
  }
  const double partial = gamma_factor(biases * u_);  // partial sums may cancel
  return {(1.0 + u) * (a + partial), u,
          (1.0 + u) * (zero + (arithmetic_.bias_rel + partial) * sums[kRowBiasMax]) + stored};
}

SoftmaxBound::Exponent SoftmaxBound::exponent(const RowSums& sums) const {
  const Logit c = logit(sums);
  const double max = std::fabs(sums[kRowMax]);
  // How far the computed maximum can be from the true one.
  const double shift = c.a * sums[kRowAMax] + c.u * (sums[kRowDMax] + max) + c.zero;
  Exponent e{};
  e.alpha = c.a * (1.0 + c_e_);
  e.beta = c.u * (1.0 + c_e_) + c_e_ + c_s_;
  e.kappa = (c.u * max + c.zero) * (1.0 + c_e_) + c_s_ * max + (c_e_ + c_s_) * shift +
            (2.0 * c_e_ + c_s_) * arithmetic_.max_lag;
  if (merges_lse()) {
    const auto depth = static_cast<double>(arithmetic_.merge_depth);
    const double log_sum = std::log(sums[kRowVisible] + 1.0) + 1.0;
    const double stored =
        gamma_factor(2.0 * arithmetic_.log_roundings * u_ + unit_roundoff(arithmetic_.merge_lse));
    e.beta += depth * (stored + c_e_);
    e.kappa += depth * (arithmetic_.log_abs + stored * (max + shift + log_sum) +
                        c_e_ * (log_sum + shift) + half_quantum(arithmetic_.merge_lse));
  }
  e.x = e.alpha * sums[kRowAMax] + e.beta * sums[kRowDMax] + e.kappa;
  e.rate = e.x == 0.0 ? 1.0 : std::expm1(e.x) / e.x;
  e.growth = std::exp(e.x);
  return e;
}

SoftmaxBound::Factors SoftmaxBound::factors(const RowSums& sums) const {
  const Arithmetic& c = arithmetic_;
  const double n = sums[kRowVisible];
  const double span = sums[kRowSpan];
  const auto splits = static_cast<double>(c.splits);
  const double depth = merges() ? static_cast<double>(c.merge_depth) : 0.0;
  Factors f{};
  f.sums_exponential = std::exp(sums[kRowLse] - sums[kRowMax]);
  f.steps = c.tile == 0 ? 0.0 : std::min(n, std::ceil(span / static_cast<double>(c.tile)) + 1.0);
  const double p_error = c.p.unit() + c.p_roundings * u_;
  const double merged =
      depth * (c.exp_rel + u_) + (splits - 1.0) * u_ + (terms_.sink ? c.exp_rel + 2.0 * u_ : 0.0);
  const double weight = (1.0 + f.steps) * c.exp_rel + f.steps * u_ + merged;
  double values = weight + p_error + summation_depth(c.pv, n, span) + value_.unit +
                  depth * c.merge_part.unit() + values_projected_;
  if (merges_lse()) values += depth * (c.normalize_roundings + 2.0) * u_;
  // Each weight is divided by itself: the errors differ from key to key.
  if (c.p_normalized) values += c.normalize_roundings * u_;
  f.values = gamma_factor(values);
  f.weights =
      gamma_factor(weight + summation_depth(c.sum, n, span) + (c.sum_rounded_p ? p_error : 0.0));
  f.lost = std::max(c.exp_abs, omega_) * (1.0 + f.steps + depth);
  f.rounded = c.p.quantum() + (c.p_normalized ? 1.0 + c.p_roundings : c.p_roundings) * omega_;
  f.sum_quantum = f.lost + (c.sum_rounded_p ? f.rounded : 0.0);
  double scales = terms_.value_scale / std::min(1.0, c.p.scale * c.value.scale);
  if (terms_.value_scale_in_cache) scales *= std::max(1.0, sums[kRowValueMax] * kPerSmallestCode);
  f.underflow = (2.0 * n + 2.0 * f.steps + 2.0 * splits + 6.0) *
                std::max(underflow(arithmetic_, c.sum.type), underflow(arithmetic_, c.pv.type)) *
                scales;
  return f;
}

// What the computed row sum may be away from the exact one, relative to it.
double SoftmaxBound::denominator(const RowSums& sums, const Exponent& x, const Factors& f) const {
  const double exponents = x.rate * (x.alpha * sums[kRowPa] +
                                     x.beta * (sums[kRowPd] + sums[kRowSinkDistance]) + x.kappa);
  return f.weights +
         (1.0 + f.weights) *
             (exponents + x.growth * sums[kRowVisible] * f.sum_quantum / f.sums_exponential) +
         f.underflow * x.growth * (1.0 + f.values);
}

// Without the sink a log-sum-exp has the same errors, over the mass of the keys alone.
double SoftmaxBound::lse(const RowSums& sums, const Exponent& x, const Factors& f,
                         double relative) const {
  double log_sum_exp = sums[kRowLse];
  if (terms_.sink && !terms_.lse_includes_sink) {
    const double mass = sums[kRowMass];
    RowSums keys = sums;
    keys[kRowPa] /= mass;
    keys[kRowPd] /= mass;
    keys[kRowSinkDistance] = 0.0;
    Factors of_keys = f;
    of_keys.sums_exponential *= mass;
    of_keys.underflow /= mass;
    relative = denominator(keys, x, of_keys);
    log_sum_exp += std::log(mass);
  }
  if (!(relative < 0.5)) return kInf;
  const double inside = -std::log1p(-relative);
  const double sizes = std::fabs(sums[kRowMax]) + std::fabs(log_sum_exp - sums[kRowMax]) +
                       std::fabs(log_sum_exp) + 2.0 * (sums[kRowMax] - sums[kRowKeysMax]) +
                       2.0 * x.x + 2.0 * inside + 2.0 * arithmetic_.max_lag;
  return (inside + arithmetic_.log_abs + arithmetic_.log_roundings * u_ * sizes + omega_) *
             (1.0 + arithmetic_.lse.unit()) +
         arithmetic_.lse.unit() * std::fabs(log_sum_exp) + arithmetic_.lse.quantum();
}

// However wrong the scores, one pass over the keys gives a mean of the values with the weights it
// has. Two passes may weigh differently.
double SoftmaxBound::hull(const RowSums& sums, const Factors& f) const {
  if (arithmetic_.tile == 0 || merges_lse()) return kInf;
  const double n = sums[kRowVisible];
  const double relative = f.weights + n * f.sum_quantum + f.underflow;
  if (!(relative < 0.5) || !(f.values < kInf)) return kInf;
  const double numerator =
      sums[kRowValueMax] * (1.0 + f.values) * (1.0 + n * (f.lost + f.rounded)) +
      (1.0 + f.values) * value_.quantum + f.underflow * (1.0 + f.values) +
      2.0 * static_cast<double>(arithmetic_.splits) * arithmetic_.merge_part.quantum();
  return (numerator / (1.0 - relative) * (1.0 + nu_) + omega_) * (1.0 + arithmetic_.out.unit()) +
         arithmetic_.out.quantum();
}

std::string_view SoftmaxBound::range_fault(const RowSums& sums) const {
  const Arithmetic& c = arithmetic_;
  if (sums[kRowQueryMax] > largest_finite(c.query.type) / c.query.scale) {
    return "a query is beyond the operand type";
  }
  if (sums[kRowKeyMax] > largest_finite(c.key.type) / c.key.scale) {
    return "a key is beyond the operand type";
  }
  if (sums[kRowValueMax] > largest_finite(c.value.type) / c.value.scale) {
    return "a value is beyond the operand type";
  }
  if (sums[kRowAMax] > largest_finite(c.dot.type) / 4.0 * terms_.abs_scale) {
    return "a score may overflow";
  }
  if (std::fabs(sums[kRowMax]) + sums[kRowDMax] > largest_finite(c.logit.type) / 2.0) {
    return "a logit may overflow";
  }
  if (merges() && sums[kRowValueMax] > largest_finite(c.merge_part.type)) {
    return "a part may overflow";
  }
  if (merges_lse() && std::fabs(sums[kRowMax]) + sums[kRowDMax] + std::log(sums[kRowVisible]) >
                          largest_finite(c.merge_lse) / 2.0) {
    return "a part's log-sum-exp may overflow";
  }
  if (c.p.scale * std::exp(c.max_lag) > largest_finite(c.p.type)) return "weights may overflow";
  return "";
}

// A weight whose score and maximum are off by X in all may reach e^X.
bool SoftmaxBound::weights_overflow(const RowSums& sums, double growth) const {
  const Arithmetic& c = arithmetic_;
  const double total = growth * sums[kRowVisible];
  return !(growth * c.p.scale <= std::min(largest_finite(c.p.type), largest_finite(c.vector))) ||
         !(total <= largest_finite(c.sum.type) / 4.0) ||
         !(total * c.p.scale * sums[kRowValueMax] <= largest_finite(c.pv.type) / 4.0);
}

RowBound SoftmaxBound::row(const RowSums& sums) const {
  RowBound bound;
  const Exponent x = exponent(sums);
  const Factors f = factors(sums);
  bound.hull = sums[kRowValueMax];
  if (!all_finite(sums)) {
    bound.vacuous = "a conditioning sum is infinite";
  } else if (bound.vacuous = range_fault(sums); !bound.vacuous.empty()) {
    bound.out_of_range = true;
  } else {
    bound.vacuous = projection_fault_;
  }
  const double relative = denominator(sums, x, f);
  if (bound.vacuous.empty()) {
    if (!(x.x <= 1.0)) {
      bound.vacuous = "scores may be off by more than 1";
      bound.out_of_range = weights_overflow(sums, x.growth);
    } else if (!(f.values < kInf) || !(f.weights < kInf) || !(relative < 0.5)) {
      bound.vacuous = "a sum may be off by half of itself";
    }
  }
  if (!bound.vacuous.empty()) {
    bound.hull = all_finite(sums) ? hull(sums, f) : kInf;
    bound.lse = kInf;
    bound.lse_may_vanish = terms_.sink && !terms_.lse_includes_sink;
    return bound;
  }
  const Arithmetic& c = arithmetic_;
  const double u_out = c.out.unit();
  const double h = (1.0 + nu_) * (1.0 + u_out) / (1.0 - relative);
  const double values = 1.0 + f.values;
  const double over_sum = x.growth / f.sums_exponential;
  const double tau =
      c.p_normalized ? f.lost * over_sum + f.rounded : (f.lost + f.rounded) * over_sum;
  // A fold stores what it has merged, too.
  const double parts =
      merges() ? 2.0 * static_cast<double>(c.splits) * c.merge_part.quantum() : 0.0;
  bound.pv = h * (f.values + values * x.rate * x.kappa);
  bound.pav = h * values * x.rate * x.alpha;
  bound.puv = h * values * x.rate * x.beta;
  bound.v = h * values * tau;
  bound.out = h * relative + nu_ * (1.0 + u_out) + u_out;
  bound.constant =
      h * (values * x.growth * value_.quantum + f.underflow * x.growth * values + parts) +
      omega_ * (1.0 + u_out) + c.out.quantum();
  NumberFormat narrowest = c.pv.type;
  if (merges() && c.merge_kind == MergeKind::kAccumulators &&
      largest_finite(c.merge_part.type) < largest_finite(narrowest)) {
    narrowest = c.merge_part.type;
  }
  bound.value_limit = largest_finite(narrowest) / 4.0 / c.p.scale / std::exp(c.max_lag);
  bound.lse = lse(sums, x, f, relative);
  bound.lse_may_vanish = !(bound.lse < kInf);
  return bound;
}

RowBound SoftmaxBound::probable_row(const RowSums& sums) const {
  RowBound bound = row(sums);
  if (!bound.vacuous.empty()) return bound;
  const Arithmetic& c = arithmetic_;
  const Exponent x = exponent(sums);
  const Factors f = factors(sums);
  const double n = sums[kRowVisible];
  const double span = sums[kRowSpan];
  const double unit_pv = accumulator_unit(c.pv);
  const double unit_sum = accumulator_unit(c.sum);
  // Rounding errors of a score grow as the root of their number.
  const double root = u_ > 0.0 ? std::sqrt(std::max(1.0, c_a_ / u_)) : 1.0;
  const double typical = x.alpha * sums[kRowAMax] / root + x.beta * sums[kRowDMax] + x.kappa;
  const double roundings_pv = std::max(1.0, summation_depth(c.pv, n, span) / unit_pv);
  const double roundings_sum = std::max(1.0, summation_depth(c.sum, n, span) / unit_sum);
  const double p_error = c.p.unit() + c.p_roundings * u_;
  // sum p^2 v^2 <= max p * v_max * sum p |v|.
  const double largest = sums[kRowValueMax] * std::exp(sums[kRowKeysMax] - sums[kRowLse]);
  const double u_out = c.out.unit();
  // Merges and projections are few: they count in full.
  const double few = values_projected_ +
                     (merges() ? static_cast<double>(c.merge_depth) : 0.0) *
                         (c.exp_rel + c.merge_part.unit() + (c.normalize_roundings + 3.0) * u_);
  bound.root_pv = kDeviations * std::sqrt(largest) *
                  (p_error + c.exp_rel + value_.unit + x.rate * typical) * (1.0 + u_out);
  bound.pv =
      (kDeviations * std::sqrt(roundings_pv + 2.0 * f.steps + 2.0) * unit_pv + few) * (1.0 + u_out);
  bound.pav = 0.0;
  bound.puv = 0.0;
  bound.out = (kDeviations * std::sqrt(roundings_sum + 2.0 * f.steps + 2.0) * unit_sum +
               x.rate * (x.alpha * sums[kRowPa] + x.beta * sums[kRowPd] + x.kappa) / root +
               c.normalize_roundings * u_) *
                  (1.0 + u_out) +
              u_out;
  bound.lse = kInf;
  return bound;
}

}  // namespace attn::judge
