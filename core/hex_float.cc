#include "core/hex_float.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace attn {
namespace {

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

// [+-]?[0-9]+, clamped far outside the exponents of doubles.
std::optional<std::int64_t> parse_exponent(std::string_view text) {
  constexpr std::int64_t kClamp = std::int64_t{1} << 40;
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    value = std::min(value * 10 + (c - '0'), kClamp);
  }
  return negative ? -value : value;
}

// significand * 2^exponent, when that is a double.
std::optional<double> exact_double(std::uint64_t significand, std::int64_t exponent) {
  if (significand == 0) return 0.0;
  const int shift = std::countr_zero(significand);
  significand >>= shift;
  exponent += shift;
  if (significand >> 53 != 0 || exponent < -1074 || exponent > 1023) return std::nullopt;
  const double value = std::ldexp(static_cast<double>(significand), static_cast<int>(exponent));
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<double> parse_finite(std::string_view text) {
  const std::size_t p = text.find('p');
  if (!text.starts_with("0x") || p == std::string_view::npos) return std::nullopt;
  const std::string_view digits = text.substr(2, p - 2);
  std::optional<std::int64_t> exponent = parse_exponent(text.substr(p + 1));
  const bool has_form = digits.size() == 1 || (digits.size() > 2 && digits[1] == '.');
  if (!has_form || !exponent) return std::nullopt;

  std::uint64_t significand = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i == 1) continue;  // the point
    const int digit = hex_digit(digits[i]);
    if (digit < 0) return std::nullopt;
    if (significand >> 60 != 0) {  // full: only zeros may follow
      if (digit != 0) return std::nullopt;
      continue;
    }
    significand = significand * 16 + static_cast<std::uint64_t>(digit);
    if (i > 1) *exponent -= 4;
  }
  return exact_double(significand, *exponent);
}

}  // namespace

std::optional<double> parse_hex_float(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::optional<double> magnitude;
  if (text == "inf") {
    magnitude = std::numeric_limits<double>::infinity();
  } else if (text == "nan") {
    magnitude = std::numeric_limits<double>::quiet_NaN();
  } else {
    magnitude = parse_finite(text);
  }
  if (magnitude && negative) return -*magnitude;
  return magnitude;
}

std::string to_hex_float(double value) {
  if (std::isnan(value)) return "nan";
  const char* sign = std::signbit(value) ? "-" : "";
  if (std::isinf(value)) return fmt::format("{}inf", sign);
  if (value == 0.0) return fmt::format("{}0x0.0p+0", sign);
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  const int biased = static_cast<int>((bits >> 52) & 0x7FF);
  const bool normal = biased != 0;
  return fmt::format("{}0x{}.{:013x}p{:+d}", sign, normal ? 1 : 0, fraction,
                     normal ? biased - 1023 : -1022);
}

}  // namespace attn
