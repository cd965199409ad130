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

// Which multiples of eight below kEnd, and whether "not given", are in a set: a look-up instead of
// divisions.
class EightsTable {
 public:
  static constexpr int kPerWord = 8 * 64;
  static constexpr int kEnd = 3 * kPerWord;

  // Where a number stands in every table: a bit of a word; no bit when tables do not hold it.
  struct Place {
    std::uint64_t bit = 0;
    std::uint32_t word = 0;
  };
  static constexpr Place kNotGiven = {1, kEnd / kPerWord};
  static constexpr Place place(int n) {
    if (n < 0 || n >= kEnd || n % 8 != 0) return {};
    return {std::uint64_t{1} << (n / 8 % 64), static_cast<std::uint32_t>(n / kPerWord)};
  }
  static constexpr Place place(std::optional<int> n) { return n ? place(*n) : kNotGiven; }

  // `contains` takes an optional int.
  template <class Contains>
  explicit EightsTable(const Contains& contains) {
    if (contains(std::nullopt)) add(kNotGiven);
    for (int n = 0; n < kEnd; n += 8) {
      if (contains(n)) add(place(n));
    }
  }

  bool contains(Place place) const { return (words_[place.word] & place.bit) != 0; }

 private:
  void add(Place place) { words_[place.word] |= place.bit; }

  std::array<std::uint64_t, kEnd / kPerWord + 1> words_{};
};

// A configuration as bits: made once, held against many backends.
struct Requirements {
  explicit Requirements(const AttentionSelectorConfig& asked);

  const AttentionSelectorConfig& config;  // must outlive this
  std::uint32_t wanted = 0;               // features in use, as bits of Reason
  std::uint64_t choices = 0;              // a bit each for the types that are asked for
  EightsTable::Place head_size;
  EightsTable::Place block_size;
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

  DescribedBackend backend_;
  const CombinationRules* combination_;  // of backend_, which copies share
  std::uint32_t always_ = 0;             // reasons of every configuration
  std::uint32_t unsupported_ = 0;        // reasons of configurations that want the feature
  std::uint64_t refused_ = 0;            // choices that are not accepted
  EightsTable head_sizes_;
  EightsTable block_sizes_;
  bool raises_ = false;
};

// The texts in order; `check` and `facts` as they were validated with. kImportError has no text of
// its own here.
std::vector<std::string> reason_texts(const Reasons& reasons, const BackendCheck& check,
                                      const SelectorFacts& facts,
                                      const AttentionSelectorConfig& config);

}  // namespace attn
