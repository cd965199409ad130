// Preconditions of lengths, shapes, heads and addresses; validate_options_test.cc has the rest.
#include <gtest/gtest.h>

#include "tests/small_problem.h"

namespace attn {
namespace {

TEST(Validate, AcceptsTheSmallProblemInEveryLayoutAndEncoding) {
  EXPECT_EQ(error_after([](SmallProblem&) {}), "");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.make_varlen(); }), "");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.make_per_token_head(); }), "");
  EXPECT_EQ(error_after([](SmallProblem& p) { p.make_nvfp4(); }), "");
}

// ---- lengths

TEST(Validate, SeqLensAreI32) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.seq_lens = TensorView{}; }),
            "seq_lens is absent, expected i32");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.seq_lens = p.pool.values(DType::kI64, {2}, {5, 3});
            }),
            "seq_lens is i64[2], expected i32");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.seq_lens = p.pool.values(DType::kI32, {1, 2}, {5, 3});
            }),
            "seq_lens is i32[1,2], expected shape [?]");
}

TEST(Validate, SeqLensAreNotNegative) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.seq_lens = p.pool.values(DType::kI32, {2}, {5, -1});
            }),
            "seq_lens[1] is -1, must not be negative");
}

TEST(Validate, QueryStartLocHasOneEntryMoreThanSeqLens) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query_start_loc = p.pool.values(DType::kI32, {2}, {0, 2});
            }),
            "query_start_loc is i32[2], expected shape [3]");
}

TEST(Validate, QueryStartLocBeginsWithZero) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query_start_loc = p.pool.values(DType::kI32, {3}, {1, 2, 3});
            }),
            "query_start_loc[0] is 1, must be 0");
}

TEST(Validate, QueryStartLocDoesNotDecrease) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query_start_loc = p.pool.values(DType::kI32, {3}, {0, 3, 2});
            }),
            "query_start_loc[2] is 2, less than the 3 before it");
}

// ---- query

TEST(Validate, QueryIsFloating) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kI32, {3, 4, 16});
            }),
            "query is i32[3,4,16], expected a floating type");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF8E8M0, {3, 4, 16});
            }),
            "query is f8_e8m0[3,4,16], expected a floating type");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF4E2M1, {3, 4, 16});
            }),
            "query is f4_e2m1[3,4,16], expected a floating type");
}

TEST(Validate, QueryHasThreeAxes) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.query = TensorView{}; }),
            "query is absent, expected shape [?,?,?]");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF32, {3, 64});
            }),
            "query is f32[3,64], expected shape [?,?,?]");
}

TEST(Validate, QueryHasHeadsOfSomeSize) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF32, {3, 0, 16});
            }),
            "num_heads is 0, must be at least 1");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF32, {3, 4, 0});
            }),
            "head_size is 0, must be at least 1");
}

TEST(Validate, QueryHasARowForEveryToken) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF32, {2, 4, 16});
            }),
            "query has 2 rows, query_start_loc[2] asks for 3");
}

// ---- cache shapes

TEST(Validate, PagedCacheHasFourAxes) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.key = p.pool.zeros(DType::kF32, {8, 2, 16});
            }),
            "key_cache is f32[8,2,16], expected shape [?,?,?,?]");
}

TEST(Validate, BlocksHoldSlots) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.key = p.pool.zeros(DType::kF32, {5, 0, 2, 16});
            }),
            "block_size is 0, must be at least 1");
}

TEST(Validate, ValueCacheFitsTheKeyCache) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.value = p.pool.zeros(DType::kF32, {4, 4, 2, 16});
            }),
            "value_cache is f32[4,4,2,16], expected shape [5,4,2,?]");
}

TEST(Validate, BlockTableIsI32WithARowForEveryRequest) {
  EXPECT_EQ(error_after([](SmallProblem& p) { p.op.kv.block_table = TensorView{}; }),
            "block_table is absent, expected i32");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.block_table = p.pool.zeros(DType::kI32, {3, 3});
            }),
            "block_table is i32[3,3], expected shape [2,?]");
}

TEST(Validate, PagedCacheHasNoStartLocations) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.kv_start_loc = p.pool.values(DType::kI32, {3}, {0, 5, 8});
            }),
            "kv_start_loc is given, but the cache is paged");
}

TEST(Validate, VarlenKeysHaveThreeAxes) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.key = p.pool.zeros(DType::kF32, {2, 4, 2, 16});
            }),
            "key is f32[2,4,2,16], expected shape [?,?,?]");
}

TEST(Validate, VarlenValuesFitTheKeys) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.value = p.pool.zeros(DType::kF32, {8, 1, 16});
            }),
            "value is f32[8,1,16], expected shape [8,2,?]");
}

TEST(Validate, VarlenCacheHasNoBlockTable) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.block_table = p.pool.zeros(DType::kI32, {2, 3});
            }),
            "block_table is given, but kv_layout is varlen");
}

TEST(Validate, KvHeadsExist) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.key = p.pool.zeros(DType::kF32, {5, 4, 0, 16});
              p.op.kv.value = p.op.kv.key;
            }),
            "num_kv_heads is 0, must be at least 1");
}

TEST(Validate, ValuesHaveASize) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.value = p.pool.zeros(DType::kF32, {5, 4, 2, 0});
            }),
            "head_size_v is 0, must be at least 1");
}

// ---- heads

TEST(Validate, HeadsAreAMultipleOfKvHeads) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF32, {3, 3, 16});
            }),
            "num_heads 3 is not a multiple of num_kv_heads 2");
}

