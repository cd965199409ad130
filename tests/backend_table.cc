#include "tests/backend_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <limits>

#include "attn/backend_registry.h"
#include "core/contains.h"
#include "selector/vllm_backends.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

std::string listed(const Words& words, const char* empty) {
  return words.empty() ? empty : fmt::format("{}", fmt::join(words, ", "));
}

std::string heads_of(const HeadSizes& heads) {
  if (!heads.only.empty()) return fmt::format("{}", fmt::join(heads.only, ", "));
  const bool bounded = heads.max != std::numeric_limits<int>::max();
  if (heads.multiple_of != 1 && bounded) {
    return fmt::format("multiples of {} up to {}", heads.multiple_of, heads.max);
  }
  return heads.min == std::numeric_limits<int>::min() ? "any" : fmt::format(">= {}", heads.min);
}

std::string dtypes_of(const DescribedBackend& b) {
  Words words;
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    if (contains(b.dtypes, dtype)) {
      words.emplace_back(model_dtype_name(dtype));
    }
  }
  return listed(words, "nothing");
}

std::string kv_of(const DescribedBackend& b) {
  Words words;
  if (b.kv.accepted.contains(std::nullopt)) words.emplace_back("none");
  for (int index = 0; index < kNumCacheDTypes; ++index) {
    const auto dtype = static_cast<CacheDType>(index);
    if (b.kv.accepted.contains(dtype)) words.emplace_back(name(dtype));
  }
  return listed(words, "nothing");
}

std::string blocks_of(const DescribedBackend& b) {
  Words words;
  for (const BlockSize entry : b.blocks.sizes) {
    words.push_back(fmt::format("{}{}", entry.multiples ? "multiples of " : "", entry.size));
  }
  return listed(words, "nothing");
}

std::string types_of(const DescribedBackend& b) {
  if (b.attn_types.size() == kNumAttentionTypes) return "all";
  Words words;
  for (const AttentionType type : b.attn_types) words.emplace_back(name(type));
  return listed(words, "nothing");
}

std::string features_of(const DescribedBackend& b) {
  const std::pair<bool, const char*> all[] = {
      {b.mla, "MLA"},
      {b.sparse, "sparse"},
      {b.sink, "sinks"},
      {b.alibi_sqrt, "ALiBi sqrt"},
      {b.mm_prefix, "mm prefix"},
      {b.per_head_quant_scales, "per-head scales"},
      {b.sliding_window, "sliding window"},
      {b.rswa, "R-SWA"},
      {b.non_causal, "non-causal"},
      {b.non_causal_dcp, "non-causal with DCP"},
      {b.batch_invariance, "batch invariance"},
      {b.pcp, "PCP"},
      {b.dcp, "DCP"},
      {!b.kv_connector, "**no** KV connector"},
      {!b.query_lens_mismatch, "**no** adaptive verification"}};
  Words words;
  for (const auto& [has, word] : all) {
    if (has) words.emplace_back(word);
  }
  return listed(words, "-");
}

std::string layouts_of(const DescribedBackend& b) {
  if (!b.layouts) return "any";
  Words words;
  for (const CacheLayout layout : *b.layouts) words.emplace_back(name(layout));
  return listed(words, "nothing");
}

constexpr DeviceCapability kCapabilities[] = {{7, 5},  {8, 0},  {8, 6},  {8, 9},  {9, 0},
                                              {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}};
constexpr const char* kArchs[] = {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"};

SelectorFacts rocm(const char* arch) {
  SelectorFacts facts = {Platform::kRocm, capability_of_gcn_arch(arch), {}};
  facts.environment.gcn_arch = arch;
  return facts;
}

std::string devices_of(const BackendRow& row, Platform platform) {
  Words accepted;
  std::size_t probed = 0;
  const auto probe = [&](const SelectorFacts& facts, std::string device) {
    ++probed;
    if (row.describe(facts).capability) accepted.push_back(std::move(device));
  };
  if (platform == Platform::kCuda) {
    for (const DeviceCapability c : kCapabilities) {
      probe({platform, c, {}}, fmt::format("{}.{}", c.major, c.minor));
    }
  }
  if (platform == Platform::kRocm) {
    for (const char* arch : kArchs) probe(rocm(arch), arch);
  }
  return accepted.size() == probed ? "any" : listed(accepted, "none");
}

BackendLine line_of(Platform platform, std::string_view member, const DescribedBackend& b,
                    std::string devices) {
  return {.platform = std::string(name(platform)),
          .member = std::string(member),
          .heads = heads_of(b.heads),
          .dtypes = dtypes_of(b),
          .kv_cache_dtypes = kv_of(b),
          .kernel_blocks = blocks_of(b),
          .attn_types = types_of(b),
          .features = features_of(b),
          .layouts = layouts_of(b),
          .devices = std::move(devices)};
}

bool is_on(const BackendRow& row, std::string_view platform) {
  return fmt::format(",{},", row.platforms).find(fmt::format(",{},", platform)) !=
         std::string::npos;
}

const char* heading(const std::string& platform) {
  if (platform == "cuda") return "### CUDA, as on 9.0";
  if (platform == "rocm") return "### ROCm, as on gfx90a";
  return platform == "xpu" ? "### XPU" : "### CPU";
}

}  // namespace

std::vector<BackendLine> described_backend_lines() {
  const SelectorFacts all[] = {{Platform::kCuda, DeviceCapability{9, 0}, {}},
                               rocm("gfx90a"),
                               {Platform::kXpu, std::nullopt, {}},
                               {Platform::kCpu, std::nullopt, {}}};
  const BackendRegistry registry(RegistryKind::kAttention);
  std::vector<BackendLine> lines;
  for (const SelectorFacts& facts : all) {
    for (const BackendRegistry::Member& member : registry.members()) {
      const BackendRow* row = find_backend_row(member.name);
      if (row == nullptr || !is_on(*row, name(facts.platform))) continue;
      lines.push_back(line_of(facts.platform, member.name, row->describe(facts),
                              devices_of(*row, facts.platform)));
    }
    if (facts.platform == Platform::kXpu) {
      lines.push_back(line_of(facts.platform, "FLASH_ATTN_MLA", xpu_flash_attn_mla(facts), "any"));
    }
  }
  return lines;
}

std::string backend_table(const std::vector<BackendLine>& lines) {
  std::string text;
  std::string platform;
  for (const BackendLine& line : lines) {
    if (line.platform != platform) {
      platform = line.platform;
      text += fmt::format(
          "{}{}\n\n| backend | head sizes | dtypes | KV cache dtypes | kernel blocks | attention "
          "types | also | layouts | devices |\n|---|---|---|---|---|---|---|---|---|\n",
          text.empty() ? "" : "\n", heading(platform));
    }
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", line.member, line.heads,
                        line.dtypes, line.kv_cache_dtypes, line.kernel_blocks, line.attn_types,
                        line.features, line.layouts, line.devices);
  }
  return text;
}

}  // namespace attn
