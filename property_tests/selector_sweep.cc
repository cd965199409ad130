#include "property_tests/selector_sweep.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "attn/backend_check.h"
#include "property_tests/selector_case.h"
#include "property_tests/selector_cuda_classes.h"
#include "selector/vllm_backends.h"

namespace attn::property_tests {
namespace {

struct Subject {
  Subject(std::string name, DescribedBackend row, const SelectorFacts& facts)
      : member(std::move(name)), check(std::move(row)) {
    if (facts.platform == Platform::kCuda) answers = written_class(member, facts);
    is_written = answers != nullptr;
    if (!is_written) answers = std::make_unique<ListedClass>(check.backend(), facts);
  }

  std::string member;
  BackendCheck check;
  std::unique_ptr<BackendClass> answers;
  bool is_written = false;
};

std::vector<std::unique_ptr<Subject>> subjects_of(const SelectorFacts& facts) {
  std::vector<std::unique_ptr<Subject>> subjects;
  for (const std::string& member : described_members()) {
    DescribedBackend row = find_backend_row(member)->describe(facts);
    if (!row.capability_raises.empty() || !row.non_causal_raises.empty()) continue;
    subjects.push_back(std::make_unique<Subject>(member, std::move(row), facts));
  }
  return subjects;
}

bool is_ordered(const FoundReasons& found) {
  for (std::size_t i = 1; i < found.count; ++i) {
    if (!(found.list[i - 1] < found.list[i])) return false;
  }
  return true;
}

bool same(const Subject& subject, const Reasons& ours, const FoundReasons& found,
          const AttentionSelectorConfig& config, const SelectorFacts& facts) {
  if (ours.bits() != found.bits() || !is_ordered(found)) return false;
  if (!subject.is_written || !ours.has(Reason::kCombination)) return true;
  return subject.check.backend().combination->text(ours.combination, facts, config) ==
         subject.answers->combination_text(config);
}

std::string difference_at(const Subject& subject, const Reasons& ours,
                          const AttentionSelectorConfig& config, const SelectorFacts& facts) {
  const std::string capability =
      facts.capability ? fmt::format("{}.{}", facts.capability->major, facts.capability->minor)
                       : "none";
  return fmt::format("{} on {} with capability {}, {}: [{}], expected [{}]", subject.member,
                     name(facts.platform), capability, repr(config),
                     fmt::join(reason_texts(ours, subject.check, facts, config), ", "),
                     fmt::join(found_texts(*subject.answers, config), ", "));
}

template <class Body>
void for_configs(const ConfigLattice& lattice, const Body& body) {
  AttentionSelectorConfig config;
  for (const int head_size : lattice.head_sizes) {
    config.head_size = head_size;
    for (const DType dtype : lattice.dtypes) {
      config.dtype = dtype;
      for (const auto kv : lattice.kv_cache_dtypes) {
        config.kv_cache_dtype = kv;
        for (const auto block_size : lattice.block_sizes) {
          config.block_size = block_size;
          for (const AttentionType type : lattice.attn_types) {
            config.attn_type = {type};
            for (std::size_t set = 0; set >> lattice.wishes.size() == 0; ++set) {
              for (std::size_t i = 0; i < lattice.wishes.size(); ++i) {
                config.*lattice.wishes[i] = (set >> i & 1) != 0;
              }
              if (!body(config)) return;
            }
          }
        }
      }
    }
  }
}

using Config = AttentionSelectorConfig;

std::vector<std::optional<CacheDType>> all_kv() {
  std::vector<std::optional<CacheDType>> all = {std::nullopt};
  for (int i = 0; i < kNumCacheDTypes; ++i) all.emplace_back(static_cast<CacheDType>(i));
  return all;
}

std::vector<SelectorEnvironment> environments(bool full) {
  using enum CacheDType;
  std::vector<SelectorEnvironment> all(1);
  const auto add = [&all](const auto& change) { change(all.emplace_back()); };
  const auto add_model = [&](CacheDType run, const ModelFacts& model) {
    add([&](SelectorEnvironment& e) {
      e.model = model;
      e.cache_dtype = run;
    });
  };
  add([](SelectorEnvironment& e) { e.fa3_built = false; });
  add([](SelectorEnvironment& e) { e.fa4_built = false; });
  add([](SelectorEnvironment& e) { e.flash_attn_version = 4; });
  add_model(kAuto, {.head_size = 256, .hf = {128, 64, 128, 512, 2048, std::nullopt}});
  add_model(kFp8, {.head_size = 512, .hf = {256, 0, 256, 512, 1000, std::nullopt}});
  if (!full) return all;
  add([](SelectorEnvironment& e) { e.fa2_built = e.fa3_built = e.fa4_built = false; });
  add([](SelectorEnvironment& e) { e.fa2_built = false; });
  add([](SelectorEnvironment& e) { e.flash_attn_version = 2; });
  add([](SelectorEnvironment& e) { e.flash_attn_version = 3; });
  add([](SelectorEnvironment& e) { e.batch_invariant = true; });
  add([](SelectorEnvironment& e) { e.nvidia_artifactory = e.flashmla_c = false; });
  add([](SelectorEnvironment& e) { e.flashmla_extension_c = e.flashinfer = false; });
  add([](SelectorEnvironment& e) { e.use_trtllm_attention = false; });
  add([](SelectorEnvironment& e) { e.dcp_size = e.pcp_size = 2; });
  add_model(kFp8, {.head_size = 256, .hf = {128, 64, 128, 512, std::nullopt, 30.0}});
  add_model(kAuto,
            {.head_size = 256, .is_mm_prefix_lm = true, .hf = {256, 0, 256, 512, 2048, 0.0}});
  add_model(kAuto, {.num_heads = 12,
                    .num_kv_heads = 8,
                    .is_diffusion = true,
                    .hf = {192, 32, 128, 256, 2048, std::nullopt}});
  return all;
}

std::vector<SelectorFacts> cuda_facts(const std::vector<SelectorEnvironment>& environments,
                                      const std::vector<DeviceCapability>& capabilities) {
  std::vector<SelectorFacts> all;
  for (const DeviceCapability capability : capabilities) {
    for (const SelectorEnvironment& environment : environments) {
      all.push_back({Platform::kCuda, capability, environment});
    }
  }
  return all;
}

void add_other_platforms(std::vector<SelectorFacts>& all) {
  for (const char* arch : {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201", "gfx1250"}) {
    for (const bool aiter : {false, true}) {
      SelectorFacts& facts =
          all.emplace_back(SelectorFacts{Platform::kRocm, capability_of_gcn_arch(arch), {}});
      facts.environment.gcn_arch = arch;
      facts.environment.aiter_found = facts.environment.aiter_enabled = aiter;
    }
  }
  all.push_back({Platform::kXpu, std::nullopt, {}});
  all.push_back({Platform::kCpu, std::nullopt, {}});
  all.emplace_back(all.back()).environment.cpu_amx_tile = true;
}

}  // namespace

SweepResult run_sweep(const Sweep& sweep) {
  SweepResult result;
  for (const SelectorFacts& facts : sweep.facts) {
    const auto subjects = subjects_of(facts);
    for_configs(sweep.configs, [&](const AttentionSelectorConfig& config) {
      const Requirements asked(config);
      for (const auto& subject : subjects) {
        const Reasons ours = subject->check.validate(asked, facts);
        const FoundReasons found = find_reasons(*subject->answers, config);
        if (!same(*subject, ours, found, config, facts)) {
          result.difference = difference_at(*subject, ours, config, facts);
          return false;
        }
      }
      result.points += static_cast<std::int64_t>(subjects.size());
      return true;
    });
    if (!result.difference.empty()) break;
  }
  return result;
}

Sweep value_sweep(bool full) {
  using enum CacheDType;
  Sweep sweep;
  sweep.configs.wishes = {&Config::use_mla, &Config::has_sink, &Config::use_sparse,
                          &Config::use_mm_prefix, &Config::use_non_causal};
  sweep.configs.attn_types = {AttentionType::kDecoder};
  if (full) {
    sweep.facts =
        cuda_facts(environments(true),
                   {{7, 5}, {8, 0}, {8, 9}, {9, 0}, {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}});
    sweep.configs.head_sizes = {32, 64, 100, 128, 192, 256, 320, 512, 576};
    sweep.configs.dtypes = {DType::kF16, DType::kBF16, DType::kF32};
    sweep.configs.kv_cache_dtypes = all_kv();
    sweep.configs.block_sizes = {std::nullopt, 16, 64, 100, 128};
  } else {
    sweep.facts = cuda_facts(environments(false), {{8, 0}, {9, 0}, {10, 0}, {11, 0}, {12, 0}});
    sweep.configs.head_sizes = {32, 128, 256, 512, 576};
    sweep.configs.dtypes = {DType::kBF16, DType::kF32};
    sweep.configs.kv_cache_dtypes = {std::nullopt, kAuto, kFp8, kFp8DsMla, kNvfp4};
    sweep.configs.block_sizes = {std::nullopt, 16, 64};
  }
  add_other_platforms(sweep.facts);
  return sweep;
}

Sweep wish_sweep(bool full) {
  using enum CacheDType;
  Sweep sweep;
  sweep.configs.wishes = {kWishes.begin(), kWishes.end()};
  sweep.configs.wishes.insert(sweep.configs.wishes.end(), {&Config::use_mla, &Config::use_sparse});
  sweep.configs.dtypes = {DType::kBF16};
  sweep.configs.head_sizes = {128};
  sweep.configs.block_sizes = {std::nullopt};
  sweep.configs.kv_cache_dtypes = {kAuto};
  sweep.configs.attn_types = {AttentionType::kDecoder};
  sweep.facts = cuda_facts(environments(false), {{9, 0}});
  if (full) {
    sweep.configs.head_sizes = {128, 256, 576};
    sweep.configs.kv_cache_dtypes = {kAuto, kFp8};
    sweep.configs.block_sizes = {std::nullopt, 16};
    sweep.configs.attn_types = {AttentionType::kDecoder, AttentionType::kEncoder,
                                AttentionType::kEncoderOnly, AttentionType::kEncoderDecoder};
    sweep.facts = cuda_facts(environments(false), {{8, 0}, {9, 0}, {10, 0}, {11, 0}, {12, 0}});
  }
  add_other_platforms(sweep.facts);
  return sweep;
}

}  // namespace attn::property_tests
