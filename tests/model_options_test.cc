// Every option of the simulated kernel, every field of its contract and every hook changes bits.
#include "property_tests/model_options.h"

#include <gtest/gtest.h>

#include <cmath>

#include "property_tests/model_answer.h"
#include "property_tests/model_families.h"
#include "property_tests/other_config.h"
#include "tests/model_distance.h"

namespace attn::property_tests {
namespace {

// A contract that admits everything, in f32.
Arithmetic permissive() {
  Arithmetic arithmetic = resolve({"fp32_split"});
  arithmetic.dot.lanes = 1;
  arithmetic.sum = {};
  arithmetic.pv = {};
  arithmetic.tile = 8;
  arithmetic.splits = 6;
  arithmetic.merge_depth = 5;
  arithmetic.max_lag = 4.0;
  arithmetic.cap_abs = 0x1p-20;
  arithmetic.exp_abs = 0x1p-4;
  arithmetic.normalize_roundings = 3;
  arithmetic.p_roundings = 1;
  arithmetic.logit_roundings = 1;
  return arithmetic;
}

// Answers of both differ in some problem of the family, bias, cap and sink among them.
void expect_matters(ModelFamily family, const Arithmetic& a, const ModelOptions& options_a,
                    const Arithmetic& b, const ModelOptions& options_b) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const DrawnOperation drawn = draw_family(family, seed);
    if (!bit_difference(model_answer(drawn.operation, a, options_a),
                        model_answer(drawn.operation, b, options_b))
             .empty()) {
      return;
    }
  }
  ADD_FAILURE() << to_string(options_a) << " and " << to_string(options_b) << " answer alike";
}

template <class T>
void expect_option(T ModelOptions::*option, T value, ModelFamily family = ModelFamily::kSink,
                   const Arithmetic& arithmetic = permissive()) {
  const ModelOptions plain = plain_model_options(arithmetic, DType::kF64);
  ModelOptions other = plain;
  other.*option = value;
  expect_matters(family, arithmetic, plain, arithmetic, other);
}

TEST(SoftwareModel, EveryOptionReachesTheAnswer) {
  expect_option<std::int64_t>(&ModelOptions::tile, 0);
  expect_option<std::int64_t>(&ModelOptions::tile, 12);
  expect_option<std::int64_t>(&ModelOptions::grid_shift, 3);
  expect_option<std::int64_t>(&ModelOptions::parts, 2);
  expect_option(&ModelOptions::even_parts, false);
  expect_option(&ModelOptions::merge, MergeOrder::kFold);
  expect_option(&ModelOptions::merge, MergeOrder::kTree);
  for (const SumOrder order : {SumOrder::kBackward, SumOrder::kMore}) {
    expect_option(&ModelOptions::dot_order, order);
    expect_option(&ModelOptions::key_order, order);
  }
  Arithmetic lanes = permissive();
  lanes.dot.lanes = 4;
  expect_option(&ModelOptions::dot_order, SumOrder::kChunks, ModelFamily::kSink, lanes);
  for (const ExponentForm form :
       {ExponentForm::kDifference2, ExponentForm::kProducts2, ExponentForm::kFused2}) {
    expect_option(&ModelOptions::exponent, form);
  }
  expect_option(&ModelOptions::flush_exp, true);
  expect_option(&ModelOptions::lag, 4.0, ModelFamily::kRamp);
  expect_option(&ModelOptions::sink, SinkPlace::kStart);
  expect_option(&ModelOptions::reciprocal, false);
  for (const Injection injection : {Injection::kUp, Injection::kDown, Injection::kRandom}) {
    expect_option(&ModelOptions::weight_error, injection);
    expect_option(&ModelOptions::rescale_error, injection);
    expect_option(&ModelOptions::scalar_error, injection, ModelFamily::kSoftCap);
  }
  Arithmetic one_part = permissive();
  one_part.merge_kind = MergeKind::kAccumulators;
  const ModelOptions plain = plain_model_options(one_part, DType::kF64);
  ModelOptions of_keys = plain;
  of_keys.sink = SinkPlace::kEndKeys;
  expect_matters(ModelFamily::kSink, one_part, plain, one_part, of_keys);
}

// Every order of dot products is drawn, of keys every one that differs there.
TEST(SoftwareModel, DrawsOrdersThatMatter) {
  bool chunks_of_dots = false;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const ModelOptions options = draw_model_options(seed, permissive());
    chunks_of_dots |= options.dot_order == SumOrder::kChunks;
    EXPECT_NE(options.key_order, SumOrder::kChunks);
  }
  EXPECT_TRUE(chunks_of_dots);
}

