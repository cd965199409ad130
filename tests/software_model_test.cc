// The simulated kernel: against the exact answer, against kernels written down in floats, and each
// of its options.
#include "property_tests/software_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attn/error.h"
#include "attn/random.h"
#include "property_tests/draw_problem.h"
#include "property_tests/model_answer.h"
#include "property_tests/model_families.h"
#include "property_tests/other_config.h"
#include "property_tests/problem_data.h"

namespace attn::property_tests {
namespace {

// Largest |a - b| over 1 + |b|; infinite where one is infinite or NaN and the other is not.
double distance(const HostTensor& a, const HostTensor& b) {
  double largest = 0.0;
  for (std::int64_t i = 0; i < b.num_units(); ++i) {
    const double x = decode(a.dtype(), a.code(i));
    const double y = decode(b.dtype(), b.code(i));
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double away = std::fabs(x - y) / (1.0 + std::fabs(y));
    largest = std::max(largest, away >= 0.0 ? away : std::numeric_limits<double>::infinity());
  }
  return largest;
}

double distance(const Tensors& a, const Tensors& exact) {
  double largest = 0.0;
  for (const auto& [name, tensor] : a) {
    largest = std::max(largest, distance(tensor, exact.find(name)->second));
  }
  return largest;
}

// The contract f64, first as plain as it can be, then any kernel of it.
void expect_exact(const Operation& operation, std::uint64_t seed) {
  const Tensors exact = answer_operation_exactly(operation);
  const Arithmetic f64 = resolve({"f64"});
  EXPECT_LT(distance(model_answer(operation, f64, plain_model_options(f64, DType::kF64)), exact),
            1e-13);
  const Arithmetic flash = resolve({"f64_flash"});
  const ModelOptions options = draw_model_options(seed, flash);
  EXPECT_LT(distance(model_answer(operation, flash, options), exact), 1e-12) << to_string(options);
}

ProblemConfig attention_config(std::uint64_t seed) {
  constexpr KvFormat kFormats[] = {KvFormat::kF32,      KvFormat::kBF16,
                                   KvFormat::kF8E4M3FN, KvFormat::kInt8PerTokenHead,
                                   KvFormat::kNvfp4,    KvFormat::kF16};
  ProblemConfig config;
  config.seed = seed;
  config.num_reqs = 1 + static_cast<int>(seed % 2);
  config.query_len = 3;
  config.context_len = static_cast<int>(seed % 9);
  config.num_kv_heads = 2;
  config.group = 1 + static_cast<int>(seed % 2);
  config.head_size = 16;
  config.head_size_v = 16;
  config.kv = kFormats[seed % 6];
  config.kv_scales = static_cast<ScaleShape>(seed % 4);
  config.q_scale = static_cast<ScaleShape>(seed / 4 % 3);
  config.mask = static_cast<MaskKind>(seed % 14);
  config.window = 3;
  config.reach = 1;
  config.attn_mask = seed % 5 == 0;
  config.soft_cap = seed % 3 == 0;
  config.alibi = static_cast<AlibiForm>(seed % 6);
  config.attn_bias = static_cast<BiasKind>(seed / 2 % 3);
  config.tree = seed % 7 == 0;
  config.sinks = static_cast<SinkKind>(seed / 3 % 3);
  config.lse_includes_sink = seed % 2 == 0;
  config.memory.cache = CacheForm::kPagedNHD;
  config.memory.block_size = 4;
  return normalised(config);
}

TEST(SoftwareModel, OfF64IsTheAnswerToAttention) {
  for (std::uint64_t seed = 0; seed < 84; ++seed) {
    const ProblemConfig config = attention_config(seed);
    SCOPED_TRACE(to_string(config));
    const ProblemData data(draw_problem(config), config.memory);
    expect_exact(data.op(), seed);
  }
}

TEST(SoftwareModel, OfF64IsTheAnswerToLatentAttention) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    LatentConfig config;
    config.seed = seed;
    config.num_reqs = 2;
    config.query_len = 2;
    config.context_len = static_cast<int>(seed % 7);
    config.num_heads = 2;
    config.latent = 6;
    config.rope = static_cast<int>(seed % 3);
    config.expanded = seed % 3 != 0;
    config.nope = 5;
    config.head_size_v = 3;
    config.causal = seed % 4 != 0;
    config.k_scale = seed % 5 == 0;
    if (config.k_scale) config.cache = LatentCache::kF8E4M3FN;
    config = normalised(config);
    SCOPED_TRACE(to_string(config));
    expect_exact(draw_operation(config).operation, seed);
    SparseConfig sparse{config, 9};
    sparse.topk_lens = seed % 2 == 0;
    sparse.space = static_cast<TopkIndexSpace>(seed / 2 % 2);
    sparse.sinks = static_cast<SparseSinks>(seed % 4);
    sparse.lse_includes_sink = seed % 3 == 0;
    sparse = normalised(sparse);
    SCOPED_TRACE(to_string(sparse));
    expect_exact(draw_operation(sparse).operation, seed);
  }
}

