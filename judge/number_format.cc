#include <cmath>
#include <limits>

#include "attn/arithmetic.h"
#include "attn/error.h"

namespace attn {
namespace {

// Of a binary format: fraction bits, exponents of the smallest normal and of the largest binade,
// and what of that binade is finite.
struct Properties {
  NumberFormat format;
  std::string_view name;
  int fraction_bits;
  int min_exponent;
  double largest;
};

constexpr double kInf = std::numeric_limits<double>::infinity();

constexpr Properties kFormats[] = {
    {NumberFormat::kExact, "exact", 0, 0, kInf},
    {NumberFormat::kF64, "f64", 52, -1022, std::numeric_limits<double>::max()},
    {NumberFormat::kF32, "f32", 23, -126, 0x1.fffffep+127},
    {NumberFormat::kTF32, "tf32", 10, -126, 0x1.ffcp+127},
    {NumberFormat::kF16, "f16", 10, -14, 65504.0},
    {NumberFormat::kBF16, "bf16", 7, -126, 0x1.fep+127},
    {NumberFormat::kF8E4M3FN, "f8_e4m3fn", 3, -6, 448.0},
    {NumberFormat::kF8E5M2, "f8_e5m2", 2, -14, 57344.0},
    {NumberFormat::kStored, "stored", 0, 0, kInf},
};

const Properties& of(NumberFormat format) { return kFormats[static_cast<int>(format)]; }

bool is_real_format(NumberFormat format) {
  return format != NumberFormat::kExact && format != NumberFormat::kStored;
}

}  // namespace

std::string_view name(NumberFormat format) { return of(format).name; }

double unit_roundoff(NumberFormat format) {
  return is_real_format(format) ? std::ldexp(1.0, -of(format).fraction_bits - 1) : 0.0;
}

double half_quantum(NumberFormat format) {
  // Half of 2^-1074 is no double: the quantum itself stands for it.
  if (format == NumberFormat::kF64) return std::numeric_limits<double>::denorm_min();
  return is_real_format(format)
             ? std::ldexp(1.0, of(format).min_exponent - of(format).fraction_bits - 1)
             : 0.0;
}

double smallest_normal(NumberFormat format) {
  return is_real_format(format) ? std::ldexp(1.0, of(format).min_exponent) : 0.0;
}

double largest_finite(NumberFormat format) { return of(format).largest; }

std::optional<NumberFormat> format_of(DType type) {
  switch (type) {
    case DType::kF64:
      return NumberFormat::kF64;
    case DType::kF32:
      return NumberFormat::kF32;
    case DType::kF16:
      return NumberFormat::kF16;
    case DType::kBF16:
      return NumberFormat::kBF16;
    case DType::kF8E4M3FN:
      return NumberFormat::kF8E4M3FN;
    case DType::kF8E5M2:
      return NumberFormat::kF8E5M2;
    default:
      return std::nullopt;
  }
}

bool embeds(DType type, NumberFormat format) {
  if (format == NumberFormat::kExact) return true;
  const std::optional<NumberFormat> stored = format_of(type);
  if (!stored || !is_real_format(format)) return false;
  const Properties& from = of(*stored);
  const Properties& to = of(format);
  return from.fraction_bits <= to.fraction_bits && from.largest <= to.largest &&
         from.min_exponent - from.fraction_bits >= to.min_exponent - to.fraction_bits;
}

double Rounding::unit() const {
  return unit_roundoff(type) * (mode == RoundingMode::kTruncate ? 2.0 : 1.0);
}

double Rounding::quantum() const {
  const double lost = flush ? smallest_normal(type)
                            : half_quantum(type) * (mode == RoundingMode::kTruncate ? 2.0 : 1.0);
  return lost / scale;
}

Arithmetic with_stored_type(Arithmetic arithmetic, DType type) {
  const std::optional<NumberFormat> format = format_of(type);
  if (!format) throw Error("answers are of a floating type, not " + std::string(name(type)));
  for (Rounding* rounding : {&arithmetic.out, &arithmetic.lse}) {
    if (rounding->type == NumberFormat::kStored) rounding->type = *format;
  }
  return arithmetic;
}

}  // namespace attn
