#include "golden/questions/extended_data.h"

#include "attn/random.h"

namespace attn::questions {
namespace {

constexpr std::uint64_t kCampaign = 0x0e87;

bool needs_power_of_two(Family family) {
  return family == Family::kWeights || family == Family::kHalfUlpWeights;
}

double explicit_scale(Family family) {
  if (needs_power_of_two(family)) return 0.25;
  return family == Family::kAllCodes ? 0x1p-10 : 0.0;
}

}  // namespace

std::uint64_t extended_seed(ExtendedTopic topic, std::uint32_t number) {
  return derived_seed(kCampaign, static_cast<std::uint64_t>(topic) << 16 | number);
}

const std::vector<Family>& all_families() {
  static const std::vector<Family> all = [] {
    std::vector<Family> families;
    for (std::uint32_t n = 1; n <= static_cast<std::uint32_t>(Family::kPermutedBlocks); ++n) {
      families.push_back(static_cast<Family>(n));
    }
    return families;
  }();
  return all;
}

std::string_view exposes(Family family) {
  constexpr std::string_view kMistakes[] = {
      "heads, rows or requests mixed up; a scale left out",
      "any wrong term, by a little",
      "a key at the border of the mask or of a tile is lost",
      "a key just beyond the border of the mask is seen",
      "keys of score 0 that do not exist take all the weight, as does a maximum that starts at 0",
      "exponentials taken without subtracting the maximum overflow",
      "exact in any order of summation: a key too few or too many gives another fraction",
      "a key too few or too many shows as a bit of the output",
      "weights 1 to 8 that a wrong base or denominator turns into others",
      "rounding errors of one sign add up",
      "a sum that is small beside its terms: rounding of weights and of partial sums",
      "subnormal values flushed to zero",
      "sums of the largest values overflow, or saturate on the way",
      "one dim in sixteen is large: a scale of another group, token or head",
      "codes read as another type, subnormal codes flushed",
      "weights rounded before they are summed all lose alike",
      "a denominator that is not the sum of the weights",
      "what no request addresses is read: not finite, or the largest value",
      "blocks found by their order instead of by the table"};
  return kMistakes[static_cast<std::uint32_t>(family) - 1];
}

bool applies(Family family, const AttentionSetup& setup) {
  switch (family) {
    case Family::kPoisoned:
    case Family::kPermutedBlocks:
      return setup.cache != CacheForm::kVarlen;
    case Family::kAllCodes:
      return bits(setup.kv_dtype) <= 8 && setup.encoding != KvEncoding::kPerTokenHead;
    case Family::kUniform:
    case Family::kBell:
      return true;
    case Family::kExactLane:
      return !setup.output_scale;
    case Family::kMembership:
      return !setup.output_scale && setup.encoding != KvEncoding::kNvfp4;
    default:
      return setup.encoding != KvEncoding::kNvfp4;
  }
}

bool applies_to_keys(Family family, DType key_dtype) {
  switch (family) {
    case Family::kNeedleVisible:
    case Family::kNeedleHidden:
    case Family::kMembership:
    case Family::kDenormalValues:
    case Family::kExtremeValues:
    case Family::kConstantValues:
    case Family::kPoisoned:
    case Family::kPermutedBlocks:
      return false;
    case Family::kAllCodes:
      return bits(key_dtype) <= 8;
    default:
      return true;
  }
}

bool applies(Family family, const LatentSetup& setup) {
  return family == Family::kPoisoned || family == Family::kPermutedBlocks ||
         applies_to_keys(family, setup.cache_dtype);
}

AttentionSetup with_source(AttentionSetup setup, const Source& source) {
  setup.source = source;
  setup.scale = explicit_scale(source.family);
  return setup;
}

LatentSetup with_source(LatentSetup setup, const Source& source) {
  setup.source = source;
  if (source.family == Family::kPoisoned) setup.fill = drawn_fill(source);
  // (nope + rope)^-1/2 is a power of two.
  if (needs_power_of_two(source.family)) setup.nope = (setup.rope < 16 ? 16 : 256) - setup.rope;
  return setup;
}

}  // namespace attn::questions
