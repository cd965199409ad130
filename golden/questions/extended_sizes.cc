#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <utility>

#include "golden/questions/extended_data.h"
#include "golden/questions/extended_features.h"
#include "golden/questions/extended_questions.h"

namespace attn::questions {
namespace {

constexpr CacheForm kForms[] = {CacheForm::kPagedNhd, CacheForm::kPackedNhd, CacheForm::kVarlen,
                                CacheForm::kPagedHnd, CacheForm::kPackedHnd};
constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};

// Of sums over many terms.
constexpr Family kSums[] = {Family::kBell,           Family::kUniform,
                            Family::kNeedleVisible,  Family::kCancellingValues,
                            Family::kRepeatedKeys,   Family::kChannelOutliers,
                            Family::kNegativeLogits, Family::kLargeLogits};
// Of a key too few or too many.
constexpr Family kBorders[] = {Family::kNeedleHidden, Family::kMembership, Family::kExactLane,
                               Family::kNeedleVisible, Family::kNegativeLogits};
// Of memory read in another order.
constexpr Family kMemory[] = {Family::kPermutedBlocks, Family::kPoisoned, Family::kMembership,
                              Family::kNegativeLogits, Family::kAllCodes};

class Sweep {
 public:
  // `what` of the id and `name` say which sizes; families, forms of the cache and, where nothing
  // else is said, types take turns.
  void add(const Feature& feature, const std::string& what, std::string name, AttentionSetup setup,
           std::int64_t length, std::span<const Family> families) {
    const std::uint32_t n = number_++;
    feature.switch_on(setup, length);
    std::size_t i = n;
    while (!applies(families[i % families.size()], setup)) ++i;
    const Family family = families[i % families.size()];
    const Source source = {family, extended_seed(ExtendedTopic::kSizes, n)};
    AttentionEntry entry;
    entry.id = extended_id(feature.variant, fmt::format("{}_{}", feature.what, what), family);
    entry.name = std::move(name);
    entry.scenario = exposes(family);
    entry.rulings = feature.rulings;
    entry.setup = with_source(std::move(setup), source);
    if (entry.setup.scale != 0.0) entry.rulings.emplace_back("explicit_scale");
    entries_.push_back(std::move(entry));
  }

  // Form and type of the cache for the next one.
  AttentionSetup next(std::vector<RequestSetup> requests) const {
    AttentionSetup setup;
    setup.requests = std::move(requests);
    setup.head_size = 16;
    setup.cache = kForms[number_ % std::size(kForms)];
    setup.query_dtype = kTypes[number_ % std::size(kTypes)];
    setup.kv_dtype = setup.query_dtype;
    setup.blocks = {.block_size = 16, .permuted = true};
    if (setup.cache != CacheForm::kVarlen) setup.fill = Fill::kNaN;
    return setup;
  }

  std::vector<AttentionEntry> take() && { return std::move(entries_); }

 private:
  std::uint32_t number_ = 0;
  std::vector<AttentionEntry> entries_;
};

void head_sizes(Sweep& sweep) {
  constexpr std::int64_t kWindow = 8;
  std::vector<Feature> features = {length_features().front()};
  features.insert(features.end(), score_features().begin(), score_features().end());
  features.insert(features.end(), memory_features().begin(), memory_features().end());
  for (const std::int64_t size : {16, 64, 80, 128, 192, 256, 512}) {
    for (const Feature& feature : features) {
      AttentionSetup setup = sweep.next({{2, 12}, {1, 33}});
      setup.num_heads = 4;
      setup.num_kv_heads = 2;
      setup.head_size = size;
      sweep.add(feature, fmt::format("d{}", size), fmt::format("heads of {} dims", size),
                std::move(setup), kWindow, kSums);
    }
  }
}

// One key less than a power of two, as many, one more; the lengths of windows, chunks and parts are
// that power.
void contexts(Sweep& sweep) {
  for (const std::int64_t keys : {128, 1024, 4096}) {
    for (const Feature& feature : all_features()) {
      AttentionSetup setup = sweep.next({{1, keys - 1}, {1, keys}, {1, keys + 1}});
      setup.num_heads = 1;
      sweep.add(feature, fmt::format("s{}", keys),
                fmt::format("contexts of {} to {} keys", keys - 1, keys + 1), std::move(setup),
                keys, kSums);
    }
  }
}

void large_problems(Sweep& sweep) {
  constexpr std::int64_t kKeys = 6000;
  constexpr std::int64_t kLength = 1000;
  for (const Feature& feature : all_features()) {
    const bool wanted = feature.variant == "causal" || feature.variant == "split_kv" ||
                        feature.variant == "quantised";
    if (!wanted) continue;
    AttentionSetup setup = sweep.next({{1, kKeys}});
    setup.num_heads = 1;
    setup.head_size = 128;
    setup.query_dtype = DType::kBF16;
    setup.kv_dtype = DType::kBF16;
    setup.blocks.block_size = 64;
    sweep.add(feature, "s6000_d128", "a row over 6000 keys of 128 dims", std::move(setup), kLength,
              kSums);
  }
}

// Contexts around one and two blocks.
void block_sizes(Sweep& sweep) {
  std::vector<Feature> features = {score_features()[1]};
  features.insert(features.end(), memory_features().begin(), memory_features().end());
  for (const std::int64_t size : {1, 8, 16, 32, 64, 256}) {
    for (const CacheForm form : {CacheForm::kPagedNhd, CacheForm::kPagedHnd}) {
      for (const Feature& feature : features) {
        const bool packed = feature.variant == "causal" || feature.variant == "diffkv";
        for (int i = 0; i < (packed ? 2 : 1); ++i) {
          AttentionSetup setup =
              sweep.next({{1, size - 1}, {1, size}, {1, size + 1}, {2, 2 * size + 1}});
          const bool hnd = form == CacheForm::kPagedHnd;
          setup.cache = i == 0 ? form : hnd ? CacheForm::kPackedHnd : CacheForm::kPackedNhd;
          setup.num_kv_heads = 2;
          setup.blocks.block_size = size;
          sweep.add(feature,
                    fmt::format("b{}_{}{}", size, i == 0 ? "" : "packed_", hnd ? "hnd" : "nhd"),
                    fmt::format("blocks of {} slots, contexts around their borders", size),
                    std::move(setup), size, kMemory);
        }
      }
    }
  }
}

// Rows and contexts one less than the length of the window, chunk or part, as long, one longer.
void borders(Sweep& sweep) {
  for (const std::int64_t w : {1, 16, 33}) {
    for (const Feature& feature : length_features()) {
      const std::string name = fmt::format("around a length of {}: ", w);
      sweep.add(feature, fmt::format("w{}_decode", w), name + "decode rows",
                sweep.next({{1, w - 1}, {1, w}, {1, w + 1}, {2, 2 * w + 1}}), w, kBorders);
      sweep.add(feature, fmt::format("w{}_prefill", w), name + "prompts",
                sweep.next({{w - 1, w - 1}, {w, w}, {w + 1, w + 1}}), w, kBorders);
      sweep.add(feature, fmt::format("w{}_chunk", w), name + "chunks of prompts",
                sweep.next({{w, w + 1}, {w, 2 * w}, {w + 1, 3 * w}}), w, kBorders);
    }
  }
}

}  // namespace

std::vector<AttentionEntry> size_entries() {
  Sweep sweep;
  head_sizes(sweep);
  contexts(sweep);
  large_problems(sweep);
  block_sizes(sweep);
  borders(sweep);
  return std::move(sweep).take();
}

}  // namespace attn::questions