TEST(SoftwareModel, OfF64IsTheAnswerToOtherOperations) {
  for (std::uint64_t seed = 0; seed < 24; ++seed) {
    MergeConfig merge;
    merge.seed = seed;
    merge.num_parts = 1 + static_cast<int>(seed % 6);
    merge.num_tokens = 3;
    merge.num_heads = 2;
    merge.head_size_v = 4;
    merge.empty_parts = seed % 2 == 0;
    merge.base_2 = seed % 3 == 0;
    SCOPED_TRACE(to_string(merge));
    expect_exact(draw_operation(merge).operation, seed);
    IndexerConfig indexer;
    indexer.seed = seed;
    indexer.num_tokens = 3;
    indexer.num_keys = 5;
    indexer.num_heads = 3;
    indexer.head_size = 7;
    indexer.k_scale = static_cast<IndexScale>(seed % 3);
    SCOPED_TRACE(to_string(indexer));
    expect_exact(draw_operation(indexer).operation, seed);
    DifferentialConfig pairs;
    pairs.attention = attention_config(seed);
    pairs.norm = seed % 2 == 0;
    pairs = normalised(pairs);
    SCOPED_TRACE(to_string(pairs));
    const ProblemData data(draw_paired_heads(pairs), pairs.attention.memory);
    expect_exact(draw_difference(pairs, data.op()).operation, seed);
  }
}

TEST(SoftwareModel, HasNoAnswerToACacheWrite) {
  const Arithmetic fp32 = resolve({"fp32"});
  EXPECT_THROW(model_answer(draw_operation(normalised(CacheWriteConfig{})).operation, fp32,
                            plain_model_options(fp32, DType::kF32)),
               Error);
}

// Operands of one row, floats.
struct FloatRow {
  explicit FloatRow(std::uint64_t seed) {
    const auto draw = [&](std::size_t n, RandomTensor tensor) {
      std::vector<double> x;
      for (std::size_t i = 0; i < n; ++i) {
        x.push_back(static_cast<float>(bell(random_words(seed, i, tensor, 0))));
      }
      return x;
    };
    row.query = draw(kSize, RandomTensor::kQuery);
    keys = draw(kKeys * kSize, RandomTensor::kKey);
    values = draw(kKeys * kSizeV, RandomTensor::kValue);
    for (std::size_t k = 0; k < kKeys; ++k) {
      row.positions.push_back(static_cast<std::int64_t>(k));
      row.keys.push_back(keys.data() + k * kSize);
      row.values.push_back(values.data() + k * kSizeV);
    }
    row.scale = 0.25;
    row.head_size_v = kSizeV;
  }

  static constexpr std::size_t kKeys = 40, kSize = 16, kSizeV = 5;
  ModelRow row;
  std::vector<double> keys, values;
};

Arithmetic stored_in_f32(Arithmetic arithmetic) {
  return with_stored_type(arithmetic, DType::kF32);
}

