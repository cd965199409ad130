// validate_configuration: every reason why a described backend cannot serve a configuration, in
// vLLM's order, as a set of bits. Texts are made only when asked for.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn/described_backend.h"
#include "attn/selector_config.h"
#include "attn/selector_environment.h"

namespace attn {

// In the order of the texts.
enum class Reason : std::uint8_t {
  kHeadSize,
  kDType,
  kKvCacheDType,
  kBlockSize,
  kMmPrefix,
  kMla,
  kNonMla,
  kSink,
  kSparse,
  kNonSparse,
  kPerHeadQuantScales,
  kComputeCapability,
  kAttnType,
  kSlidingWindow,
  kRswa,
  kNonCausal,
  kNonCausalDcp,
  kBatchInvariance,
  kKvConnector,
  kPcp,
  kDcp,
  kQueryLensMismatch,
  kCombination,
  kTurboquantLayout,  // the last three are found by a platform, not by the backend
  kUltraquantLayout,
  kImportError,
};
inline constexpr int kNumReasons = 26;

class Reasons {
 public:
  constexpr bool empty() const { return bits_ == 0; }
  constexpr bool has(Reason reason) const { return (bits_ & bit(reason)) != 0; }
  constexpr bool only(Reason reason) const { return bits_ == bit(reason); }
  constexpr void add(Reason reason) { bits_ |= bit(reason); }
  constexpr void add_bits(std::uint32_t bits) { bits_ |= bits; }
  constexpr std::uint32_t bits() const { return bits_; }

  // Which combination rule is broken when kCombination is in the set.
  std::uint32_t combination = 0;

  constexpr bool operator==(const Reasons&) const = default;
  static constexpr std::uint32_t bit(Reason reason) {
    return std::uint32_t{1} << static_cast<int>(reason);
  }

 private:
  std::uint32_t bits_ = 0;
};

// A configuration with its wishes as bits of Reason: made once, held against many backends.
struct Requirements {
  explicit Requirements(const AttentionSelectorConfig& asked);

  const AttentionSelectorConfig& config;  // must outlive this
  std::uint32_t wanted = 0;               // features in use
};

// Which multiples of eight below kEnd are in a set: a look-up instead of divisions.
class EightsTable {
 public:
  static constexpr int kEnd = 1536;

  template <class Contains>
  explicit EightsTable(const Contains& contains) {
    for (int n = 0; n < kEnd; n += 8) {
      if (contains(n)) bits_[static_cast<std::size_t>(n / 512)] |= std::uint64_t{1} << (n / 8 % 64);
    }
  }

  static bool covers(int n) {
    return (static_cast<unsigned>(n) & 7U) == 0 && static_cast<unsigned>(n) < unsigned{kEnd};
  }
  bool contains(int n) const {
    const auto index = static_cast<unsigned>(n) / 8;
    return (bits_[index / 64] >> (index % 64) & 1U) != 0;
  }

 private:
  std::array<std::uint64_t, kEnd / 512> bits_{};
};

// A described backend, prepared for many checks. Immutable.
class BackendCheck {
 public:
  explicit BackendCheck(DescribedBackend backend);

  // Allocates nothing. `facts` are those that the backend was described for. Throws VllmError where
  // vLLM raises.
  Reasons validate(const Requirements& asked, const SelectorFacts& facts) const;

  const DescribedBackend& backend() const { return backend_; }

 private:
  void raise(const Requirements& asked) const;
  bool allows_head(int head_size) const;
  bool supports_block(const std::optional<int>& block_size) const;

  DescribedBackend backend_;
  const CombinationRules* combination_;  // of backend_, which copies share
  CacheDTypeSet kv_;
  EightsTable heads_;
  EightsTable blocks_;
  std::uint32_t always_ = 0;       // reasons of every configuration
  std::uint32_t unsupported_ = 0;  // reasons of configurations that want the feature
  std::uint8_t dtypes_ = 0;        // bits of DType
  std::uint8_t attn_types_ = 0;    // bits of AttentionType
  bool raises_ = false;
};

// The texts in order; `check` and `facts` as they were validated with. kImportError has no text of
// its own here.
std::vector<std::string> reason_texts(const Reasons& reasons, const BackendCheck& check,
                                      const SelectorFacts& facts,
                                      const AttentionSelectorConfig& config);

}  // namespace attn
