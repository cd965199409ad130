#include "property_tests/operation_property.h"

#include <fmt/core.h>
#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "attn/reference.h"
#include "attn/second_reference.h"
#include "property_tests/drift_alarm.h"
#include "property_tests/generators.h"
#include "property_tests/replay_line.h"
#include "property_tests/shrinking_time.h"
#include "tests/scoped_workers.h"

namespace attn::property_tests {
namespace {

namespace gen = rc::gen;
using Clock = std::chrono::steady_clock;

class Disproved : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One of the choices whatever the size is; shrinks to the first.
template <class T>
rc::Gen<T> choice(std::vector<T> choices) {
  return gen::map(gen::resize(rc::kNominalSize, gen::inRange<std::size_t>(0, choices.size())),
                  [choices](std::size_t i) { return choices[i]; });
}

// From `least` to `most`, growing with the size; shrinks to `least`.
rc::Gen<int> from_to(int least, int most) { return gen::inRange(least, most + 1); }

// Now and then far beyond what is usual: several blocks of sums.
rc::Gen<int> mostly_up_to(int least, int usual, int most) {
  return gen::weightedOneOf<int>(
      {{15, from_to(least, usual)}, {1, gen::resize(rc::kNominalSize, from_to(least, most))}});
}

rc::Gen<bool> coin() { return choice<bool>({false, true}); }
rc::Gen<bool> seldom() {
  return gen::map(choice<int>({0, 1, 2, 3, 4, 5}), [](int i) { return i == 5; });
}

rc::Gen<std::uint64_t> any_seed() {
  return gen::noShrink(gen::resize(rc::kNominalSize, gen::arbitrary<std::uint64_t>()));
}

rc::Gen<Family> any_family() {
  return choice<Family>(
      {Family::kUniform, Family::kBell, Family::kLargeLogits, Family::kExactLane});
}

rc::Gen<DType> any_float() {
  return choice<DType>({DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3FN});
}

template <class Config>
rc::Gen<Config> with_values() {
  return gen::build<Config>(gen::set(&Config::family, any_family()),
                            gen::set(&Config::seed, any_seed()),
                            gen::set(&Config::specials, seldom()));
}

rc::Gen<MemoryForm> memory_forms(const std::vector<CacheForm>& caches) {
  return gen::build<MemoryForm>(
      gen::set(&MemoryForm::cache, choice(caches)),
      gen::set(&MemoryForm::block_size, choice<int>({1, 2, 3, 4, 16})),
      gen::set(&MemoryForm::block_order, any_seed()),
      gen::set(&MemoryForm::spare_blocks, from_to(0, 3)),
      gen::set(&MemoryForm::table_padding, from_to(0, 3)),
      gen::set(&MemoryForm::row_padding, from_to(0, 3)),
      gen::set(&MemoryForm::dim_padding, from_to(0, 3)),
      gen::set(&MemoryForm::fill,
               choice<Fill>({Fill::kZero, Fill::kNaN, Fill::kPlusInfinity, Fill::kLargest})));
}

// Nothing, splits, chunks, a common prefix, context-parallel ranks, and the last three together.
ExecSpec exec_of(int kind, int n, int prefix, int interleave) {
  ExecSpec exec;
  if (kind == 1) exec.num_splits = n;
  if (kind == 2 || kind == 5) exec.kv_chunk = n;
  exec.has_common_prefix = kind == 3 || kind == 5;
  if (exec.has_common_prefix) exec.common_prefix_len = prefix;
  if (kind >= 4) {
    exec.dcp_size = n;
    exec.dcp_interleave = interleave;
  }
  return exec;
}

rc::Gen<ExecSpec> execs() {
  return gen::map(
      gen::tuple(choice<int>({0, 1, 2, 3, 4, 5}), from_to(1, 5), from_to(0, 12), from_to(1, 3)),
      [](const std::tuple<int, int, int, int>& d) {
        return exec_of(std::get<0>(d), std::get<1>(d), std::get<2>(d), std::get<3>(d));
      });
}

template <class Config>
struct Drawn;

template <>
struct Drawn<ProblemConfig> {
  static rc::Gen<ProblemConfig> configs() {
    ConfigSpace space;
    space.exec = true;
    space.output_codes = true;
    space.families = {Family::kUniform,     Family::kBell,          Family::kNegativeLogits,
                      Family::kLargeLogits, Family::kExactLane,     Family::kMembership,
                      Family::kAllCodes,    Family::kConstantValues};
    return problem_configs(space);
  }
};

template <>
struct Drawn<DifferentialConfig> {
  static rc::Gen<DifferentialConfig> configs() {
    ConfigSpace space;
    space.most_reqs = 2;
    return gen::map(gen::build<DifferentialConfig>(
                        gen::set(&DifferentialConfig::attention, problem_configs(space)),
                        gen::set(&DifferentialConfig::norm, coin())),
                    [](DifferentialConfig config) { return normalised(config); });
  }
};

template <>
struct Drawn<LatentConfig> {
  static rc::Gen<LatentConfig> configs() {
    const auto sizes = gen::build(
        with_values<LatentConfig>(), gen::set(&LatentConfig::num_reqs, choice<int>({1, 2, 3})),
        gen::set(&LatentConfig::lengths,
                 choice<Lengths>({Lengths::kEqual, Lengths::kRagged, Lengths::kBeyond})),
        gen::set(&LatentConfig::query_len, mostly_up_to(1, 6, 70)),
        gen::set(&LatentConfig::context_len, mostly_up_to(0, 12, 150)),
        gen::set(&LatentConfig::num_heads, from_to(1, 4)),
        gen::set(&LatentConfig::latent, from_to(1, 16)),
        gen::set(&LatentConfig::rope, from_to(0, 8)), gen::set(&LatentConfig::nope, from_to(1, 8)),
        gen::set(&LatentConfig::head_size_v, from_to(1, 8)));
    const std::vector<LatentCache> caches = {LatentCache::kF32,      LatentCache::kBF16,
                                             LatentCache::kF16,      LatentCache::kF8E4M3FN,
                                             LatentCache::kF8E4M3FN, LatentCache::kFp8DsMla};
    return gen::map(
        gen::build(sizes, gen::set(&LatentConfig::query_dtype, any_float()),
                   gen::set(&LatentConfig::cache, choice(caches)),
                   gen::set(&LatentConfig::k_scale, coin()),
                   gen::set(&LatentConfig::expanded, coin()),
                   gen::set(&LatentConfig::causal, coin()), gen::set(&LatentConfig::exec, execs()),
                   gen::set(&LatentConfig::memory, memory_forms({CacheForm::kPagedNHD}))),
        [](LatentConfig config) { return normalised(config); });
  }
};

template <>
struct Drawn<SparseConfig> {
  static rc::Gen<SparseConfig> configs() {
    return gen::map(
        gen::build<SparseConfig>(
            gen::set(&SparseConfig::mla, Drawn<LatentConfig>::configs()),
            gen::set(&SparseConfig::listed, mostly_up_to(0, 20, 140)),
            gen::set(&SparseConfig::topk_lens, coin()),
            gen::set(&SparseConfig::space,
                     choice<TopkIndexSpace>({TopkIndexSpace::kRequest, TopkIndexSpace::kSlot})),
            gen::set(&SparseConfig::sinks,
                     choice<SparseSinks>({SparseSinks::kNone, SparseSinks::kFinite,
                                          SparseSinks::kSomeMinusInfinity,
                                          SparseSinks::kSomePlusInfinity})),
            gen::set(&SparseConfig::lse_includes_sink, coin())),
        [](SparseConfig config) { return normalised(config); });
  }
};

template <>
struct Drawn<IndexerConfig> {
  static rc::Gen<IndexerConfig> configs() {
    return gen::build(
        with_values<IndexerConfig>(), gen::set(&IndexerConfig::num_tokens, from_to(1, 6)),
        gen::set(&IndexerConfig::num_keys, mostly_up_to(1, 12, 100)),
        gen::set(&IndexerConfig::num_heads, from_to(1, 5)),
        gen::set(&IndexerConfig::head_size, from_to(1, 20)),
        gen::set(&IndexerConfig::query_dtype, any_float()),
        gen::set(&IndexerConfig::key_dtype, any_float()),
        gen::set(&IndexerConfig::k_scale,
                 choice<IndexScale>({IndexScale::kNone, IndexScale::kRow, IndexScale::kColumn})));
  }
};

template <>
struct Drawn<MergeConfig> {
  static rc::Gen<MergeConfig> configs() {
    return gen::build(with_values<MergeConfig>(), gen::set(&MergeConfig::empty_parts, coin()),
                      gen::set(&MergeConfig::num_parts, choice<int>({1, 2, 3, 4, 5})),
                      gen::set(&MergeConfig::num_tokens, from_to(1, 6)),
                      gen::set(&MergeConfig::num_heads, from_to(1, 4)),
                      gen::set(&MergeConfig::head_size_v, from_to(1, 12)),
                      gen::set(&MergeConfig::dtype, choice<DType>({DType::kF32, DType::kF64,
                                                                   DType::kBF16, DType::kF16})),
                      gen::set(&MergeConfig::base_2, coin()));
  }
};

template <>
struct Drawn<CacheWriteConfig> {
  static rc::Gen<CacheWriteConfig> configs() {
    const std::vector<KvFormat> caches = {
        KvFormat::kF32,        KvFormat::kBF16,   KvFormat::kF16,
        KvFormat::kF8E4M3FN,   KvFormat::kF8E5M2, KvFormat::kInt8PerTokenHead,
        KvFormat::kF8E4M3FNUZ, KvFormat::kF8E5M2, KvFormat::kFp8PerTokenHead};
    return gen::map(
        gen::build(
            with_values<CacheWriteConfig>(), gen::set(&CacheWriteConfig::num_slots, from_to(1, 12)),
            gen::set(&CacheWriteConfig::spare_rows, from_to(0, 3)),
            gen::set(&CacheWriteConfig::input, any_float()),
            gen::set(&CacheWriteConfig::num_heads, from_to(1, 4)),
            gen::set(&CacheWriteConfig::head_size, from_to(1, 10)),
            gen::set(&CacheWriteConfig::head_size_v, from_to(1, 10)),
            gen::set(&CacheWriteConfig::cache, choice(caches)),
            gen::set(
                &CacheWriteConfig::scales,
                choice<ScaleShape>({ScaleShape::kNone, ScaleShape::kOne, ScaleShape::kPerHead})),
            gen::set(&CacheWriteConfig::memory,
                     memory_forms({CacheForm::kPagedNHD, CacheForm::kPagedHND,
                                   CacheForm::kPackedNHD, CacheForm::kPackedHND}))),
        [](CacheWriteConfig config) { return normalised(config); });
  }
};

template <>
struct Drawn<LatentWriteConfig> {
  static rc::Gen<LatentWriteConfig> configs() {
    const std::vector<LatentCache> caches = {LatentCache::kF32, LatentCache::kBF16,
                                             LatentCache::kF16, LatentCache::kF8E4M3FN,
                                             LatentCache::kFp8DsMla};
    return gen::map(
        gen::build(with_values<LatentWriteConfig>(),
                   gen::set(&LatentWriteConfig::num_slots, from_to(1, 8)),
                   gen::set(&LatentWriteConfig::spare_rows, from_to(0, 3)),
                   gen::set(&LatentWriteConfig::input, any_float()),
                   gen::set(&LatentWriteConfig::latent, from_to(1, 16)),
                   gen::set(&LatentWriteConfig::rope, from_to(0, 8)),
                   gen::set(&LatentWriteConfig::cache, choice(caches)),
                   gen::set(&LatentWriteConfig::k_scale, coin()),
                   gen::set(&LatentWriteConfig::block_size, choice<int>({1, 2, 3, 4, 16})),
                   gen::set(&LatentWriteConfig::spare_blocks, from_to(0, 3))),
        [](LatentWriteConfig config) { return normalised(config); });
  }
};

}  // namespace

const Backend& reference_backend() {
  static const std::unique_ptr<Backend> kBackend = make_reference_backend();
  return *kBackend;
}

const Backend& second_reference_backend() {
  static const std::unique_ptr<Backend> kBackend = make_second_reference_backend();
  return *kBackend;
}

std::vector<std::string> reference_names() {
  return {std::string(reference_backend().name()), std::string(second_reference_backend().name())};
}

const Backend& OperationProperty::backend() const {
  return GetParam() == reference_backend().name() ? reference_backend()
                                                  : second_reference_backend();
}

void OperationProperty::expect_close(const Operation& a, const Operation& b) const {
  const DriftAlarm alarm(a, answer_operation(reference_backend(), a, true));
  require_none("both ways", alarm.difference(answer(a), answer(b), 2.0));
}

void OperationProperty::expect_same_bits(const Operation& a, const Operation& b) const {
  require_none("both ways", bit_difference(answer(a), answer(b)));
}

void require(bool holds, std::string_view claim) {
  if (!holds) throw Disproved(std::string(claim));
}

void require_none(std::string_view claim, const std::string& difference) {
  if (!difference.empty()) throw Disproved(fmt::format("{}: {}", claim, difference));
}

template <class Config>
void for_all(const std::function<void(const Config& config)>& holds, int percent) {
  const ScopedWorkers one_worker(1);
  const rc::Gen<Config> configs = Drawn<Config>::configs();
  std::string smallest;  // shrinking only ever moves from a failing config to a failing one
  std::optional<Clock::time_point> first_failure;
  const auto check = [&] {
    const Config config = *configs;
    if (first_failure && Clock::now() - *first_failure > kShrinkingTime) return;
    try {
      holds(config);
    } catch (...) {
      if (!first_failure) first_failure = Clock::now();
      smallest = to_string(config);
      throw;
    }
  };
  rc::detail::TestMetadata metadata;
  metadata.id = test_name();
  metadata.description = metadata.id;
  rc::detail::TestParams params = rc::detail::configuration().testParams;
  params.maxSuccess = std::max(1, params.maxSuccess * percent / 100);
  const auto result = rc::detail::checkTestable(check, metadata, params);
  std::ostringstream message;
  rc::detail::printResultMessage(result, message);
  if (result.template is<rc::detail::SuccessResult>()) {
    std::cout << message.str() << "\n";
  } else {
    ADD_FAILURE() << message.str() << "\n" << replay_line(smallest);
  }
}

template void for_all(const std::function<void(const ProblemConfig&)>&, int);
template void for_all(const std::function<void(const DifferentialConfig&)>&, int);
template void for_all(const std::function<void(const LatentConfig&)>&, int);
template void for_all(const std::function<void(const SparseConfig&)>&, int);
template void for_all(const std::function<void(const IndexerConfig&)>&, int);
template void for_all(const std::function<void(const MergeConfig&)>&, int);
template void for_all(const std::function<void(const CacheWriteConfig&)>&, int);
template void for_all(const std::function<void(const LatentWriteConfig&)>&, int);

}  // namespace attn::property_tests
