// A random attention problem in a few numbers: what RapidCheck draws, shrinks and prints.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "attn/operation.h"
#include "property_tests/memory_form.h"

namespace attn::property_tests {

// Data families by their published numbers: what queries, keys and values hold.
enum class Family : std::uint32_t {
  kUniform = 1,         // q, k, v in [-1, 1)
  kBell = 2,            // q, k, v about N(0, 1)
  kNegativeLogits = 5,  // every score near -128 or below
  kLargeLogits = 6,     // every score near +128 or above
  kExactLane = 7,       // q = 0, v small integers: 2^n visible keys give an exact answer
  kMembership = 8,      // q = 0, v powers of two: out times the number of visible keys lists them
  kAllCodes = 15,       // as kBell; keys and values of 8 bits or less take every code
  kConstantValues = 17  // as kBell; one value for all keys of a head and dim
};

// query_len and context_len of the requests.
enum class Lengths : std::uint8_t {
  kEqual,   // as the config says
  kRagged,  // each drawn from 0 to what the config says
  kBeyond,  // query_len as the config says, seq_len drawn below it: rows before position 0
};

// Types and encoding of the cache.
enum class KvFormat : std::uint8_t {
  kF32,
  kF16,
  kBF16,
  kF8E4M3FN,
  kF8E4M3FNUZ,
  kF8E5M2,
  kInt8PerTokenHead,
  kFp8PerTokenHead,
  kNvfp4
};
DType dtype_of(KvFormat format);
KvEncoding encoding_of(KvFormat format);

enum class ScaleShape : std::uint8_t { kNone, kOne, kPerHead, kPerRequestHead };

enum class MaskKind : std::uint8_t {
  kCausal,
  kNone,
  kCausalPerRequest,  // drawn
  kWindow,            // causal, window_left = window - 1
  kSymmetricWindow,   // not causal, left = right = window - 1
  kLeftWindow,        // not causal, left = window - 1
  kRectangle,         // not causal, left = window - 1, right = reach
  kWindowSinkTokens,  // as kWindow, sink_token_length = reach
  kChunked,           // causal, chunks of `window`, lookback = reach
  kChunkedNonCausal,  // as kChunked, not causal
  kRswa,              // rswa_window = window, prefix lengths drawn from 0 to reach
  kRanges,            // causal or drawn ranges
  kRangesWindow,      // as kRanges with a window
  kRangesClamped,     // as kRangesWindow, clamped
};

enum class BiasKind : std::uint8_t { kNone, kFinite, kSomeMasked };
enum class SinkKind : std::uint8_t { kNone, kFinite, kSomeMinusInfinity };

// Axes of attn_mask and attn_bias that have length 1, as a set of bits.
inline constexpr unsigned kOneForAllRequests = 1;
inline constexpr unsigned kOneForAllHeads = 2;
inline constexpr unsigned kOneForAllRows = 4;
inline constexpr unsigned kOneForAllKeys = 8;

struct ProblemConfig {
  int num_reqs = 1;
  Lengths lengths = Lengths::kEqual;
  int query_len = 1;
  int context_len = 0;

  int num_kv_heads = 1;
  int group = 1;  // query heads of a KV head
  int head_size = 1;
  int head_size_v = 1;

  DType query_dtype = DType::kF32;
  KvFormat kv = KvFormat::kF32;
  ScaleShape kv_scales = ScaleShape::kNone;
  ScaleShape q_scale = ScaleShape::kNone;  // kPerRequestHead: as kPerHead

  MaskKind mask = MaskKind::kCausal;
  int window = 1;
  int reach = 0;
  bool attn_mask = false;

  bool drawn_scale = false;  // any sign and 0; else 1 / sqrt(head_size)
  bool soft_cap = false;
  AlibiForm alibi = AlibiForm::kNone;
  BiasKind attn_bias = BiasKind::kNone;
  unsigned one_for_all = 0;
  bool tree = false;  // qq_bias: drawn ancestors, finite values
  SinkKind sinks = SinkKind::kNone;
  bool lse_includes_sink = true;
  bool output_codes = false;

  ExecSpec exec;
  MemoryForm memory;
  Family family = Family::kUniform;
  std::uint64_t seed = 0;

  bool operator==(const ProblemConfig&) const = default;
};

// The nearest valid config: what the chosen mask, format and layout do not use gets its default,
// what they need is raised. Idempotent.
ProblemConfig normalised(ProblemConfig config);

std::string_view name(MaskKind mask);
std::string_view name(KvFormat format);
std::string_view name(Family family);

// One line: every field that differs from its default, and the seed.
std::string to_string(const ProblemConfig& config);
std::ostream& operator<<(std::ostream& stream, const ProblemConfig& config);

}  // namespace attn::property_tests