// One field of the contract at a time.
TEST(SoftwareModel, EveryFieldOfTheContractReachesTheAnswer) {
  const auto changed = [](const auto& change, ModelFamily family) {
    const Arithmetic plain = permissive();
    Arithmetic other = plain;
    change(other);
    ModelOptions options = plain_model_options(plain, DType::kF64);
    options.scalar_error = Injection::kUp;
    options.weight_error = Injection::kUp;
    options.flush_exp = true;
    options.lag = plain.max_lag;
    expect_matters(family, plain, options, other, options);
  };
  const Rounding bf16{NumberFormat::kBF16};
  using F = ModelFamily;
  changed([](Arithmetic& a) { a.vector = NumberFormat::kBF16; }, F::kBell);
  changed([](Arithmetic& a) { a.flush = true; }, F::kSubnormals);
  changed([&](Arithmetic& a) { a.query = bf16; }, F::kBell);
  changed([&](Arithmetic& a) { a.key = bf16; }, F::kBell);
  changed([&](Arithmetic& a) { a.value = bf16; }, F::kBell);
  for (Summation Arithmetic::*sum : {&Arithmetic::dot, &Arithmetic::sum, &Arithmetic::pv}) {
    changed([&](Arithmetic& a) { (a.*sum).type = NumberFormat::kBF16; }, F::kBell);
    changed([&](Arithmetic& a) { (a.*sum).mode = RoundingMode::kTruncate; }, F::kBell);
    changed([&](Arithmetic& a) { (a.*sum).lanes = 4; }, F::kBell);
    changed([&](Arithmetic& a) { (a.*sum).block = 4; }, F::kBell);
    changed([&](Arithmetic& a) { (a.*sum).mma_k = 4; }, F::kBell);
    changed([&](Arithmetic& a) { (a.*sum).inner = 0x1p-13; }, F::kBell);
  }
  changed([](Arithmetic& a) { a.dot.fused = false; }, F::kBell);
  changed([](Arithmetic& a) { a.pv.fused = false; }, F::kBell);
  changed(
      [](Arithmetic& a) {
        a.sum_rounded_p = true;
        a.p = Rounding{NumberFormat::kF16};
      },
      F::kBell);
  changed([](Arithmetic& a) { a.scale_roundings = 6; }, F::kBell);
  changed([](Arithmetic& a) { a.cap_rel = 0x1p-10; }, F::kSoftCap);
  changed([](Arithmetic& a) { a.cap_abs = 0x1p-10; }, F::kSoftCap);
  changed([](Arithmetic& a) { a.bias_rel = 0x1p-10; }, F::kBias);
  changed([&](Arithmetic& a) { a.logit = bf16; }, F::kBell);
  changed([](Arithmetic& a) { a.logit_roundings = 2; }, F::kBell);
  changed([](Arithmetic& a) { a.exp_rel = 0x1p-12; }, F::kBell);
  changed([](Arithmetic& a) { a.exp_abs = 0x1p-2; }, F::kBell);
  changed([](Arithmetic& a) { a.exp_arg_roundings = 9; }, F::kBell);
  changed([](Arithmetic& a) { a.exp_shift_roundings = 9; }, F::kBell);
  changed([](Arithmetic& a) { a.p = Rounding{NumberFormat::kF16}; }, F::kBell);
  changed([](Arithmetic& a) { a.p_roundings = 3; }, F::kBell);
  changed([](Arithmetic& a) { a.p_normalized = true; }, F::kBell);
  changed([](Arithmetic& a) { a.splits = 2; }, F::kBell);
  changed([](Arithmetic& a) { a.merge_kind = MergeKind::kAccumulators; }, F::kBell);
  changed([&](Arithmetic& a) { a.merge_part = bf16; }, F::kBell);
  changed([](Arithmetic& a) { a.merge_lse = NumberFormat::kBF16; }, F::kBell);
  changed([](Arithmetic& a) { a.normalize_roundings = 5; }, F::kBell);
  changed([](Arithmetic& a) { a.log_abs = 0x1p-10; }, F::kBell);
  changed([](Arithmetic& a) { a.log_roundings = 5; }, F::kBell);
  changed([&](Arithmetic& a) { a.out = bf16; }, F::kBell);
  changed([&](Arithmetic& a) { a.lse = bf16; }, F::kBell);
}

