#include "golden/exact/score.h"

#include <utility>

namespace attn::exact {

QuerySize size_of_query(const Elements& query, const Real& scale) {
  const int bits = scale.bits();
  return {abs(scale) * sum_of(query.size, bits), largest_of(query.size, bits)};
}

ScoredKey score_key(const Elements& query, const Elements& key, const Real& scale, double cap,
                    std::int64_t place) {
  const int bits = scale.bits();
  Real logit = scale * dot(query.value, key.value, bits);
  if (cap != 0.0) logit = Real(bits, cap) * tanh(logit / Real(bits, cap));
  return {place,
          std::move(logit),
          abs(scale) * dot(query.size, key.size, bits),
          Real(bits),
          abs(scale) * sum_of(key.size, bits),
          largest_of(key.size, bits)};
}

}  // namespace attn::exact
