// The fields of a precision contract as a JSON object:
//
//   vector (a format), flush, scale_roundings, cap {rel, abs}, bias_rel, logit_roundings,
//   exp {rel, abs, arg_roundings, shift_roundings}, tile, max_lag, splits,
//   merge {kind "acc" or "lse", depth, part, lse (a format)}, normalize_roundings,
//   log {abs, roundings}, project: null or {sum, round}
//   query, key, value, logit, merge.part, project.round, out, lse:
//     a rounding {type, mode, scale, flush}; p: the same and roundings, normalized
//   dot, sum, pv, project.sum: a summation {type, mode, lanes, block, mma_k, fused,
//     inner: null or {unit}}; sum: the same and rounded_p
//
// Formats, also the type of a rounding or summation, go by their names; mode is "nearest" or
// "truncate"; reals are hex float strings, finite and not negative (scale: above 0); counts are
// integers up to kMaxCount, where lanes, splits and depth begin at 1. Only out and lse may be
// "stored".
#pragma once

#include <cstdint>

#include "attn/arithmetic.h"
#include "core/strict_json.h"

namespace attn::judge {

inline constexpr std::int64_t kMaxCount = std::int64_t{1} << 30;

// Whether an object may also have the key "extends", which is not looked at here.
enum class Extends : std::uint8_t { kUnknown, kAllowed };

// Replaces what `fields` names. An object merges with what is there; the name of a format in the
// place of a rounding replaces all of it: "bf16" is {"type": "bf16"} with every other field at its
// default, also `roundings` and `normalized` of p. Throws Error, naming the path, for an unknown
// field or a value that is none of the above.
void apply_fields(const JsonNode& fields, Extends extends, Arithmetic& arithmetic);

}  // namespace attn::judge
