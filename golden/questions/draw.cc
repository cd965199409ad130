#include "golden/questions/draw.h"

#include <fmt/core.h>

#include <bit>
#include <cmath>

#include "attn/error.h"

namespace attn::questions {
namespace {

// ln 1 ... ln 8 as f32.
constexpr std::uint32_t kLogarithms[8] = {0x00000000, 0x3f317218, 0x3f8c9f54, 0x3fb17218,
                                          0x3fce0210, 0x3fe55860, 0x3ff91395, 0x40051592};

double draw_uniform(const Words& words, DType type) {
  return uniform(words, is_floating(type) ? type : DType::kF32);
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::isfinite(x) && x > 0.0 && std::frexp(x, &exponent) == 0.5;
}

// The smallest power of two A with 4 * A * scale >= wanted.
double amplitude(double scale, double wanted) {
  double a = 1.0;
  while (4.0 * a * scale >= wanted) a /= 2.0;
  while (4.0 * a * scale < wanted) a *= 2.0;
  return a;
}

int fraction_bits(DType type) {
  switch (type) {
    case DType::kF32:
      return 23;
    case DType::kF16:
      return 10;
    case DType::kBF16:
      return 7;
    case DType::kF8E4M3FN:
    case DType::kF8E4M3FNUZ:
      return 3;
    case DType::kF8E5M2:
      return 2;
    default:
      throw Error(fmt::format("no denormal values of {} are drawn", name(type)));
  }
}

double denormal(const Words& words, DType type) {
  const std::uint32_t fraction = words[1] & ((std::uint32_t{1} << fraction_bits(type)) - 1);
  return (words[0] >> 31 != 0 ? -1.0 : 1.0) * decode(type, fraction);
}

double extreme(const Words& words, DType type) {
  const bool wide = type == DType::kF64 || type == DType::kF32 || type == DType::kBF16;
  const double largest =
      wide ? std::ldexp(1.0, 100) : decode(type, encode(type, HUGE_VAL, Overflow::kSaturate));
  const double magnitude = std::ldexp(largest, -static_cast<int>(words[1] >> 30));
  return words[0] >> 31 != 0 ? -magnitude : magnitude;
}

}  // namespace

std::string_view name(Family family) {
  constexpr std::string_view kNames[] = {"uniform",           "bell",
                                         "needle_visible",    "needle_hidden",
                                         "negative_logits",   "large_logits",
                                         "exact_lane",        "membership",
                                         "weights",           "repeated_keys",
                                         "cancelling_values", "denormal_values",
                                         "extreme_values",    "channel_outliers",
                                         "all_codes",         "half_ulp_weights",
                                         "constant_values",   "poisoned",
                                         "permuted_blocks"};
  return kNames[static_cast<std::uint32_t>(family) - 1];
}

std::string where(const Source& source) {
  return fmt::format("{} seed {:#x}", name(source.family), source.seed);
}

Words words_at(const Source& source, RandomTensor tensor, const Place& at) {
  return random_words(source.seed, random_index(at.request, at.position, at.head, at.dim), tensor,
                      static_cast<std::uint32_t>(source.family));
}

Words plain_words_at(const Source& source, RandomTensor tensor, const Place& at) {
  return random_words(source.seed, random_index(at.request, at.position, at.head, at.dim), tensor,
                      0);
}

std::uint64_t random_code(const Words& words, DType type) {
  if (bits(type) == 4) return words[0] >> 28;
  const std::uint64_t code = words[0] >> 24;
  if (type == DType::kI8 || std::isfinite(decode(type, code))) return code;
  return type == DType::kF8E4M3FNUZ ? 0x00 : code & ~std::uint64_t{0x40};
}

FamilyValues::FamilyValues(const Source& source, double scale, std::int64_t head_size_v)
    : source_(source), scale_(scale), head_size_v_(head_size_v) {
  const bool exact = source.family == Family::kWeights || source.family == Family::kHalfUlpWeights;
  if (exact && !is_power_of_two(scale)) {
    throw Error(fmt::format("family {} needs a scale that is a power of two, not {}",
                            name(source.family), scale));
  }
}

bool FamilyValues::draws_codes(DType type) const {
  return source_.family == Family::kAllCodes && bits(type) <= 8;
}

double FamilyValues::query(const Place& at, DType type) const {
  const Words words = words_at(source_, RandomTensor::kQuery, at);
  switch (source_.family) {
    case Family::kUniform:
      return draw_uniform(words, type);
    case Family::kNeedleVisible:
    case Family::kNeedleHidden:
    case Family::kNegativeLogits:
    case Family::kLargeLogits:
      return at.dim == 0 ? 4.0 : bell(words) / 4.0;
    case Family::kExactLane:
    case Family::kMembership:
      return 0.0;
    case Family::kWeights:
      return at.dim == 0 ? 1.0 / scale_ : 0.0;
    case Family::kHalfUlpWeights:
      return at.dim <= 1 ? 1.0 : 0.0;
    case Family::kCancellingValues:
      return bell(words) / 8.0;
    case Family::kExtremeValues:
      return bell(words) / 4.0;
    default:
      return bell(words);
  }
}

double FamilyValues::key(const Place& at, DType type, bool needle) const {
  const std::int64_t drawn_position =
      source_.family == Family::kRepeatedKeys ? at.position % 4 : at.position;
  const Words words =
      words_at(source_, RandomTensor::kKey, {at.request, drawn_position, at.head, at.dim});
  switch (source_.family) {
    case Family::kUniform:
      return draw_uniform(words, type);
    case Family::kNeedleVisible:
    case Family::kNeedleHidden:
      if (at.dim == 0) return needle ? amplitude(scale_, 32.0) : 0.0;
      return bell(words) / 4.0;
    case Family::kNegativeLogits:
      return at.dim == 0 ? -amplitude(scale_, 128.0) : bell(words) / 4.0;
    case Family::kLargeLogits:
      return at.dim == 0 ? amplitude(scale_, 128.0) : bell(words) / 4.0;
    case Family::kWeights:
      return at.dim == 0 ? std::bit_cast<float>(kLogarithms[words[0] >> 29]) : bell(words);
    case Family::kHalfUlpWeights:
      if (at.dim > 1) return bell(words);
      if (at.position == 0) return 0.0;
      return (at.dim == 0 ? -0x1.6p-1 : -0x1.eap-10) / scale_;
    case Family::kCancellingValues:
      return bell(words) / 8.0;
    case Family::kExtremeValues:
      return bell(words) / 4.0;
    case Family::kChannelOutliers:
      return at.dim % 16 == 5 ? bell(words) * 32.0 : bell(words);
    default:
      return bell(words);
  }
}

double FamilyValues::value(const Place& at, DType type) const {
  const std::int64_t drawn_position = source_.family == Family::kConstantValues ? 0 : at.position;
  const Words words =
      words_at(source_, RandomTensor::kValue, {at.request, drawn_position, at.head, at.dim});
  switch (source_.family) {
    case Family::kUniform:
      return draw_uniform(words, type);
    case Family::kNegativeLogits:
    case Family::kHalfUlpWeights:
      return std::fabs(bell(words));
    case Family::kExactLane:
    case Family::kWeights:
      return small_integer(words);
    case Family::kMembership:
      return at.position / 8 % head_size_v_ == at.dim
                 ? std::ldexp(1.0, static_cast<int>(at.position % 8))
                 : 0.0;
    case Family::kCancellingValues:
      return (at.position % 2 == 0 ? 1.0 : -1.0) * (1.0 + draw_uniform(words, type) / 16.0);
    case Family::kDenormalValues:
      return denormal(words, type);
    case Family::kExtremeValues:
      return extreme(words, type);
    default:
      return bell(words);
  }
}

std::uint64_t FamilyValues::key_code(const Place& at, DType type, bool needle) const {
  if (draws_codes(type)) return random_code(words_at(source_, RandomTensor::kKey, at), type);
  return encode(type, key(at, type, needle), Overflow::kSaturate);
}

std::uint64_t FamilyValues::value_code(const Place& at, DType type) const {
  if (draws_codes(type)) return random_code(words_at(source_, RandomTensor::kValue, at), type);
  return encode(type, value(at, type), Overflow::kSaturate);
}

HostTensor int_tensor(const std::vector<std::int64_t>& values) {
  return {DType::kI32,
          {static_cast<std::int64_t>(values.size())},
          std::vector<double>(values.begin(), values.end())};
}

HostTensor starts(const std::vector<std::int64_t>& lengths) {
  std::vector<std::int64_t> sums = {0};
  for (const std::int64_t length : lengths) sums.push_back(sums.back() + length);
  return int_tensor(sums);
}

HostTensor drawn_scale(const Source& source, RandomTensor tensor) {
  return drawn_scale_per_head(source, tensor, 1);
}

HostTensor drawn_scale_per_head(const Source& source, RandomTensor tensor, std::int64_t num_heads) {
  return drawn(DType::kF32, {num_heads}, [&](const std::vector<std::int64_t>& at) {
    return random_scale(words_at(source, tensor, {.head = at[0]}));
  });
}

HostTensor drawn_scale_per_request_head(const Source& source, RandomTensor tensor,
                                        std::int64_t num_reqs, std::int64_t num_heads) {
  return drawn(DType::kF32, {num_reqs, num_heads}, [&](const std::vector<std::int64_t>& at) {
    return random_scale(words_at(source, tensor, {.request = at[0], .head = at[1]}));
  });
}

}  // namespace attn::questions
