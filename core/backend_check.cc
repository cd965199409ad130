#include "attn/backend_check.h"

#include <fmt/core.h>

#include <string_view>
#include <utility>

#include "attn/vllm_error.h"

namespace attn {
namespace {

constexpr std::array<std::string_view, kNumReasons> kTexts = {
    "head_size not supported",
    "dtype not supported",
    "kv_cache_dtype not supported",
    "block_size not supported",
    "partial multimodal token full attention not supported",
    "MLA not supported",
    "non-MLA not supported",
    "attention sinks not supported",
    "sparse not supported",
    "non-sparse not supported",
    "per-head quant scales not supported",
    "compute capability not supported",
    "",  // names the type
    "sliding window not supported",
    "R-SWA not supported",
    "non-causal attention not supported",
    "non-causal MLA attention with DCP not supported",
    "batch invariance not supported",
    "KV connector not supported",
    "PCP not supported",
    "DCP not supported",
    "device-cpu query lens mismatch not supported, this is needed for adaptive verification",
    "",  // the rule's own
    "no KV cache layout in common with TURBOQUANT",
    "no KV cache layout in common with ULTRAQUANT",
    ""};

constexpr std::uint32_t bit_if(bool condition, Reason reason) {
  return std::uint32_t{condition} << static_cast<int>(reason);
}

[[noreturn]] void raise_text(std::string_view type_and_text) {
  const std::size_t colon = type_and_text.find(": ");
  throw VllmError(std::string(type_and_text.substr(0, colon)),
                  std::string(type_and_text.substr(colon + 2)));
}

std::uint32_t missing_features(const DescribedBackend& b) {
  return bit_if(!b.mm_prefix, Reason::kMmPrefix) | bit_if(!b.mla, Reason::kMla) |
         bit_if(b.mla, Reason::kNonMla) | bit_if(!b.sink, Reason::kSink) |
         bit_if(!b.sparse, Reason::kSparse) | bit_if(b.sparse, Reason::kNonSparse) |
         bit_if(!b.per_head_quant_scales, Reason::kPerHeadQuantScales) |
         bit_if(!b.sliding_window, Reason::kSlidingWindow) | bit_if(!b.rswa, Reason::kRswa) |
         bit_if(!b.non_causal, Reason::kNonCausal) |
         bit_if(!b.non_causal_dcp, Reason::kNonCausalDcp) |
         bit_if(!b.batch_invariance, Reason::kBatchInvariance) |
         bit_if(!b.kv_connector, Reason::kKvConnector) | bit_if(!b.pcp, Reason::kPcp) |
         bit_if(!b.dcp, Reason::kDcp) | bit_if(!b.query_lens_mismatch, Reason::kQueryLensMismatch);
}

// The bits of Requirements::choices: cache dtypes and "not given", then dtypes, then attention
// types.
constexpr int kFirstDType = kNumCacheDTypes + 1;
constexpr int kFirstAttnType = kFirstDType + static_cast<int>(std::size(kAllDTypes));
static_assert(kFirstAttnType + kNumAttentionTypes <= 64);

constexpr std::uint64_t bits_below(int n) { return (std::uint64_t{1} << n) - 1; }
constexpr std::uint64_t kKvChoices = bits_below(kFirstDType);
constexpr std::uint64_t kDTypeChoices = bits_below(kFirstAttnType) & ~kKvChoices;
constexpr std::uint64_t kAttnTypeChoices = ~bits_below(kFirstAttnType);

constexpr std::uint64_t choice(std::optional<CacheDType> dtype) {
  return CacheDTypeSet().with(dtype).bits();
}
constexpr std::uint64_t choice(DType dtype) {
  return std::uint64_t{1} << (kFirstDType + static_cast<int>(dtype));
}
constexpr std::uint64_t choice(AttentionType type) {
  return std::uint64_t{1} << (kFirstAttnType + static_cast<int>(type));
}

std::uint64_t accepted_choices(const DescribedBackend& backend) {
  std::uint64_t accepted = backend.kv.accepted.bits();
  for (const DType dtype : backend.dtypes) accepted |= choice(dtype);
  for (const AttentionType type : backend.attn_types) accepted |= choice(type);
  return accepted;
}

}  // namespace

Requirements::Requirements(const AttentionSelectorConfig& asked)
    : config(asked),
      wanted(bit_if(asked.use_mm_prefix, Reason::kMmPrefix) | bit_if(asked.use_mla, Reason::kMla) |
             bit_if(!asked.use_mla, Reason::kNonMla) | bit_if(asked.has_sink, Reason::kSink) |
             bit_if(asked.use_sparse, Reason::kSparse) |
             bit_if(!asked.use_sparse, Reason::kNonSparse) |
             bit_if(asked.use_per_head_quant_scales, Reason::kPerHeadQuantScales) |
             bit_if(asked.has_sliding_window, Reason::kSlidingWindow) |
             bit_if(asked.use_rswa, Reason::kRswa) |
             bit_if(asked.use_non_causal, Reason::kNonCausal) |
             bit_if(asked.use_mla && asked.use_non_causal && asked.use_dcp, Reason::kNonCausalDcp) |
             bit_if(asked.use_batch_invariant, Reason::kBatchInvariance) |
             bit_if(asked.use_kv_connector, Reason::kKvConnector) |
             bit_if(asked.use_pcp, Reason::kPcp) | bit_if(asked.use_dcp, Reason::kDcp) |
             bit_if(asked.use_adaptive_verification, Reason::kQueryLensMismatch)),
      choices(choice(asked.kv_cache_dtype) | choice(asked.dtype) | choice(asked.attn_type.type)),
      head_size(EightsTable::place(asked.head_size)),
      block_size(EightsTable::place(asked.block_size)) {}

BackendCheck::BackendCheck(DescribedBackend backend)
    : backend_(std::move(backend)),
      combination_(backend_.combination.get()),
      always_(bit_if(!backend_.capability, Reason::kComputeCapability)),
      unsupported_(missing_features(backend_)),
      refused_(~accepted_choices(backend_)),
      head_sizes_([this](std::optional<int> n) { return n && backend_.heads.allow(*n); }),
      block_sizes_([this](std::optional<int> n) { return backend_.blocks.support(n); }),
      raises_(!backend_.capability_raises.empty() || !backend_.non_causal_raises.empty()) {}

void BackendCheck::raise(const Requirements& asked) const {
  if (!backend_.capability_raises.empty()) raise_text(backend_.capability_raises);
  if (asked.config.use_non_causal && !backend_.non_causal_raises.empty()) {
    raise_text(backend_.non_causal_raises);
  }
}

Reasons BackendCheck::validate(const Requirements& asked, const SelectorFacts& facts) const {
  if (raises_) raise(asked);
  const AttentionSelectorConfig& config = asked.config;
  const std::uint64_t refused = asked.choices & refused_;
  const bool head_fits = asked.head_size.bit != 0 ? head_sizes_.contains(asked.head_size)
                                                  : backend_.heads.allow(config.head_size);
  const bool block_fits = asked.block_size.bit != 0 ? block_sizes_.contains(asked.block_size)
                                                    : backend_.blocks.support(config.block_size);
  Reasons reasons;
  reasons.add_bits(always_ | (asked.wanted & unsupported_) | bit_if(!head_fits, Reason::kHeadSize) |
                   bit_if(!block_fits, Reason::kBlockSize) |
                   bit_if((refused & kDTypeChoices) != 0, Reason::kDType) |
                   bit_if((refused & kKvChoices) != 0, Reason::kKvCacheDType) |
                   bit_if((refused & kAttnTypeChoices) != 0, Reason::kAttnType));
  if (combination_ != nullptr) {
    reasons.combination = combination_->first_broken(facts, config);
    if (reasons.combination != 0) reasons.add(Reason::kCombination);
  }
  return reasons;
}

std::vector<std::string> reason_texts(const Reasons& reasons, const BackendCheck& check,
                                      const SelectorFacts& facts,
                                      const AttentionSelectorConfig& config) {
  std::vector<std::string> texts;
  for (int index = 0; index < kNumReasons; ++index) {
    const auto reason = static_cast<Reason>(index);
    if (!reasons.has(reason)) continue;
    if (reason == Reason::kAttnType) {
      texts.push_back(fmt::format("attention type {} not supported", to_string(config.attn_type)));
    } else if (reason == Reason::kCombination) {
      texts.push_back(check.backend().combination->text(reasons.combination, facts, config));
    } else {
      texts.emplace_back(kTexts[static_cast<std::size_t>(index)]);
    }
  }
  return texts;
}

}  // namespace attn
