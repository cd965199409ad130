#include "judge/operand_error.h"

#include <algorithm>

namespace attn::judge {

OperandError operand_error(const Arithmetic& arithmetic, const Rounding& rounding,
                           std::optional<DType> stored, double decoding_scale) {
  const bool kept = stored && embeds(*stored, rounding.type) && rounding.scale == 1.0;
  // What is not rounded may still be read as 0.
  const double read = arithmetic.flush ? smallest_normal(arithmetic.vector) : 0.0;
  const double flushed = rounding.flush ? smallest_normal(rounding.type) / rounding.scale : 0.0;
  return {kept ? 0.0 : rounding.unit(),
          decoding_scale * std::max(read, kept ? flushed : std::max(flushed, rounding.quantum()))};
}

double underflow(const Arithmetic& arithmetic, NumberFormat accumulator) {
  const auto lost = [&](NumberFormat format) {
    return arithmetic.flush ? smallest_normal(format) : half_quantum(format);
  };
  return std::max(lost(arithmetic.vector), lost(accumulator));
}

}  // namespace attn::judge
