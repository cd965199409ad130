#include "attn/dtype.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "attn/error.h"

namespace attn {
namespace {

struct TypeInfo {
  std::string_view name;
  int bits;
};

constexpr TypeInfo kTypes[] = {
    {"f64", 64},        {"f32", 32},    {"f16", 16},    {"bf16", 16},   {"i64", 64},
    {"i32", 32},        {"i8", 8},      {"u8", 8},      {"bool", 8},    {"f8_e4m3fn", 8},
    {"f8_e4m3fnuz", 8}, {"f8_e5m2", 8}, {"f8_e8m0", 8}, {"f4_e2m1", 4}, {"i4", 4},
};

const TypeInfo& info(DType type) { return kTypes[static_cast<int>(type)]; }

// How a small floating format spends its bits: sign, exponent, fraction from the top.
struct FloatFormat {
  int fraction_bits;
  int exponent_bits;
  int bias;
  bool has_infinity;           // exponent all ones: infinity and NaN, as IEEE 754
  std::uint64_t largest_code;  // without sign
  std::uint64_t nan_code;      // quiet, without sign (e4m3fnuz: the only one)
};

constexpr FloatFormat kF16Format{10, 5, 15, true, 0x7BFF, 0x7E00};
constexpr FloatFormat kBF16Format{7, 8, 127, true, 0x7F7F, 0x7FC0};
constexpr FloatFormat kE4M3FNFormat{3, 4, 7, false, 0x7E, 0x7F};
constexpr FloatFormat kE4M3FNUZFormat{3, 4, 8, false, 0x7F, 0x80};
constexpr FloatFormat kE5M2Format{2, 5, 15, true, 0x7B, 0x7E};
constexpr FloatFormat kE2M1Format{1, 2, 1, false, 0x7, 0};  // no NaN

const FloatFormat* float_format(DType type) {
  switch (type) {
    case DType::kF16:
      return &kF16Format;
    case DType::kBF16:
      return &kBF16Format;
    case DType::kF8E4M3FN:
      return &kE4M3FNFormat;
    case DType::kF8E4M3FNUZ:
      return &kE4M3FNUZFormat;
    case DType::kF8E5M2:
      return &kE5M2Format;
    case DType::kF4E2M1:
      return &kE2M1Format;
    default:
      return nullptr;
  }
}

std::uint64_t sign_bit(const FloatFormat& f) {
  return std::uint64_t{1} << (f.fraction_bits + f.exponent_bits);
}

// 2^exponent for any exponent of a normal double.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
}

double decode_float(DType type, const FloatFormat& f, std::uint64_t code) {
  const std::uint64_t magnitude = code & (sign_bit(f) - 1);
  const bool negative = (code & sign_bit(f)) != 0;
  if (type == DType::kF8E4M3FNUZ && magnitude == 0 && negative) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (magnitude > f.largest_code) {
    const bool infinite = f.has_infinity && magnitude == f.largest_code + 1;
    const double special = infinite ? std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::quiet_NaN();
    return std::copysign(special, negative ? -1.0 : 1.0);
  }
  const auto exponent = static_cast<int>(magnitude >> f.fraction_bits);
  const auto fraction =
      static_cast<double>(magnitude & ((std::uint64_t{1} << f.fraction_bits) - 1));
  const double one = power_of_two(f.fraction_bits);
  const double value = exponent == 0
                           ? fraction * power_of_two(1 - f.bias - f.fraction_bits)
                           : (one + fraction) * power_of_two(exponent - f.bias - f.fraction_bits);
  return negative ? -value : value;
}

std::uint64_t encode_nan(DType type, const FloatFormat& f, bool negative) {
  if (type == DType::kF4E2M1) throw Error("NaN has no code in f4_e2m1");
  if (type == DType::kF8E4M3FNUZ) return f.nan_code;
  return f.nan_code | (negative ? sign_bit(f) : 0);
}

std::uint64_t encode_overflow(DType type, const FloatFormat& f, bool negative, Overflow overflow) {
  const std::uint64_t sign = negative ? sign_bit(f) : 0;
  if (overflow == Overflow::kSaturate || type == DType::kF4E2M1) return sign | f.largest_code;
  return f.has_infinity ? sign | (f.largest_code + 1) : encode_nan(type, f, negative);
}

// One rounding: the spacing of codes around |value| is a power of two, so |value| / spacing is
// exact and nearbyint does the rounding (to nearest even: the default mode, which nothing here
// changes).
std::uint64_t encode_float(DType type, const FloatFormat& f, double value, Overflow overflow) {
  const bool negative = std::signbit(value);
  if (std::isnan(value)) return encode_nan(type, f, negative);
  if (std::isinf(value)) return encode_overflow(type, f, negative, overflow);
  const double magnitude = std::fabs(value);
  const int smallest = 1 - f.bias;  // exponent of the smallest normal
  const int exponent = magnitude == 0.0 ? smallest : std::max(smallest, std::ilogb(magnitude));
  const double units = std::nearbyint(std::ldexp(magnitude, f.fraction_bits - exponent));
  // `units` is fraction with the hidden bit; adding it to the exponent field carries over by itself
  // when rounding reached the next power of two, and gives a subnormal when the hidden bit is
  // missing.
  const std::uint64_t code = (static_cast<std::uint64_t>(exponent - smallest) << f.fraction_bits) +
                             static_cast<std::uint64_t>(units);
  if (code > f.largest_code) return encode_overflow(type, f, negative, overflow);
  if (code == 0 && type == DType::kF8E4M3FNUZ) return 0;  // it has no negative zero
  return code | (negative ? sign_bit(f) : 0);
}

std::uint64_t encode_f32(double value, Overflow overflow) {
  if (std::isnan(value)) return std::signbit(value) ? 0xFFC00000u : 0x7FC00000u;
  auto narrow = static_cast<float>(value);
  if (std::isinf(narrow) && overflow == Overflow::kSaturate) {
    narrow = std::copysign(std::numeric_limits<float>::max(), narrow);
  }
  return std::bit_cast<std::uint32_t>(narrow);
}

std::uint64_t encode_e8m0(double value, Overflow overflow) {
  const int too_large = overflow == Overflow::kSaturate ? 0xFE : 0xFF;
  if (std::isnan(value)) return 0xFF;
  if (!(value > 0.0)) throw Error(fmt::format("{} has no code in f8_e8m0", value));
  if (std::isinf(value)) return static_cast<std::uint64_t>(too_large);
  // Nearest in value: between 2^e and 2^(e+1) the tie is at 1.5 * 2^e; even codes win it.
  const int exponent = std::ilogb(value);
  const double ratio = std::ldexp(value, -exponent);
  const bool up = ratio > 1.5 || (ratio == 1.5 && ((exponent + 127) & 1) != 0);
  const int code = exponent + 127 + (up ? 1 : 0);
  return static_cast<std::uint64_t>(code < 0 ? 0 : (code > 0xFE ? too_large : code));
}

std::uint64_t encode_integer(DType type, double value) {
  if (std::isnan(value)) throw Error(fmt::format("NaN has no code in {}", name(type)));
  const double rounded = std::nearbyint(value);
  const int width = bits(type);
  if (type == DType::kU8) {
    return static_cast<std::uint64_t>(std::fmin(std::fmax(rounded, 0.0), 255.0));
  }
  const double top = std::ldexp(1.0, width - 1);
  std::int64_t integer = 0;
  if (rounded >= top) {
    integer = static_cast<std::int64_t>((std::uint64_t{1} << (width - 1)) - 1);
  } else {
    integer = static_cast<std::int64_t>(std::fmax(rounded, -top));
  }
  const std::uint64_t mask = width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  return static_cast<std::uint64_t>(integer) & mask;
}

std::int64_t sign_extend(std::uint64_t code, int width) {
  return static_cast<std::int64_t>(code << (64 - width)) >> (64 - width);
}

}  // namespace

