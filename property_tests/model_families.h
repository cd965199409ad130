// Adversarial attention problems, small and cheap, for the soundness of error bounds: each family
// stresses terms of the bound that random data does not (docs/numerics.md).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "attn/dtype.h"
#include "property_tests/drawn_operation.h"

namespace attn::property_tests {

enum class ModelFamily : std::uint8_t {
  kBell,              // about N(0, 1)
  kLargeLogits,       // scores up to hundreds
  kNeedle,            // one key far above all others, often at an edge
  kCancellingValues,  // weights alike, values that sum to almost nothing
  kCancellingScores,  // products of q.k in pairs that almost cancel
  kEqualKeys,         // one key, many times
  kConstants,         // constant q, k and v: partial sums round the same way
  kTies,              // two distinct keys
  kRamp,              // scores grow, or fall, from key to key
  kSubnormals,        // products or values below the normal numbers
  kWideValues,        // V over 12 decades
  kFewKeys,           // one to three
  kRandomMask,        // attn_mask, also rows that see nothing
  kAlibi,             // every form, steep and flat
  kBias,              // attn_bias of any size
  kCancellingBiases,  // two or three terms whose sum is small
  kSoftCap,           // near saturation and far from it
  kSink,              // far above or below all keys, or among them
  kLargeMaximum,      // |m| about 1000, keys close together
  kOneKeyPerTile,     // few keys over a long span
  kHugeQuery          // huge q times subnormal k
};

std::span<const ModelFamily> all_model_families();
std::string_view name(ModelFamily family);

struct FamilyLimits {
  int most_keys = 96;
  int most_head_size = 32;
  int most_head_size_v = 8;
  int most_rows = 2;
  int most_heads = 2;
  std::vector<DType> types = {DType::kF32, DType::kBF16, DType::kF16};  // of q, and of k and v
};

// One request; options that a family is not about (mask, sink, a sink outside of the log-sum-exp)
// are on in some draws. The same seed, the same bytes.
DrawnOperation draw_family(ModelFamily family, std::uint64_t seed, const FamilyLimits& limits = {});

}  // namespace attn::property_tests
