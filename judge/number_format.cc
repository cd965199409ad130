#include <limits>

#include "attn/arithmetic.h"
#include "attn/error.h"
#include "core/special_values.h"

namespace attn {
namespace {

// Exact, also below the smallest normal.
constexpr double power_of_two(int exponent) {
  double power = 1.0;
  for (; exponent > 0; --exponent) power *= 2.0;
  for (; exponent < 0; ++exponent) power *= 0.5;
  return power;
}

// Of a binary format: fraction bits, exponents of the smallest normal and of the largest binade,
// and what of that binade is finite.
struct Properties {
  NumberFormat format;
  std::string_view name;
  int fraction_bits;
  int min_exponent;
  double largest;

  constexpr Properties(NumberFormat f, std::string_view n, int bits, int exponent, double most)
      : format(f), name(n), fraction_bits(bits), min_exponent(exponent), largest(most) {
    if (f == NumberFormat::kExact || f == NumberFormat::kStored) return;
    unit = power_of_two(-bits - 1);
    smallest_normal = power_of_two(exponent);
    // Half of 2^-1074 is no double: the quantum itself stands for it.
    half_quantum = power_of_two(f == NumberFormat::kF64 ? -1074 : exponent - bits - 1);
  }

  double unit = 0.0, smallest_normal = 0.0, half_quantum = 0.0;
};

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

// Where values lie: multiples of 2^quantum, of at most `digits` significant bits, up to `largest`.
struct Grid {
  int digits;
  int quantum;
  double largest;
};

Grid grid_of(const Properties& p) {
  return {p.fraction_bits + 1, p.min_exponent - p.fraction_bits, p.largest};
}

Grid grid_of(DType type) {
  switch (type) {
    case DType::kI64:
      return {63, 0, 0x1p63};
    case DType::kI32:
      return {31, 0, 0x1p31};
    case DType::kI8:
      return {7, 0, 128.0};
    case DType::kU8:
      return {8, 0, 255.0};
    case DType::kBool:
      return {1, 0, 1.0};
    case DType::kF8E4M3FNUZ:
      return {4, -10, 240.0};
    case DType::kF8E8M0:
      return {1, -127, 0x1p127};
    case DType::kF4E2M1:
      return {2, -1, 6.0};
    case DType::kI4:
      return {3, 0, 8.0};
    default:
      return grid_of(of(answer_format(type)));
  }
}

}  // namespace

std::string_view name(NumberFormat format) { return of(format).name; }

double unit_roundoff(NumberFormat format) { return of(format).unit; }
double half_quantum(NumberFormat format) { return of(format).half_quantum; }
double smallest_normal(NumberFormat format) { return of(format).smallest_normal; }
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
  if (!is_real_format(format)) return format == NumberFormat::kExact;
  const Grid from = grid_of(type);
  const Grid to = grid_of(of(format));
  return from.digits <= to.digits && from.quantum >= to.quantum && from.largest <= to.largest;
}

double Rounding::unit() const {
  return unit_roundoff(type) * (mode == RoundingMode::kTruncate ? 2.0 : 1.0);
}

double Rounding::quantum() const {
  const double lost = flush ? smallest_normal(type)
                            : half_quantum(type) * (mode == RoundingMode::kTruncate ? 2.0 : 1.0);
  return lost / scale;
}

NumberFormat answer_format(DType type) {
  if (const std::optional<NumberFormat> format = format_of(type)) return *format;
  throw Error("answers are of a floating type, not " + std::string(name(type)));
}

Arithmetic with_stored_type(Arithmetic arithmetic, DType type) {
  const NumberFormat format = answer_format(type);
  for (Rounding* rounding : {&arithmetic.out, &arithmetic.lse}) {
    if (rounding->type == NumberFormat::kStored) rounding->type = format;
  }
  return arithmetic;
}

}  // namespace attn
