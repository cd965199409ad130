#include "property_tests/model_scalars.h"

#include <cmath>
#include <numbers>

namespace attn::property_tests {
namespace {

// Of an error that is put in on purpose, what is left to the functions it is put upon: their own
// errors are below 2^-52 (double) and 2^-62 (long double, for f64).
constexpr double kOnPurpose = 1.0 - 0x1p-10;

// Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA 2014.
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9;
  x = (x ^ x >> 27) * 0x94D049BB133111EB;
  return x ^ x >> 31;
}

}  // namespace

ModelScalars::ModelScalars(const Arithmetic& arithmetic, const ModelOptions& options,
                           std::uint64_t salt)
    : arithmetic_(arithmetic),
      options_(options),
      state_(mixed(options.seed ^ mixed(salt + 1))),
      vector_(Rounding{arithmetic.vector, RoundingMode::kNearest, 1.0, arithmetic.flush}),
      unit_(unit_roundoff(arithmetic.vector)),
      log2_e_(vector_(std::numbers::log2e)),
      is_f64_(unit_ <= unit_roundoff(NumberFormat::kF64)),
      weight_(options.weight_error),
      rescale_(options.rescale_error),
      scalar_(options.scalar_error) {}

double ModelScalars::error(Injection injection, double size) {
  if (size <= 0.0) return 0.0;
  switch (injection) {
    case Injection::kNone:
      return 0.0;
    case Injection::kUp:
      return size * kOnPurpose;
    case Injection::kDown:
      return -size * kOnPurpose;
    case Injection::kRandom:
      break;
  }
  state_ += 0x9E3779B97F4A7C15;
  const double drawn = static_cast<double>(mixed(state_) >> 11) * 0x1p-52 - 1.0;  // [-1, 1)
  return drawn * size * kOnPurpose;
}

double ModelScalars::moved(double x, double error) {
  const double sum = x + error;
  return std::fabs(sum - x) > std::fabs(error) ? std::nextafter(sum, x) : sum;
}

double ModelScalars::weight(double u, double m) {
  return exponential(options_.exponent, u, m, weight_, true);
}

double ModelScalars::factor(double u, double m) {
  ExponentForm form = options_.exponent;
  if (form == ExponentForm::kFused2) {
    form =
        arithmetic_.exp_arg_roundings >= 3 ? ExponentForm::kDifference2 : ExponentForm::kDifference;
  }
  return exponential(form, u, m, rescale_, false);
}

// Roundings relative to the argument, and to m, of each form (c = log2 e as held, off by one
// rounding of the argument):
//   kDifference   the difference                                       1, 0
//   kDifference2  the difference, the product, c                       3, 0
//   kProducts2    u c: of |u| <= |u - m| + |m|; m c; the difference; c 3, 2
//   kFused2       m c; the difference; c                               2, 1
double ModelScalars::exponential(ExponentForm form, double u, double m, Injection injection,
                                 bool shift) {
  if (u == m) return 1.0;
  double argument = 0.0;
  int used = 1;
  int used_shift = 0;
  switch (form) {
    case ExponentForm::kDifference:
      argument = difference(u, m);
      break;
    case ExponentForm::kDifference2:
      argument = rounded(difference(u, m) * log2_e_);
      used = 3;
      break;
    case ExponentForm::kProducts2:
      argument = rounded(rounded(u * log2_e_) - rounded(m * log2_e_));
      used = 3;
      used_shift = 2;
      break;
    case ExponentForm::kFused2: {
      const double product = rounded(m * log2_e_);
      argument =
          is_f64_ ? std::fma(u, log2_e_, -product) : rounded(sum_to_odd(u * log2_e_, -product));
      used = 2;
      used_shift = 1;
      break;
    }
  }
  const bool base_2 = form != ExponentForm::kDifference;
  argument = with_roundings(argument, arithmetic_.exp_arg_roundings - used);
  if (shift) {
    const double size = (arithmetic_.exp_shift_roundings - used_shift) * unit_ * std::fabs(m);
    argument += error(scalar_, base_2 ? size * std::numbers::log2e : size);
  }
  return exponential_of(argument, base_2, injection);
}

double ModelScalars::merge_factor(double lse, double max) {
  if (lse == max) return 1.0;
  const double argument = with_roundings(difference(lse, max), arithmetic_.exp_arg_roundings - 1);
  return exponential_of(argument, false, rescale_);
}

double ModelScalars::exponential_of(double argument, bool base_2, Injection injection) {
  if (argument == 0.0) return 1.0;
  double result = 0.0;
  const double relative = error(injection, arithmetic_.exp_rel);
  if (is_f64_) {
    const long double exact = base_2 ? std::exp2(static_cast<long double>(argument))
                                     : std::exp(static_cast<long double>(argument));
    const long double target = exact * (1.0L + static_cast<long double>(relative));
    result = static_cast<double>(target);
    // Rounding must not lead further away than allowed.
    if (relative > 0.0 && result > target) result = std::nextafter(result, 0.0);
    if (relative < 0.0 && result < target) result = std::nextafter(result, 2.0 * result);
  } else {
    const double exact = base_2 ? std::exp2(argument) : std::exp(argument);
    result = exact;
    if (relative != 0.0) {
      result = vector_.between(exact * (1.0 + relative), exact);
    } else if (arithmetic_.exp_rel >= unit_) {
      result = rounded(exact);
    }
  }
  if (options_.flush_exp && result < arithmetic_.exp_abs) return 0.0;
  return result;
}

double ModelScalars::tanh(double x) {
  const double exact =
      is_f64_ ? static_cast<double>(std::tanh(static_cast<long double>(x))) : std::tanh(x);
  // A double's own rounding is part of what f64 may be off by.
  const double allowed = is_f64_ ? arithmetic_.cap_rel - unit_ : arithmetic_.cap_rel;
  return moved(exact, std::fabs(exact) * error(scalar_, allowed)) +
         error(scalar_, arithmetic_.cap_abs);
}

double ModelScalars::log_sum_exp(double m, double sum) {
  const double exact =
      is_f64_ ? static_cast<double>(std::log(static_cast<long double>(sum))) : std::log(sum);
  // log.roundings times u (|m| + |ln sum| + |lse|): each of the three may be rounded as often.
  const int left = arithmetic_.log_roundings - 1;
  const double log =
      with_roundings(rounded(moved(exact, error(scalar_, arithmetic_.log_abs))), left);
  return with_roundings(rounded(with_roundings(m, left) + log), left);
}

double ModelScalars::quotient(double accumulator, double sum) {
  int exponent = 0;
  // Division by a power of two rounds nothing on any machine.
  if (std::frexp(sum, &exponent) == 0.5) return accumulator / sum;
  const int roundings = arithmetic_.normalize_roundings;
  if (options_.reciprocal && roundings >= 2) {
    return with_roundings(rounded(accumulator * rounded(1.0 / sum)), roundings - 2);
  }
  return roundings == 0 ? accumulator / sum
                        : with_roundings(rounded(accumulator / sum), roundings - 1);
}

}  // namespace attn::property_tests
