// The error bound is sound: no kernel of the software model that keeps its contract is ever
// further from REFERENCE than the bound says. Contract, liberties of the kernel and the type of the
// answer are drawn with the problem.
//
// Sixteen times max_success of RC_PARAMS problems in all: 3,200 as ctest runs it. The long run, in
// shards of different seeds, each with a table of the largest error/bound by contract:
//
//   RC_PARAMS="seed=S max_success=N max_size=100" attn_property_tests_run --gtest_filter='Bound.*'
#include <fmt/core.h>
#include <rapidcheck.h>

#include <exception>
#include <iostream>
#include <iterator>

#include "attn/arithmetic.h"
#include "attn/random.h"
#include "property_tests/bound_sharpness.h"
#include "property_tests/draw_problem.h"
#include "property_tests/drawn_contract.h"
#include "property_tests/judged_tensors.h"
#include "property_tests/model_answer.h"
#include "property_tests/model_families.h"
#include "property_tests/operation_property.h"
#include "property_tests/problem_data.h"

namespace attn::property_tests {
namespace {

// A kernel for one problem: drawn from its seed.
struct Kernel {
  PrecisionContract contract;
  Arithmetic arithmetic;
  ModelOptions options;
};

Kernel draw_kernel(std::uint64_t seed) {
  constexpr DType kStored[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
  Kernel kernel;
  kernel.contract = draw_contract(seed);
  const DType stored = kStored[derived_seed(seed, 1) % std::size(kStored)];
  kernel.arithmetic = with_stored_type(resolve(kernel.contract), stored);
  kernel.options = draw_model_options(seed, kernel.arithmetic, stored);
  return kernel;
}

class Bound : public testing::Test {
 protected:
  // What is answered beside the problem: contracts with changed fields under one name.
  void expect_sound(std::uint64_t seed, const Operation& operation) {
    const AttentionProblem problem(operation);
    const Kernel kernel = draw_kernel(seed);
    const Tensors expected = answer_operation(reference_backend(), operation, true);
    const Tensors actual = model_answer(operation, kernel.arithmetic, kernel.options);
    const Judgement judgement = judge_tensors(
        problem, expected, reference_backend().contract(problem), actual, kernel.contract);
    const bool changed = kernel.contract.overrides != "{}";
    records_[changed ? kernel.contract.name + "+" : kernel.contract.name].add(judgement);
    require(judgement.verdict != Verdict::kFail,
            fmt::format("{} under {} {} by {}", judgement.reason, kernel.contract.name,
                        kernel.contract.overrides, to_string(kernel.options)));
  }

  template <class Config>
  void expect_sound_everywhere(int percent) {
    for_all_finite<Config>(
        [&](const Config& config) {
          expect_sound(seed_of(config), draw_operation(config).operation);
        },
        percent);
  }

  // A bound that gives up everywhere would be sound, too.
  void TearDown() override {
    std::cout << to_string(records_);
    std::int64_t rows = 0;
    std::int64_t vacuous = 0;
    for (const auto& [contract, record] : records_) {
      rows += record.rows;
      vacuous += record.vacuous_rows;
    }
    EXPECT_LE(2 * vacuous, rows);
  }

 private:
  template <class Config>
  static std::uint64_t seed_of(const Config& config) {
    if constexpr (std::is_same_v<Config, SparseConfig>) {
      return config.mla.seed;
    } else {
      return config.seed;
    }
  }

  BoundRecords records_;
};

TEST_F(Bound, HoldsForAttention) {
  for_all<ProblemConfig>(
      [&](const ProblemConfig& config) {
        const ProblemData data(draw_problem(config), config.memory);
        expect_sound(config.seed, data.op());
      },
      500);
}

TEST_F(Bound, HoldsForDifferentialAttention) {
  for_all<DifferentialConfig>(
      [&](const DifferentialConfig& config) {
        const ProblemData data(draw_paired_heads(config), config.attention.memory);
        expect_sound(config.attention.seed, draw_difference(config, data.op()).operation);
      },
      80);
}

TEST_F(Bound, HoldsForLatentAttention) { expect_sound_everywhere<LatentConfig>(150); }
TEST_F(Bound, HoldsForSparseLatentAttention) { expect_sound_everywhere<SparseConfig>(100); }
TEST_F(Bound, HoldsForTheIndexer) { expect_sound_everywhere<IndexerConfig>(70); }
TEST_F(Bound, HoldsForMerges) { expect_sound_everywhere<MergeConfig>(100); }

// Families of problems that stress terms which random ones do not.
TEST_F(Bound, HoldsForAdversarialFamilies) {
  const rc::detail::TestParams params = rc::detail::configuration().testParams;
  const std::uint64_t problems = static_cast<std::uint64_t>(params.maxSuccess) * 6;
  const auto families = all_model_families();
  for (std::uint64_t i = 0; i < problems; ++i) {
    const ModelFamily family = families[i % families.size()];
    const std::uint64_t seed = derived_seed(params.seed, i);
    try {
      expect_sound(seed, draw_family(family, seed).operation);
    } catch (const std::exception& error) {
      ADD_FAILURE() << fmt::format("family {} seed {:#x}: {}", name(family), seed, error.what());
    }
  }
}

// Ceilings of largest bound / largest error that a change of the bound must not break through.
TEST(BoundSharpness, StaysUnderItsCeilings) {
  struct Ceiling {
    const char* contract;
    std::int64_t keys;
    double looseness;
  };
  for (const Ceiling& c : {Ceiling{"bf16_flash", 64, 10.0}, Ceiling{"bf16_flash", 1024, 20.0},
                           Ceiling{"f16_flash", 64, 10.0}, Ceiling{"f16_flash", 1024, 20.0},
                           Ceiling{"fp8_flash", 64, 10.0}, Ceiling{"fp8_flash", 1024, 30.0},
                           Ceiling{"fp32_lanes", 64, 120.0}, Ceiling{"fp32_lanes", 1024, 400.0}}) {
    const BoundSharpness sharpness = bound_sharpness(c.contract, c.keys, 1);
    EXPECT_LE(sharpness.looseness(), c.looseness) << c.contract << " " << c.keys;
    EXPECT_LE(sharpness.largest_ratio(), 1.0) << c.contract << " " << c.keys;
    EXPECT_EQ(sharpness.vacuous_rows, 0) << c.contract << " " << c.keys;
  }
}

}  // namespace
}  // namespace attn::property_tests