std::string_view name(DType type) { return info(type).name; }

std::optional<DType> dtype_from_name(std::string_view text) {
  for (const DType type : kAllDTypes) {
    if (name(type) == text) return type;
  }
  return std::nullopt;
}

int bits(DType type) { return info(type).bits; }

int elements_per_unit(DType type) { return bits(type) == 4 ? 2 : 1; }

std::int64_t unit_bytes(DType type) { return (bits(type) + 7) / 8; }

bool is_floating(DType type) {
  switch (type) {
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
    case DType::kI4:
      return false;
    default:
      return true;
  }
}

double decode(DType type, std::uint64_t code) {
  switch (type) {
    case DType::kF64:
      return std::bit_cast<double>(code);
    case DType::kF32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(code));
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kI4:
      return static_cast<double>(sign_extend(code, bits(type)));
    case DType::kU8:
      return static_cast<double>(code & 0xFF);
    case DType::kBool:
      return (code & 0xFF) != 0 ? 1.0 : 0.0;
    case DType::kF8E8M0:
      return (code & 0xFF) == 0xFF ? std::numeric_limits<double>::quiet_NaN()
                                   : power_of_two(static_cast<int>(code & 0xFF) - 127);
    default:
      return decode_float(type, *float_format(type), code);
  }
}

std::uint64_t encode(DType type, double value, Overflow overflow) {
  switch (type) {
    case DType::kF64:
      return std::bit_cast<std::uint64_t>(
          std::isinf(value) && overflow == Overflow::kSaturate
              ? std::copysign(std::numeric_limits<double>::max(), value)
              : value);
    case DType::kF32:
      return encode_f32(value, overflow);
    case DType::kBool:
      return value != 0.0 ? 1 : 0;
    case DType::kF8E8M0:
      return encode_e8m0(value, overflow);
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kI4:
      return encode_integer(type, value);
    default:
      return encode_float(type, *float_format(type), value, overflow);
  }
}

std::uint64_t load_code(DType type, const void* from) {
  switch (unit_bytes(type)) {
    case 1: {
      std::uint8_t code;
      std::memcpy(&code, from, sizeof code);
      return code;
    }
    case 2: {
      std::uint16_t code;
      std::memcpy(&code, from, sizeof code);
      return code;
    }
    case 4: {
      std::uint32_t code;
      std::memcpy(&code, from, sizeof code);
      return code;
    }
    default: {
      std::uint64_t code;
      std::memcpy(&code, from, sizeof code);
      return code;
    }
  }
}

void store_code(DType type, std::uint64_t code, void* to) {
  // Little endian, as every file of the project and every machine it runs on.
  static_assert(std::endian::native == std::endian::little);
  std::memcpy(to, &code, static_cast<std::size_t>(unit_bytes(type)));
}

}  // namespace attn
