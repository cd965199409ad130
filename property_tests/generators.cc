#include "property_tests/generators.h"

#include <cstdint>
#include <numeric>
#include <tuple>
#include <utility>

namespace attn::property_tests {
namespace {

namespace gen = rc::gen;

// One of the choices whatever the size is; shrinks to the first.
template <class T>
rc::Gen<T> choice(std::vector<T> choices) {
  return gen::map(gen::resize(rc::kNominalSize, gen::inRange<std::size_t>(0, choices.size())),
                  [choices](std::size_t i) { return choices[i]; });
}

std::vector<int> up_to(int most) {
  std::vector<int> counts(static_cast<std::size_t>(most));
  std::iota(counts.begin(), counts.end(), 1);
  return counts;
}

// From `least` to `most`, growing with the size; shrinks to `least`.
rc::Gen<int> from_to(int least, int most) { return gen::inRange(least, most + 1); }

// Mostly up to `usual`, now and then anything up to `most`: beyond the tiles, row blocks and blocks
// of a dot product of a backend.
rc::Gen<int> mostly_up_to(int least, int usual, int most) {
  return gen::weightedOneOf<int>(
      {{7, from_to(least, usual)}, {1, gen::resize(rc::kNominalSize, from_to(least, most))}});
}

// True once in `one_in` draws, when it is allowed at all.
rc::Gen<bool> seldom(bool allowed, std::size_t one_in = 4) {
  if (!allowed) return gen::just(false);
  return gen::map(gen::resize(rc::kNominalSize, gen::inRange<std::size_t>(0, one_in)),
                  [one_in](std::size_t i) { return i + 1 == one_in; });
}

// One of the choices; kNone, when it is the first, in two draws of three and a bit.
template <class T>
rc::Gen<T> option(const std::vector<T>& choices) {
  if (choices[0] != T::kNone) return choice(choices);
  return gen::weightedOneOf<T>({{2, gen::just(T::kNone)}, {1, choice(choices)}});
}

rc::Gen<std::uint64_t> any_seed() {
  return gen::noShrink(gen::resize(rc::kNominalSize, gen::arbitrary<std::uint64_t>()));
}

rc::Gen<ProblemConfig> shapes(const ConfigSpace& space) {
  return gen::build<ProblemConfig>(
      gen::set(&ProblemConfig::num_reqs, choice<int>(up_to(space.most_reqs))),
      gen::set(&ProblemConfig::query_len, mostly_up_to(1, 10, 100)),
      gen::set(&ProblemConfig::context_len, mostly_up_to(0, 20, 180)),
      gen::set(&ProblemConfig::num_kv_heads, from_to(1, 3)),
      gen::set(&ProblemConfig::group, from_to(1, 4)),
      gen::set(&ProblemConfig::head_size, mostly_up_to(1, 18, 144)),
      gen::set(&ProblemConfig::head_size_v, mostly_up_to(1, 18, 144)),
      gen::set(&ProblemConfig::lengths, choice(space.lengths)));
}

rc::Gen<ProblemConfig> with_types(rc::Gen<ProblemConfig> configs, const ConfigSpace& space) {
  return gen::build(std::move(configs), gen::set(&ProblemConfig::family, choice(space.families)),
                    gen::set(&ProblemConfig::query_dtype, choice(space.query_dtypes)),
                    gen::set(&ProblemConfig::kv, choice(space.kv)),
                    gen::set(&ProblemConfig::kv_scales, option(space.scales)),
                    gen::set(&ProblemConfig::q_scale, option(space.scales)),
                    gen::set(&ProblemConfig::seed, any_seed()));
}

rc::Gen<ProblemConfig> with_masks(rc::Gen<ProblemConfig> configs, const ConfigSpace& space) {
  return gen::build(std::move(configs), gen::set(&ProblemConfig::mask, choice(space.masks)),
                    gen::set(&ProblemConfig::window, mostly_up_to(1, 8, 40)),
                    gen::set(&ProblemConfig::reach, from_to(0, 9)),
                    gen::set(&ProblemConfig::attn_mask, seldom(space.attn_mask)),
                    gen::set(&ProblemConfig::one_for_all,
                             gen::map(from_to(0, 15), [](int bits) { return unsigned(bits); })));
}

rc::Gen<ProblemConfig> with_scores(rc::Gen<ProblemConfig> configs, const ConfigSpace& space) {
  return gen::build(std::move(configs), gen::set(&ProblemConfig::drawn_scale, seldom(true)),
                    gen::set(&ProblemConfig::soft_cap, seldom(space.soft_cap)),
                    gen::set(&ProblemConfig::alibi, option(space.alibi)),
                    gen::set(&ProblemConfig::attn_bias, option(space.attn_bias)),
                    gen::set(&ProblemConfig::tree, seldom(space.tree, 6)),
                    gen::set(&ProblemConfig::sinks, option(space.sinks)),
                    gen::set(&ProblemConfig::lse_includes_sink,
                             gen::map(seldom(space.sinks.back() != SinkKind::kNone),
                                      [](bool excluded) { return !excluded; })),
                    gen::set(&ProblemConfig::output_codes, seldom(space.output_codes, 2)));
}

// Nothing, splits, chunks, a common prefix, context-parallel ranks, and the last three together.
rc::Gen<ExecSpec> execs() {
  return gen::map(
      gen::tuple(choice<int>({0, 1, 2, 3, 4, 5}), from_to(1, 6), from_to(0, 20), from_to(1, 3)),
      [](const std::tuple<int, int, int, int>& drawn) {
        const auto [kind, n, prefix, interleave] = drawn;
        ExecSpec exec;
        if (kind == 1) exec.num_splits = n;
        if (kind == 2 || kind == 5) exec.kv_chunk = n;
        if (kind == 3 || kind == 5) {
          exec.has_common_prefix = true;
          exec.common_prefix_len = prefix;
        }
        if (kind >= 4) {
          exec.dcp_size = n;
          exec.dcp_interleave = interleave;
        }
        return exec;
      });
}

rc::Gen<MemoryForm> memory_forms() {
  const std::vector<CacheForm> caches = {CacheForm::kVarlen, CacheForm::kPagedNHD,
                                         CacheForm::kPagedHND, CacheForm::kPackedNHD,
                                         CacheForm::kPackedHND};
  const std::vector<Fill> fills = {Fill::kZero, Fill::kNaN, Fill::kPlusInfinity,
                                   Fill::kMinusInfinity, Fill::kLargest};
  return gen::build<MemoryForm>(
      gen::set(&MemoryForm::cache, choice(caches)),
      gen::set(&MemoryForm::block_size, choice<int>({1, 2, 3, 4, 16, 32})),
      gen::set(&MemoryForm::block_order, any_seed()),
      gen::set(&MemoryForm::spare_blocks, from_to(0, 3)),
      gen::set(&MemoryForm::table_padding, from_to(0, 3)),
      gen::set(&MemoryForm::row_padding, from_to(0, 3)),
      gen::set(&MemoryForm::dim_padding, from_to(0, 3)),
      gen::set(&MemoryForm::column_padding, from_to(0, 3)),
      gen::set(&MemoryForm::fill, choice(fills)));
}

}  // namespace

ConfigSpace masks_only(Family family) {
  ConfigSpace space;
  space.families = {family};
  space.query_dtypes = {DType::kF32};
  space.kv = {KvFormat::kF32, KvFormat::kBF16, KvFormat::kF8E4M3FN};
  space.soft_cap = false;
  space.tree = false;
  turn_off(space.scales);
  turn_off(space.alibi);
  turn_off(space.attn_bias);
  turn_off(space.sinks);
  return space;
}

rc::Gen<ProblemConfig> problem_configs(const ConfigSpace& space) {
  rc::Gen<ProblemConfig> configs =
      with_scores(with_masks(with_types(shapes(space), space), space), space);
  if (space.memory) {
    configs = gen::build(std::move(configs), gen::set(&ProblemConfig::memory, memory_forms()));
  }
  if (space.exec) configs = gen::build(std::move(configs), gen::set(&ProblemConfig::exec, execs()));
  return gen::map(std::move(configs), normalised).as("config");
}

void classify(const ProblemConfig& config) {
  constexpr int kLong = 64;
  RC_TAG(std::string(name(config.mask)));
  RC_CLASSIFY(config.query_len == 1, "decode");
  RC_CLASSIFY(config.lengths == Lengths::kBeyond, "rows before position 0");
  RC_CLASSIFY(config.query_len + config.context_len > kLong, "long");
}

}  // namespace attn::property_tests
