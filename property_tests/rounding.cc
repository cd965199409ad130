#include "property_tests/rounding.h"

#include <algorithm>
#include <cmath>

namespace attn::property_tests {
namespace {

double larger_finite(double largest, double x) {
  return std::isfinite(x) ? std::max(largest, std::fabs(x)) : largest;
}

double largest_finite(const HostTensor& tensor) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    largest = larger_finite(largest, decode(tensor.dtype(), tensor.code(i)));
  }
  return largest;
}

template <class Element>
double norm(std::int64_t size, const Element& element) {
  double sum = 0.0;
  for (std::int64_t d = 0; d < size; ++d) sum += element(d) * element(d);
  return std::sqrt(sum);
}

// The largest |scale| * sum_d |q_d * k_d| of a row and a key, by Cauchy and Schwarz.
double largest_dot(const LogicalProblem& p) {
  double largest = 0.0;
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(p.requests.size()); ++r) {
    double query = 0.0;
    double key = 0.0;
    for (std::int64_t i = 0; i < p.request(r).query_len() * p.num_heads; ++i) {
      query = larger_finite(query, norm(p.head_size, [&](std::int64_t d) {
                              return query_value(p, r, i / p.num_heads, i % p.num_heads, d);
                            }));
    }
    for (std::int64_t i = 0; i < p.request(r).seq_len() * p.num_kv_heads; ++i) {
      key = larger_finite(key, norm(p.head_size, [&](std::int64_t d) {
                            return key_value(p, r, i / p.num_kv_heads, i % p.num_kv_heads, d);
                          }));
    }
    largest = std::max(largest, query * key);
  }
  return std::fabs(p.settings.scale) * largest;
}

// Parts that an exec cuts n keys into, at most.
double num_parts(const ExecSpec& exec, double n) {
  double parts = 1.0;
  if (exec.num_splits != 0) parts *= static_cast<double>(exec.num_splits);
  if (exec.kv_chunk != 0) parts *= std::ceil(n / static_cast<double>(exec.kv_chunk));
  if (exec.has_common_prefix) parts *= 2.0;
  if (exec.dcp_size != 0) parts *= static_cast<double>(exec.dcp_size);
  return std::min(parts, n + 1.0);
}

}  // namespace

double largest_value(const LogicalProblem& p) {
  double largest = 0.0;
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(p.requests.size()); ++r) {
    for (std::int64_t i = 0; i < p.request(r).seq_len() * p.num_kv_heads; ++i) {
      for (std::int64_t d = 0; d < p.head_size_v; ++d) {
        largest =
            larger_finite(largest, value_value(p, r, i / p.num_kv_heads, i % p.num_kv_heads, d));
      }
    }
  }
  return largest;
}

// u: unit roundoff. D head size, n keys, a largest |scale| sum |q k|, b largest sum of |biases|, c
// the cap, s the largest |sink|; L = a + b + c + s bounds |score|, |maximum| and |lse| - ln n.
//   score      dot: a chain of at most D + 1 roundings of a; conversions of q and k, scale: 7 more;
//              tanh and the terms around it: 8 of c; each bias and its sum: 8 of b
//   weight     e^x: its argument |x| <= 2 L by at most 4 roundings, the function itself 8 (an expf
//              may be off by 2^-22)
//   sums       weights and weighted values: chains of at most n + 16 roundings each
//   tiles      a step of online softmax rescales, once every 64 keys: 8 roundings and its exponent
//   parts      merged by lse, a part adds its own logarithm and exponent: 8 + 8 (L + ln n)
//   the end    division, conversion of v, rounding of the answer: 8
// Relative errors of weights count twice in the answer (numerator and denominator).
Closeness rounding_bound(const LogicalProblem& p, DType dtype) {
  const double u = dtype == DType::kF64 ? 0x1p-53 : 0x1p-24;
  const auto n = static_cast<double>(p.max_seq_len());
  const double longest = std::max(n, static_cast<double>(p.max_query_len()));
  const double a = largest_dot(p);
  const double b = largest_finite(p.alibi_slopes) * longest + largest_finite(p.attn_bias) +
                   largest_finite(p.qq_bias);
  const double c = p.settings.logits_soft_cap;
  const double all = a + b + c + largest_finite(p.sinks);
  const double ln_n = std::log(n + 1.0);
  const double score = (static_cast<double>(p.head_size) + 8.0) * a + 8.0 * b + 8.0 * c;
  const double weight = score + 8.0 * all + 8.0;
  const double sums = n + 16.0 + (n / 64.0 + 1.0) * (8.0 + 2.0 * all);
  const double parts =
      p.settings.exec.any() ? num_parts(p.settings.exec, n) * (8.0 + 8.0 * (all + ln_n)) : 0.0;
  const double relative = u * (2.0 * (weight + sums + parts) + 8.0);
  return {relative * largest_value(p), relative + 4.0 * u * (all + ln_n)};
}

Closeness twice_rounding(const LogicalProblem& problem, DType dtype) {
  const Closeness once = rounding_bound(problem, dtype);
  return {2.0 * once.out, 2.0 * once.lse};
}

}  // namespace attn::property_tests
