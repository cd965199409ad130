// Element types and their exact conversions. One decode and one encode per format: every other
// conversion in the project goes through these or is tested against them, code by code.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace attn {

enum class DType : std::uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI8,
  kU8,
  kBool,
  kF8E4M3FN,    // 1-4-3, bias 7, no infinity, NaN = S.1111.111, largest 448 (OCP OFP8)
  kF8E4M3FNUZ,  // 1-4-3, bias 8, no infinity, no -0, NaN = 0x80, largest 240
  kF8E5M2,      // 1-5-2, bias 15, IEEE-like with infinities, largest 57344 (OCP OFP8)
  kF8E8M0,      // power-of-two scale 2^(code - 127), 0xFF = NaN (OCP MX)
  kF4E2M1,      // two codes a byte, low nibble = even element; {0, .5, 1, 1.5, 2, 3, 4, 6} (OCP MX)
  kI4,          // two's complement, two codes a byte, low nibble = even element
};

inline constexpr DType kAllDTypes[] = {
    DType::kF64,        DType::kF32,    DType::kF16,    DType::kBF16,   DType::kI64,
    DType::kI32,        DType::kI8,     DType::kU8,     DType::kBool,   DType::kF8E4M3FN,
    DType::kF8E4M3FNUZ, DType::kF8E5M2, DType::kF8E8M0, DType::kF4E2M1, DType::kI4};

// "f64", "bf16", "f8_e4m3fn", ...: the spelling of case files.
std::string_view name(DType type);
std::optional<DType> dtype_from_name(std::string_view name);

// Bytes of one addressable unit. A unit holds one element, or two of the packed 4-bit types; the
// shapes of tensors count units.
std::int64_t unit_bytes(DType type);
int elements_per_unit(DType type);
int bits(DType type);

// True for every type that stores real numbers (floating point of any width).
bool is_floating(DType type);

// The exact value of a code (right-aligned in `code`; higher bits are ignored). kI64 beyond 2^53
// is rounded to nearest.
double decode(DType type, std::uint64_t code);

// What becomes of a value beyond the largest finite one.
enum class Overflow : std::uint8_t {
  kInfinity,  // IEEE: infinity; NaN where the format has no infinity
  kSaturate,  // the largest finite value, infinities too
};

// The code nearest to `value`, ties to even: one rounding, straight from double. NaN keeps its sign
// and becomes the format's quiet code (e4m3fn 0x7F, e5m2 0x7E, e4m3fnuz 0x80). Integers round to
// nearest even; they and kF4E2M1, which has neither infinity nor NaN, always saturate; for kBool
// any value but 0 is 1; NaN into an integer or into kF4E2M1, and a value that is not a positive
// number into kF8E8M0, throw Error.
std::uint64_t encode(DType type, double value, Overflow overflow);

// Reads one unit of `type` at `from` (any alignment) as a code.
std::uint64_t load_code(DType type, const void* from);
void store_code(DType type, std::uint64_t code, void* to);

}  // namespace attn
