// to_string and operator<< of a problem, and the names of operations.
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "tests/small_problem.h"

namespace attn {
namespace {

TEST(Print, NamesOfOperationsAreThoseOfCaseFiles) {
  constexpr std::string_view kNames[] = {"attention",   "differential",   "mla",
                                         "mla_sparse",  "indexer",        "merge_states",
                                         "cache_write", "mla_cache_write"};
  std::size_t i = 0;
  for (const OpKind kind : kAllOpKinds) EXPECT_EQ(name(kind), kNames[i++]);
}

TEST(Print, PlainProblemIsShort) {
  EXPECT_EQ(to_string(SmallProblem().problem()),
            "attention reqs=2 tokens=3 heads=4/2 head_size=16 query=f32 key=f32 paged block_size=4 "
            "scale=0.25 causal=true");
}

TEST(Print, VarlenHasNoBlockSize) {
  SmallProblem p;
  p.make_varlen();
  EXPECT_EQ(to_string(p.problem()),
            "attention reqs=2 tokens=3 heads=4/2 head_size=16 query=f32 key=f32 varlen scale=0.25 "
            "causal=true");
}

TEST(Print, EncodingIsNamedUnlessPlain) {
  SmallProblem p;
  p.make_per_token_head();
  EXPECT_EQ(to_string(p.problem()),
            "attention reqs=2 tokens=3 heads=4/2 head_size=16 query=f32 key=i8 paged "
            "per-token-head block_size=4 scale=0.25 causal=true");
}

TEST(Print, NamesTheTypeOfValuesWhenItDiffers) {
  SmallProblem p;
  p.op.kv.value = p.pool.zeros(DType::kBF16, {5, 4, 2, 8});
  EXPECT_EQ(to_string(p.problem()),
            "attention reqs=2 tokens=3 heads=4/2 head_size=16 head_size_v=8 query=f32 key=f32 "
            "value=bf16 paged block_size=4 scale=0.25 causal=true");
}

TEST(Print, NamesEveryOptionThatIsOn) {
  SmallProblem p;
  p.op.logits_soft_cap = 30;
  MaskSpec& mask = p.op.mask;
  mask.causal = false;
  mask.causal_per_req = p.pool.zeros(DType::kBool, {2});
  mask.window_left = 7;
  mask.window_right = 0;
  mask.sink_token_length = 1;
  mask.attention_chunk_size = 4;
  mask.attention_chunk_lookback = 2;
  mask.mm_prefix_ranges = p.pool.zeros(DType::kI32, {2, 1, 2});
  mask.mm_prefix_clamp = true;
  mask.attn_mask = p.pool.zeros(DType::kBool, {1, 1, 2, 5});
  p.op.bias.alibi_form = AlibiForm::kContext;
  p.op.bias.alibi_slopes = p.pool.zeros(DType::kF32, {4});
  p.op.bias.attn_bias = p.pool.zeros(DType::kF16, {1, 1, 2, 5});
  p.op.bias.qq_bias = p.pool.zeros(DType::kF32, {3, 3});
  p.op.sinks = p.pool.zeros(DType::kF32, {4});
  p.op.lse_includes_sink = false;
  p.op.kv.k_scale = p.pool.zeros(DType::kF32, {1});
  p.op.kv.v_scale = p.pool.zeros(DType::kF32, {2, 2});
  p.op.q_scale = p.pool.zeros(DType::kF32, {2});
  p.op.output_scale = p.pool.values(DType::kF32, {1}, {1});
  p.op.exec = {.num_splits = 3, .has_common_prefix = true, .dcp_size = 2, .dcp_interleave = 4};
  EXPECT_EQ(to_string(p.problem()),
            "attention reqs=2 tokens=3 heads=4/2 head_size=16 query=f32 key=f32 paged block_size=4 "
            "scale=0.25 logits_soft_cap=30 causal=false causal_per_req=bool[2] window_left=7 "
            "window_right=0 sink_token_length=1 attention_chunk_size=4 attention_chunk_lookback=2 "
            "mm_prefix_ranges=i32[2,1,2] mm_prefix_clamp=true attn_mask=bool[1,1,2,5] "
            "alibi=context attn_bias=f16[1,1,2,5] qq_bias=f32[3,3] sinks lse_includes_sink=false "
            "k_scale=f32[1] v_scale=f32[2,2] q_scale=f32[2] output_scale=f32[1] num_splits=3 "
            "common_prefix_len=0 dcp_size=2 dcp_interleave=4");
}

TEST(Print, NamesRswaAndChunksOfKeys) {
  SmallProblem p;
  p.op.mask.rswa_window = 3;
  p.op.mask.rswa_prefix_lens = p.pool.zeros(DType::kI32, {2});
  p.op.exec.kv_chunk = 5;
  EXPECT_EQ(to_string(p.problem()),
            "attention reqs=2 tokens=3 heads=4/2 head_size=16 query=f32 key=f32 paged block_size=4 "
            "scale=0.25 causal=true rswa_window=3 rswa_prefix_lens=i32[2] kv_chunk=5");
}

TEST(Print, StreamsWhatToStringSays) {
  SmallProblem p;
  std::ostringstream stream;
  stream << p.problem();
  EXPECT_EQ(stream.str(), to_string(p.problem()));
}

TEST(Print, OtherOperationsNameTheirTensorsAndOptions) {
  TensorPool pool;
  EXPECT_EQ(to_string(small_merge(pool)), "merge_states out_parts=f32[2,3,4,16] lse_base=e");

  DifferentialOp differential;
  SmallProblem p;
  p.make_varlen();
  differential.attention = p.op;
  differential.lambda = 0.5;
  differential.norm_weight = pool.zeros(DType::kF32, {32});
  EXPECT_EQ(to_string(AttentionProblem(differential)),
            "differential reqs=2 tokens=3 heads=4/2 head_size=16 query=f32 key=f32 varlen "
            "scale=0.25 causal=true diff_lambda=0.5 diff_lambda_init=0 diff_eps=0 "
            "diff_norm_weight=f32[32]");

  MlaSparseOp sparse;
  sparse.mla.query = pool.zeros(DType::kF32, {1, 2, 5});
  sparse.mla.query_start_loc = pool.values(DType::kI32, {2}, {0, 1});
  sparse.mla.seq_lens = pool.values(DType::kI32, {1}, {3});
  sparse.mla.kv_cache = pool.zeros(DType::kBF16, {2, 2, 5});
  sparse.mla.block_table = pool.values(DType::kI32, {1, 2}, {0, 1});
  sparse.mla.kv_lora_rank = 4;
  sparse.mla.qk_rope_head_dim = 1;
  sparse.topk_indices = pool.zeros(DType::kI32, {1, 3});
  EXPECT_EQ(to_string(AttentionProblem(sparse.mla)),
            "mla reqs=1 heads=2 kv_lora_rank=4 qk_rope_head_dim=1 query=f32[1,2,5] "
            "kv_cache=bf16[2,2,5] scale=1 absorbed causal=true");
  EXPECT_EQ(to_string(AttentionProblem(sparse)),
            "mla_sparse reqs=1 heads=2 kv_lora_rank=4 qk_rope_head_dim=1 query=f32[1,2,5] "
            "kv_cache=bf16[2,2,5] scale=1 topk_indices=i32[1,3] positions");

  IndexerOp indexer;
  indexer.query = pool.zeros(DType::kF32, {1, 2, 4});
  indexer.key = pool.zeros(DType::kF8E4M3FN, {3, 4});
  indexer.weights = pool.zeros(DType::kF32, {1, 2});
  indexer.k_start = indexer.k_end = pool.zeros(DType::kI32, {1});
  EXPECT_EQ(to_string(AttentionProblem(indexer)),
            "indexer query=f32[1,2,4] key=f8_e4m3fn[3,4] weights=f32[1,2]");

  MlaCacheWriteOp write;
  write.kv_c = pool.zeros(DType::kF32, {1, 4});
  write.k_pe = pool.zeros(DType::kF32, {1, 1});
  write.slot_mapping = pool.zeros(DType::kI64, {1});
  write.kv_cache = pool.zeros(DType::kF32, {1, 1, 5});
  EXPECT_EQ(to_string(AttentionProblem(write)),
            "mla_cache_write kv_c=f32[1,4] k_pe=f32[1,1] slot_mapping=i64[1] "
            "kv_cache=f32[1,1,5] plain");
}

}  // namespace
}  // namespace attn
