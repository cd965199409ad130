// What is lost of a number before and between operations: rounding of operands, underflow.
#pragma once

#include <optional>

#include "attn/arithmetic.h"

namespace attn::judge {

// An operand is off by at most unit |x| + quantum.
struct OperandError {
  double unit = 0.0;
  double quantum = 0.0;
};

// Of an operand rounded as `rounding` says, whose stored type decodes without a multiplication
// (else none). A scaled operand is rounded after the multiplication, whatever its type.
// `decoding_scale`, at least 1, may be multiplied only after the sum that the operand goes into.
OperandError operand_error(const Arithmetic& arithmetic, const Rounding& rounding,
                           std::optional<DType> stored, double decoding_scale = 1.0);

// What one operation may lose to underflow in `accumulator` or in a scalar.
double underflow(const Arithmetic& arithmetic, NumberFormat accumulator);

}  // namespace attn::judge
