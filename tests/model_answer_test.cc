// The simulated kernel against the exact answer.
#include "property_tests/model_answer.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "attn/error.h"
#include "property_tests/draw_problem.h"
#include "property_tests/model_families.h"
#include "property_tests/other_config.h"
#include "property_tests/problem_data.h"
#include "tests/model_distance.h"

namespace attn::property_tests {
namespace {

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

}  // namespace
}  // namespace attn::property_tests