// A kernel of contract fp32 in the machine's own floats: online softmax in steps of 16, base e.
TEST(SoftwareModel, OfFp32IsAKernelInFloats) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const FloatRow given(seed);
    float max = -std::numeric_limits<float>::infinity();
    float sum = 0.0F;
    float acc[FloatRow::kSizeV] = {};
    for (std::size_t first = 0; first < FloatRow::kKeys; first += 16) {
      const std::size_t last = std::min(first + 16, FloatRow::kKeys);
      std::vector<float> u;
      for (std::size_t k = first; k < last; ++k) {
        float dot = 0.0F;
        for (std::size_t d = 0; d < FloatRow::kSize; ++d) {
          dot = std::fma(static_cast<float>(given.row.query[d]),
                         static_cast<float>(given.row.keys[k][d]), dot);
        }
        u.push_back(dot * 0.25F);
      }
      const float step_max = *std::max_element(u.begin(), u.end());
      if (step_max > max) {
        if (first > 0) {
          const auto factor = static_cast<float>(std::exp(static_cast<double>(max - step_max)));
          sum *= factor;
          for (float& x : acc) x *= factor;
        }
        max = step_max;
      }
      for (std::size_t k = first; k < last; ++k) {
        const auto p = static_cast<float>(std::exp(static_cast<double>(u[k - first] - max)));
        sum += p;
        for (std::size_t j = 0; j < FloatRow::kSizeV; ++j) {
          acc[j] = std::fma(p, static_cast<float>(given.row.values[k][j]), acc[j]);
        }
      }
    }
    Arithmetic arithmetic = stored_in_f32(resolve({"fp32"}));
    arithmetic.tile = 16;
    const SoftwareModel model(arithmetic, plain_model_options(arithmetic, DType::kF32));
    std::vector<double> out(FloatRow::kSizeV);
    const double lse = model.answer(given.row, out);
    for (std::size_t j = 0; j < out.size(); ++j) ASSERT_EQ(out[j], acc[j] * (1.0F / sum));
    ASSERT_EQ(lse, max + static_cast<float>(std::log(static_cast<double>(sum))));
  }
}

// The naive kernel in bf16: scores and weights stored in bf16, weights normalised.
TEST(SoftwareModel, OfBf16UnfusedIsAKernelInFloatsAndBf16) {
  const auto bf16 = [](double x) {
    return static_cast<float>(decode(DType::kBF16, encode(DType::kBF16, x, Overflow::kInfinity)));
  };
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    FloatRow given(seed);
    for (double& x : given.row.query) x = bf16(x);
    for (double& x : given.keys) x = bf16(x);
    for (double& x : given.values) x = bf16(x);
    std::vector<float> u;
    for (std::size_t k = 0; k < FloatRow::kKeys; ++k) {
      float dot = 0.0F;
      for (std::size_t d = 0; d < FloatRow::kSize; ++d) {
        dot += static_cast<float>(given.row.query[d]) * static_cast<float>(given.row.keys[k][d]);
      }
      u.push_back(bf16(dot * 0.25F));
    }
    const float max = *std::max_element(u.begin(), u.end());
    float sum = 0.0F;
    std::vector<float> weights;
    for (const float x : u) {
      weights.push_back(static_cast<float>(std::exp(static_cast<double>(x - max))));
      sum += weights.back();
    }
    float acc[FloatRow::kSizeV] = {};
    for (std::size_t k = 0; k < FloatRow::kKeys; ++k) {
      const float p = bf16(weights[k] / sum);
      for (std::size_t j = 0; j < FloatRow::kSizeV; ++j) {
        acc[j] += p * static_cast<float>(given.row.values[k][j]);
      }
    }
    const Arithmetic arithmetic = stored_in_f32(resolve({"bf16_unfused"}));
    ModelOptions options = plain_model_options(arithmetic, DType::kF32);
    options.reciprocal = false;
    std::vector<double> out(FloatRow::kSizeV);
    SoftwareModel(arithmetic, options).answer(given.row, out);
    for (std::size_t j = 0; j < out.size(); ++j) ASSERT_EQ(out[j], acc[j]);
  }
}

