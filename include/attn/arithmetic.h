// A precision contract with every field known: where a kernel rounds, to what, how often. The bound
// (attn/error_bound.h) is a theorem about any kernel whose arithmetic is this.
//
// Units: u(T) is the unit roundoff of a format, q(T) half its smallest subnormal; rounding to
// nearest moves x by at most u|x| + q.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/contract.h"
#include "attn/dtype.h"

namespace attn {

enum class NumberFormat : std::uint8_t {
  kExact,
  kF64,
  kF32,
  kTF32,  // exponents of f32, 10 fraction bits
  kF16,
  kBF16,
  kF8E4M3FN,
  kF8E5M2,
  kStored  // of answers only: the type they are stored in; see with_stored_type
};

std::string_view name(NumberFormat format);   // "exact", "f64", ..., "stored"
double unit_roundoff(NumberFormat format);    // 0 of kExact
double half_quantum(NumberFormat format);     // 0 of kExact
double smallest_normal(NumberFormat format);  // 0 of kExact
double largest_finite(NumberFormat format);   // infinite of kExact
// The format of a floating element type that has one.
std::optional<NumberFormat> format_of(DType type);
NumberFormat answer_format(DType type);  // the same; Error when there is none
// Whether every finite value of `type` is a value of `format`.
bool embeds(DType type, NumberFormat format);

enum class RoundingMode : std::uint8_t { kNearest, kTruncate };

// Rounding to a format, of a value times `scale`, above 0, which is divided by it again afterwards;
// what these two round is not part of it. With `flush` results below the smallest normal become 0.
struct Rounding {
  NumberFormat type = NumberFormat::kExact;
  RoundingMode mode = RoundingMode::kNearest;
  double scale = 1.0;
  bool flush = false;

  double unit() const;     // largest relative error; twice u(type) when truncating
  double quantum() const;  // largest absolute error besides, of the unscaled value
  bool operator==(const Rounding&) const = default;
};

// How a sum of products is formed.
struct Summation {
  NumberFormat type = NumberFormat::kF32;  // of the accumulator
  RoundingMode mode = RoundingMode::kNearest;
  std::int64_t lanes = 1;  // independent partial sums, joined as a tree
  std::int64_t block = 0;  // products summed apart before they join the total; 0 = no limit
  std::int64_t mma_k = 0;  // exact products that one matrix instruction aligns and adds; 0 = none
  bool fused = true;       // products are not rounded by themselves
  std::optional<double> inner;  // unit roundoff inside a block, where it is not that of `type`

  bool operator==(const Summation&) const = default;
};

enum class MergeKind : std::uint8_t {
  kAccumulators,  // "acc": parts are (maximum, sum, accumulator)
  kLse            // "lse": parts are (out, lse)
};

struct Arithmetic {
  std::string name;  // of the contract

  NumberFormat vector = NumberFormat::kF32;  // of every scalar operation not named below
  bool flush = false;                        // operations read and write subnormals as 0

  Rounding query, key, value;  // of the operands, after exact decoding
  Summation dot, sum, pv;      // q.k; the row sum; weights times values
  bool sum_rounded_p = false;  // the row sum adds weights as rounded for pv

  int scale_roundings = 4;  // roundings that multiply the whole score by a constant
  double cap_rel = 0.0;     // errors of tanh, relative and absolute
  double cap_abs = 0.0;
  double bias_rel = 0.0;  // relative error of a bias as added
  Rounding logit;         // of the final logit as stored
  int logit_roundings = 0;

  double exp_rel = 0.0;         // relative error of the exponential; exp(0) = 1
  double exp_abs = 0.0;         // below this it may be 0
  int exp_arg_roundings = 3;    // relative to the argument
  int exp_shift_roundings = 2;  // relative to the subtracted maximum

  std::int64_t tile = 64;  // keys of an online step; 0 = two passes
  double max_lag = 0.0;    // natural-log amount by which the running maximum may lag

  Rounding p;  // of the weights, for pv
  int p_roundings = 0;
  bool p_normalized = false;  // divided by the row sum before

  std::int64_t splits = 1;  // parts of the keys, merged
  MergeKind merge_kind = MergeKind::kAccumulators;
  std::int64_t merge_depth = 1;  // 1 flat, parts - 1 one after the other
  Rounding merge_part;
  NumberFormat merge_lse = NumberFormat::kF32;

  int normalize_roundings = 2;
  double log_abs = 0.0;
  int log_roundings = 3;

  // Of expanded latent attention: the products with w_uk and w_uv.
  struct Projection {
    Summation sum;
    Rounding round;  // of what is stored of them

    bool operator==(const Projection&) const = default;
  };
  std::optional<Projection> project;

  Rounding out{NumberFormat::kStored}, lse{NumberFormat::kStored};

  bool operator==(const Arithmetic&) const = default;
};

// Names in the order in which they are listed.
std::vector<std::string_view> contract_names();

// Throws Error, naming the path, for an unknown name, an unknown field or a value out of its range.
Arithmetic resolve(const PrecisionContract& contract);

// The declaration in a JSON text: {"extends": NAME, fields...}, as --contract FILE.json has it;
// without "extends" it stands on "fp32". Throws Error for what resolve() would not take; `name` is
// what its paths begin with.
PrecisionContract parse_contract(std::string_view json, std::string name);

// Every field as a JSON object, in the language that parse_contract reads; not the name.
std::string to_json(const Arithmetic& arithmetic);

// With kStored of out and lse replaced. Throws Error when `type` is no floating type.
Arithmetic with_stored_type(Arithmetic arithmetic, DType type);

}  // namespace attn
