// What a described backend promises, asked of one that runs: a layer for everything that a row can
// accept, held against both.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <utility>

#include "attn/described_executable.h"
#include "attn/error.h"
#include "attn/own_selector.h"
#include "selector/kernel_facts.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

using Config = AttentionSelectorConfig;

// Sizes of heads and blocks that are tried one by one; beyond them rows have no exceptions.
constexpr int kLargestSize = 4096;

// A layer that one capability decides about; `text` is how it differs from one without wishes.
struct Probe {
  Reason reason;
  std::string text;
  Config config;
};

struct Wish {
  Reason reason;
  const char* name;
  bool Config::*field;
};
constexpr Wish kWishes[] = {
    {Reason::kMmPrefix, "use_mm_prefix", &Config::use_mm_prefix},
    {Reason::kSink, "has_sink", &Config::has_sink},
    {Reason::kPerHeadQuantScales, "use_per_head_quant_scales", &Config::use_per_head_quant_scales},
    {Reason::kSlidingWindow, "has_sliding_window", &Config::has_sliding_window},
    {Reason::kRswa, "use_rswa", &Config::use_rswa},
    {Reason::kNonCausal, "use_non_causal", &Config::use_non_causal},
    {Reason::kBatchInvariance, "use_batch_invariant", &Config::use_batch_invariant},
    {Reason::kKvConnector, "use_kv_connector", &Config::use_kv_connector},
    {Reason::kPcp, "use_pcp", &Config::use_pcp},
    {Reason::kDcp, "use_dcp", &Config::use_dcp},
    {Reason::kQueryLensMismatch, "use_adaptive_verification", &Config::use_adaptive_verification}};

void for_each_probe(const Config& base, const std::function<void(const Probe&)>& visit) {
  const auto one = [&](Reason reason, std::string text, const auto& change) {
    Probe probe{reason, std::move(text), base};
    change(probe.config);
    visit(probe);
  };
  for (int size = 1; size <= kLargestSize; ++size) {
    one(Reason::kHeadSize, fmt::format("head_size={}", size),
        [=](Config& c) { c.head_size = size; });
    one(Reason::kBlockSize, fmt::format("block_size={}", size),
        [=](Config& c) { c.block_size = size; });
  }
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    one(Reason::kDType, fmt::format("dtype={}", model_dtype_name(dtype)),
        [=](Config& c) { c.dtype = dtype; });
  }
  one(Reason::kKvCacheDType, "kv_cache_dtype=None", [](Config&) {});
  for (int index = 0; index < kNumCacheDTypes; ++index) {
    const auto kv = static_cast<CacheDType>(index);
    one(Reason::kKvCacheDType, fmt::format("kv_cache_dtype={}", name(kv)),
        [=](Config& c) { c.kv_cache_dtype = kv; });
  }
  for (int index = 0; index < kNumAttentionTypes; ++index) {
    const auto type = static_cast<AttentionType>(index);
    one(Reason::kAttnType, fmt::format("attn_type={}", name(type)),
        [=](Config& c) { c.attn_type.type = type; });
  }
  for (const Wish& wish : kWishes) {
    one(wish.reason, fmt::format("{}=True", wish.name), [&](Config& c) { c.*wish.field = true; });
  }
  one(Reason::kNonCausalDcp, "use_non_causal=True, use_dcp=True",
      [](Config& c) { c.use_non_causal = c.use_dcp = true; });
  for (const Reason reason : {Reason::kSparse, Reason::kNonSparse}) one(reason, "", [](Config&) {});
}

// What it accepts by itself, apart from its device and from combinations of fields.
DescribedBackend promises_of(DescribedBackend declared) {
  declared.capability = true;
  declared.capability_raises.clear();
  declared.non_causal_raises.clear();
  declared.combination = nullptr;
  return declared;
}

OpKind operation_of(const DescribedBackend& declared) {
  if (!declared.mla) return OpKind::kAttention;
  return declared.sparse ? OpKind::kMlaSparse : OpKind::kMla;
}

}  // namespace

std::vector<std::string> unfulfilled(const DescribedBackend& declared, const Backend& executable) {
  const BackendCheck theirs(promises_of(declared));
  const BackendCheck ours(describe_executable(std::string(executable.name()),
                                              executable.capabilities(), operation_of(declared)));
  Config base;
  base.use_mla = declared.mla;
  base.use_sparse = declared.sparse;
  std::map<Reason, std::string> found;  // of the first probe that shows it
  for_each_probe(base, [&](const Probe& probe) {
    if (found.contains(probe.reason)) return;
    const Requirements asked(probe.config);
    const Reasons refused = ours.validate(asked, kNoFacts);
    if (!refused.has(probe.reason) || theirs.validate(asked, kNoFacts).has(probe.reason)) return;
    Reasons alone;
    alone.add(probe.reason);
    std::string& text = found[probe.reason];
    text = reason_texts(alone, ours, kNoFacts, probe.config).front();
    if (!probe.text.empty()) text += fmt::format(" ({})", probe.text);
  });
  std::vector<std::string> texts;
  texts.reserve(found.size() + 1);
  for (auto& [reason, text] : found) texts.push_back(std::move(text));
  if (declared.decode_lse && !ours.backend().decode_lse) {
    texts.emplace_back("log-sum-exp of a decode not returned");
  }
  return texts;
}

void BackendBindings::bind(const BackendSelector& selector, std::string_view member,
                           std::shared_ptr<const Backend> executable) {
  if (!executable) throw Error(fmt::format("the backend to stand for {} is null", member));
  const std::vector<std::string> reasons = [&] {
    try {
      return unfulfilled(selector.check(member).backend(), *executable);
    } catch (const VllmError& error) {
      throw Error(fmt::format("nothing describes {}: {}", member, error.what()));
    }
  }();
  if (!reasons.empty()) {
    throw Error(fmt::format("{} cannot stand for {}: {}", executable->name(), member,
                            fmt::join(reasons, "; ")));
  }
  bound_.insert_or_assign(std::string(member), std::move(executable));
}

const Backend& BackendBindings::executable(std::string_view member) const {
  const auto found = bound_.find(member);
  if (found == bound_.end()) {
    throw Error(fmt::format("{} only describes; it cannot run", member));
  }
  return *found->second;
}

}  // namespace attn