// 16 products of 2^-25 beside an accumulator of 1: a matrix step loses each of them, a chain of
// fused products rounds them away too, in another order they add up.
TEST(SoftwareModel, MatrixStepsLoseWhatIsBelowTheLargestAddend) {
  Summation sum;
  sum.mode = RoundingMode::kTruncate;
  std::vector<double> ones(33, 1.0);
  std::vector<double> terms(33, 0x1p-25);
  terms[32] = 1.0;
  sum.mma_k = 33;
  const SumRules together(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(together.dot(ones.data(), terms.data(), 33), 1.0);
  sum.mma_k = 32;
  const SumRules apart(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(apart.dot(ones.data(), terms.data(), 33), 1.0 + 0x1p-20);
  sum.inner = 0x1p-13;  // accumulator of 13 fraction bits
  const SumRules coarse(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(coarse.dot(ones.data(), terms.data(), 33), 1.0);
  terms[32] = 0x1p-8;
  EXPECT_EQ(coarse.dot(ones.data(), terms.data(), 33), 0x1p-8 + 0x1p-20);
}

TEST(SoftwareModel, MatrixStepsTruncateOrRoundEachAddend) {
  const std::vector<double> ones(4, 1.0);
  const std::vector<double> terms = {1.0, 0x1.8p-24, 0x1.8p-24, -0x1.8p-24};
  Summation sum;
  sum.mma_k = 4;
  const SumRules nearest(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(nearest.dot(ones.data(), terms.data(), 4), 1.0 + 0x1p-23);
  sum.mode = RoundingMode::kTruncate;
  const SumRules truncate(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(truncate.dot(ones.data(), terms.data(), 4), 1.0);
}

// 1 + 2^-23 and a product just below half of the last place: rounded to double it would be a tie.
TEST(SoftwareModel, FusedProductsAreRoundedOnce) {
  const std::vector<double> a = {1.0 + 0x1p-23, 0x1p-12 * (1.0 + 0x1p-15)};
  const std::vector<double> b = {1.0, 0x1p-12 * (1.0 - 0x1p-15)};
  const SumRules rules({}, false, SumOrder::kForward, 0);
  EXPECT_EQ(rules.dot(a.data(), b.data(), 2), 1.0 + 0x1p-23);
  double acc = 1.0 + 0x1p-23;
  rules.add_products(a[1], {&b[1], 1}, &acc);
  EXPECT_EQ(acc, 1.0 + 0x1p-23);
}

TEST(SoftwareModel, AccumulatorsOfFewerBitsArePromotedEveryBlock) {
  const std::vector<double> ones(8, 1.0);
  const std::vector<double> terms = {1.0, 0x1p-13, 0x1p-13, 0x1p-13, 0.0, 0x1p-13, 0.0, 0.0};
  Summation sum;
  sum.block = 4;
  const SumRules full(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(full.dot(ones.data(), terms.data(), 8), 1.0 + 4 * 0x1p-13);
  sum.inner = 0x1p-13;  // 12 fraction bits: 1 + 2^-13 is a tie, to even
  const SumRules coarse(sum, false, SumOrder::kForward, 0);
  EXPECT_EQ(coarse.dot(ones.data(), terms.data(), 8), 1.0 + 0x1p-13);
}

double largest_error(const Arithmetic& arithmetic, const ModelOptions& options) {
  double largest = 0.0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const DrawnOperation drawn = draw_family(ModelFamily::kBell, seed);
    const Tensors exact = answer_operation_exactly(drawn.operation);
    largest =
        std::max(largest, distance(model_answer(drawn.operation, arithmetic, options).at("out"),
                                   exact.find("out")->second));
  }
  return largest;
}

TEST(SoftwareModel, ErrsByTheUnitOfItsContract) {
  const auto error_of = [](const char* name) {
    const Arithmetic arithmetic = resolve({name});
    return largest_error(arithmetic, plain_model_options(arithmetic, DType::kF64));
  };
  EXPECT_GT(error_of("bf16_flash"), 0x1p-11);
  EXPECT_LT(error_of("bf16_flash"), 0x1p-5);
  EXPECT_GT(error_of("bf16_mma"), 0x1p-11);
  EXPECT_GT(error_of("fp32"), 0x1p-26);
  EXPECT_LT(error_of("fp32"), 0x1p-19);
  EXPECT_GT(error_of("fp8_flash"), 0x1p-7);
  EXPECT_GT(error_of("tf32"), 0x1p-14);
  EXPECT_LT(error_of("f64"), 0x1p-48);
}

TEST(SoftwareModel, IsAFunctionOfItsInput) {
  const Arithmetic arithmetic = resolve({"fp32_split"});
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const DrawnOperation drawn = draw_family(ModelFamily::kSink, seed);
    const ModelOptions options = draw_model_options(seed, arithmetic, DType::kF32);
    EXPECT_EQ(options, draw_model_options(seed, arithmetic, DType::kF32));
    EXPECT_EQ(bit_difference(model_answer(drawn.operation, arithmetic, options),
                             model_answer(drawn.operation, arithmetic, options)),
              "");
  }
}

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
void expect_option(T ModelOptions::*option, T value, ModelFamily family = ModelFamily::kSink) {
  const Arithmetic arithmetic = permissive();
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