TEST(SoftwareModel, ProjectsLatentsInTheOrderOfItsPath) {
  LatentConfig config;
  config.query_len = 2;
  config.context_len = 5;
  config.latent = 6;
  config.expanded = true;
  config.nope = 5;
  config.head_size_v = 3;
  const DrawnOperation drawn = draw_operation(normalised(config));
  Arithmetic arithmetic = resolve({"fp32"});
  ModelOptions options = plain_model_options(arithmetic, DType::kF64);
  const Tensors prefill = model_answer(drawn.operation, arithmetic, options);
  options.latent = LatentPath::kAbsorbed;
  const Tensors absorbed = model_answer(drawn.operation, arithmetic, options);
  EXPECT_NE(bit_difference(prefill, absorbed), "");
  EXPECT_LT(distance(absorbed, prefill), 1e-5);
  arithmetic.project = {Summation{}, Rounding{NumberFormat::kBF16}};
  EXPECT_GT(distance(model_answer(drawn.operation, arithmetic, options), prefill), 1e-5);
}

// A fault at each hook is seen; hooks that change nothing are not.
TEST(SoftwareModel, AsksItsHooks) {
  const Arithmetic arithmetic = permissive();
  const ModelOptions options = plain_model_options(arithmetic, DType::kF64);
  const auto differs = [&](const ModelHooks& hooks) {
    for (std::uint64_t seed = 0; seed < 10; ++seed) {
      const DrawnOperation drawn = draw_family(ModelFamily::kRamp, seed);
      if (!bit_difference(model_answer(drawn.operation, arithmetic, options, &hooks),
                          model_answer(drawn.operation, arithmetic, options))
               .empty()) {
        return true;
      }
    }
    return false;
  };
  EXPECT_FALSE(differs(ModelHooks{}));
  struct MissesFirstKey : ModelHooks {
    bool sees(const ModelPlace&, std::int64_t key, bool visible) const override {
      return visible && key != 0;
    }
  };
  struct ReadsFirstKey : ModelHooks {
    std::int64_t key_read(const ModelPlace&, std::int64_t) const override { return 0; }
  };
  struct WrongScale : ModelHooks {
    void change_row(ModelRow& row) const override { row.scale *= 1.5; }
  };
  struct WrongLogit : ModelHooks {
    double logit(const ModelPlace&, std::int64_t position, double u) const override {
      return position == 1 ? u + 1.0 : u;
    }
  };
  struct WrongSum : ModelHooks {
    double sum_weight(const ModelPlace&, std::int64_t, double w) const override { return 2 * w; }
  };
  struct WrongWeight : ModelHooks {
    double value_weight(const ModelPlace&, std::int64_t, double w) const override { return 2 * w; }
  };
  struct SkipsRescaling : ModelHooks {
    double rescale_values(const ModelPlace&, double) const override { return 1.0; }
  };
  struct SkipsRescalingOfSum : ModelHooks {
    double rescale_sum(const ModelPlace&, double) const override { return 1.0; }
  };
  struct DropsAPart : ModelHooks {
    double merge_weight(const ModelPlace&, std::int64_t part, double w) const override {
      return part == 0 ? 0.0 : w;
    }
  };
  struct WrongRowSum : ModelHooks {
    double row_sum(const ModelPlace&, double sum) const override { return sum + 1.0; }
  };
  struct WrongOut : ModelHooks {
    double out(const ModelPlace&, std::int64_t dim, double x) const override {
      return dim == 0 ? x + 1.0 : x;
    }
  };
  struct WrongLse : ModelHooks {
    double lse(const ModelPlace&, double x) const override { return x / std::log(2.0); }
  };
  EXPECT_TRUE(differs(MissesFirstKey{}));
  EXPECT_TRUE(differs(ReadsFirstKey{}));
  EXPECT_TRUE(differs(WrongScale{}));
  EXPECT_TRUE(differs(WrongLogit{}));
  EXPECT_TRUE(differs(WrongSum{}));
  EXPECT_TRUE(differs(WrongWeight{}));
  EXPECT_TRUE(differs(SkipsRescaling{}));
  EXPECT_TRUE(differs(SkipsRescalingOfSum{}));
  EXPECT_TRUE(differs(DropsAPart{}));
  EXPECT_TRUE(differs(WrongRowSum{}));
  EXPECT_TRUE(differs(WrongOut{}));
  EXPECT_TRUE(differs(WrongLse{}));
}

}  // namespace
}  // namespace attn::property_tests