TEST(Validate, KeysHaveTheHeadSizeOfTheQuery) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF32, {3, 4, 8});
            }),
            "the head size of the keys is 16, of the query 8");
}

// ---- addresses

TEST(Validate, BlockIdsLieInTheCache) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.block_table = p.pool.values(DType::kI32, {2, 2}, {3, 5, 4, 0});
            }),
            "block_table[0,1] is 5, outside [0, 5)");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.block_table = p.pool.values(DType::kI32, {2, 2}, {3, 1, -1, 0});
            }),
            "block_table[1,0] is -1, outside [0, 5)");
}

TEST(Validate, BlockIdsOfMaskedKeysLieInTheCacheToo) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.mask.window_left = 0;
              p.op.kv.block_table = p.pool.values(DType::kI32, {2, 2}, {9, 1, 4, 0});
            }),
            "block_table[0,0] is 9, outside [0, 5)");
}

TEST(Validate, BlockTableCoversTheSequences) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.seq_lens = p.pool.values(DType::kI32, {2}, {5, 13});
            }),
            "block_table has 3 columns, seq_lens[1] = 13 needs 4");
}

TEST(Validate, KvStartLocBeginsWithZeroAndDoesNotDecrease) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.kv_start_loc = p.pool.values(DType::kI32, {3}, {2, 5, 8});
            }),
            "kv_start_loc[0] is 2, must be 0");
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.kv_start_loc = p.pool.values(DType::kI32, {3}, {0, 9, 8});
            }),
            "kv_start_loc[2] is 8, less than the 9 before it");
}

TEST(Validate, KvStartLocStepsAreSeqLens) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.kv_start_loc = p.pool.values(DType::kI32, {3}, {0, 4, 8});
            }),
            "kv_start_loc[1] gives request 0 a length of 4, seq_lens[0] is 5");
}

TEST(Validate, VarlenKeysAreAllRows) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.make_varlen();
              p.op.kv.key = p.op.kv.value = p.pool.zeros(DType::kF32, {7, 2, 16});
            }),
            "key has 7 rows, kv_start_loc[2] is 8");
}

// ---- what is unusual but valid

TEST(Validate, AcceptsMoreQueryTokensThanKeys) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.seq_lens = p.pool.values(DType::kI32, {2}, {1, 3});
            }),
            "");
}

TEST(Validate, AcceptsEmptySequences) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.seq_lens = p.pool.values(DType::kI32, {2}, {0, 0});
            }),
            "");
}

TEST(Validate, AcceptsRequestsWithoutQueryTokens) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query_start_loc = p.pool.values(DType::kI32, {3}, {0, 0, 3});
            }),
            "");
}

TEST(Validate, AcceptsNoRequests) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query_start_loc = p.pool.values(DType::kI32, {1}, {0});
              p.op.seq_lens = p.pool.zeros(DType::kI32, {0});
              p.op.kv.block_table = p.pool.zeros(DType::kI32, {0, 3});
            }),
            "");
}

TEST(Validate, AcceptsACacheWithoutBlocksWhenNothingIsStored) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.seq_lens = p.pool.values(DType::kI32, {2}, {0, 0});
              p.op.kv.key = p.op.kv.value = p.pool.zeros(DType::kF32, {0, 4, 2, 16});
              p.op.kv.block_table = p.pool.zeros(DType::kI32, {2, 0});
            }),
            "");
}

TEST(Validate, NeverReadsUnusedTableEntries) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.kv.block_table =
                  p.pool.values(DType::kI32, {2, 3}, {0, 1, 2147480000, 2, -7, 2147480000});
            }),
            "");
}

TEST(Validate, AcceptsPaddingRowsOfTheQuery) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kF32, {100, 4, 16});
            }),
            "");
}

TEST(Validate, AcceptsOtherHeadSizesOfValuesAndOtherTypesOfTheCache) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              p.op.query = p.pool.zeros(DType::kBF16, {3, 4, 16});
              p.op.kv.key = p.pool.zeros(DType::kF16, {5, 4, 2, 16});
              p.op.kv.value = p.pool.zeros(DType::kF8E5M2, {5, 4, 2, 3});
            }),
            "");
}

TEST(Validate, NeverReadsDataTensors) {
  EXPECT_EQ(error_after([](SmallProblem& p) {
              // An address that nobody may read.
              p.op.query.data = reinterpret_cast<const void*>(std::uintptr_t{64});
              p.op.kv.key.data = p.op.kv.value.data = p.op.query.data;
            }),
            "");
}

TEST(Validate, TensorsHaveMemoryAndIndicesLieInHostMemory) {
  EXPECT_EQ(error_after([](auto& p) { p.op.query.data = nullptr; }), "query has no memory");
  EXPECT_EQ(error_after([](auto& p) { p.op.kv.value.data = nullptr; }),
            "value_cache has no memory");
  EXPECT_EQ(error_after([](auto& p) { p.op.seq_lens.space = MemorySpace::kDevice; }),
            "seq_lens lies in device memory, must be in host memory");
  EXPECT_EQ(error_after([](auto& p) { p.op.kv.block_table.space = MemorySpace::kDevice; }),
            "block_table lies in device memory, must be in host memory");
  EXPECT_EQ(error_after([](auto& p) { p.op.query.space = MemorySpace::kDevice; }), "");
}

}  // namespace
}  // namespace attn
