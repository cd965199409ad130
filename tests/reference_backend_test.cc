// Backend REFERENCE as its callers see it: outputs, forms, exec, memory.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "attn/reference.h"
#include "core/special_values.h"
#include "tests/small_problem.h"

namespace attn {
namespace {

// The small problem with queries of 0: every row is the mean of the values it sees, and value k of
// a request is 2^k in every dim. Rows see 4, 5 and 3 keys.
struct MeanProblem : SmallProblem {
  MeanProblem() {
    const MutableTensorView value = pool.zeros(DType::kF32, {5, 4, 2, 16});
    for (std::int64_t r = 0; r < 2; ++r) {
      for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
        const std::int64_t block = int_at(op.kv.block_table, r, k / 4);
        for (std::int64_t i = 0; i < 2 * 16; ++i) {
          const auto two_to_k = static_cast<float>(1 << k);
          std::memcpy(value.at(block, k % 4, i / 16, i % 16), &two_to_k, sizeof two_to_k);
        }
      }
    }
    op.kv.value = value;
  }
  static constexpr double kMeans[] = {15.0 / 4, 31.0 / 5, 7.0 / 3};
};

class Reference : public testing::Test {
 protected:
  std::string error_of_run(const AttentionProblem& problem, const Outputs& outputs) {
    try {
      run_once(*backend_, problem, outputs);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void fill(const MutableTensorView& view, int byte) {
    std::memset(view.data, byte,
                static_cast<std::size_t>(view.num_units() * unit_bytes(view.dtype)));
  }
  bool untouched(const MutableTensorView& view, int byte) {
    const auto* bytes = static_cast<const unsigned char*>(view.data);
    const std::int64_t count = view.num_units() * unit_bytes(view.dtype);
    return std::all_of(bytes, bytes + count, [=](unsigned char b) { return b == byte; });
  }
  MutableTensorView out() { return p_.pool.zeros(DType::kF64, {3, 4, 16}); }
  MutableTensorView lse() { return p_.pool.zeros(DType::kF64, {4, 3}); }

  const std::unique_ptr<Backend> backend_ = make_reference_backend();
  MeanProblem p_;
};

TEST_F(Reference, IsNamedReferenceAndComputesInF64) {
  EXPECT_EQ(backend_->name(), "REFERENCE");
  EXPECT_EQ(backend_->capabilities().output_dtypes, std::vector<DType>{DType::kF64});
  EXPECT_EQ(backend_->contract(p_.problem()).name, "reference");
  EXPECT_EQ(backend_->workspace_bytes(p_.problem()), 0u);
}

TEST_F(Reference, AnswersOutAndLse) {
  Outputs outputs{.out = out(), .lse = lse()};
  run_once(*backend_, p_.problem(), outputs);
  constexpr double kVisible[] = {4, 5, 3};
  for (std::int64_t token = 0; token < 3; ++token) {
    for (std::int64_t head = 0; head < 4; ++head) {
      EXPECT_NEAR(value_at(outputs.out, token, head, 15), MeanProblem::kMeans[token], 1e-15 * 16);
      EXPECT_NEAR(value_at(outputs.lse, head, token), std::log(kVisible[token]), 1e-15);
    }
  }
}

TEST_F(Reference, WritesOnlyWhatIsAskedFor) {
  Outputs outputs;
  run_once(*backend_, p_.problem(), outputs);
  outputs.lse = lse();
  run_once(*backend_, p_.problem(), outputs);
  EXPECT_NEAR(value_at(outputs.lse, 0, 0), std::log(4), 1e-15);
}

TEST_F(Reference, RefusesOutputsThatDoNotFitAndWritesNothing) {
  const MutableTensorView good_out = out();
  const MutableTensorView good_lse = lse();
  fill(good_out, 0xAB);
  fill(good_lse, 0xAB);
  EXPECT_EQ(
      error_of_run(p_.problem(), {.out = p_.pool.zeros(DType::kF64, {3, 4, 8}), .lse = good_lse}),
      "output out is f64[3,4,8], expected f64[3,4,16]");
  EXPECT_EQ(
      error_of_run(p_.problem(), {.out = p_.pool.zeros(DType::kF32, {3, 4, 16}), .lse = good_lse}),
      "output out is f32[3,4,16], expected f64[3,4,16]");
  EXPECT_EQ(
      error_of_run(p_.problem(), {.out = p_.pool.zeros(DType::kF64, {12, 16}), .lse = good_lse}),
      "output out is f64[12,16], expected f64[3,4,16]");
  EXPECT_EQ(
      error_of_run(p_.problem(), {.out = good_out, .lse = p_.pool.zeros(DType::kF64, {3, 4})}),
      "output lse is f64[3,4], expected f64[4,3]");
  EXPECT_TRUE(untouched(good_out, 0xAB) && untouched(good_lse, 0xAB));
}

TEST_F(Reference, RefusesOutputsWithoutMemory) {
  Outputs outputs{.out = out()};
  outputs.out.data = nullptr;
  EXPECT_EQ(error_of_run(p_.problem(), outputs), "output out has no memory");
}

TEST_F(Reference, RefusesOutputsThatTheProblemDoesNotHave) {
  const MutableTensorView good_out = out();
  fill(good_out, 0xAB);
  Outputs outputs{.out = good_out, .out_codes = p_.pool.zeros(DType::kF8E4M3FN, {3, 4, 16})};
  EXPECT_EQ(error_of_run(p_.problem(), outputs),
            "an output f8_e4m3fn[3,4,16] was asked for that this attention problem does not have");
  EXPECT_TRUE(untouched(good_out, 0xAB));
}

TEST_F(Reference, RefusesOtherFormsOfLse) {
  const MutableTensorView good_out = out();
  fill(good_out, 0xAB);
  for (const LseForm& form : {LseForm{.base = LseBase::k2}, LseForm{.includes_sink = false},
                              LseForm{.empty = EmptyLse::kPlusInfinity}}) {
    EXPECT_EQ(error_of_run(p_.problem(), {.out = good_out, .lse_form = form}),
              "REFERENCE writes lse in its declared form only");
  }
  EXPECT_TRUE(untouched(good_out, 0xAB));
}

TEST_F(Reference, FollowsTheStridesOfOutputsAndLeavesGapsAlone) {
  // Rows of 20 elements of which 16 are the view's; heads outermost; lse tokens outermost.
  const MutableTensorView wide = p_.pool.zeros(DType::kF64, {4, 3, 20});
  const MutableTensorView wide_lse = p_.pool.zeros(DType::kF64, {3, 6});
  fill(wide, 0xAB);
  fill(wide_lse, 0xAB);
  Outputs outputs{.out = wide, .lse = wide_lse};
  std::swap(outputs.out.shape[0], outputs.out.shape[1]);
  std::swap(outputs.out.stride_bytes[0], outputs.out.stride_bytes[1]);
  outputs.out.shape[2] = 16;
  std::swap(outputs.lse.shape[0], outputs.lse.shape[1]);
  std::swap(outputs.lse.stride_bytes[0], outputs.lse.stride_bytes[1]);
  outputs.lse.shape[0] = 4;
  run_once(*backend_, p_.problem(), outputs);

  double sentinel;
  std::memset(&sentinel, 0xAB, sizeof sentinel);
  for (std::int64_t head = 0; head < 4; ++head) {
    for (std::int64_t token = 0; token < 3; ++token) {
      for (std::int64_t d = 0; d < 20; ++d) {
        const double written = value_at(wide, head, token, d);
        if (d < 16) {
          EXPECT_NEAR(written, MeanProblem::kMeans[token], 1e-15 * 16);
        } else {
          EXPECT_EQ(written, sentinel);
        }
      }
    }
  }
  for (std::int64_t token = 0; token < 3; ++token) {
    EXPECT_LT(value_at(wide_lse, token, 3), 2.0);
    EXPECT_GT(value_at(wide_lse, token, 3), 1.0);
    EXPECT_EQ(value_at(wide_lse, token, 4), sentinel);
    EXPECT_EQ(value_at(wide_lse, token, 5), sentinel);
  }
}

TEST_F(Reference, AnswersCodesOfTheQuotient) {
  p_.op.output_scale = p_.pool.values(DType::kF32, {1}, {0.0078125});  // 2^-7
  Outputs outputs{.out_codes = p_.pool.zeros(DType::kF8E4M3FN, {3, 4, 16})};
  run_once(*backend_, p_.problem(), outputs);
  EXPECT_EQ(value_at(outputs.out_codes, 0, 0, 0), 448.0);   // 480 saturates
  EXPECT_EQ(value_at(outputs.out_codes, 1, 3, 7), 448.0);   // 793.6
  EXPECT_EQ(value_at(outputs.out_codes, 2, 1, 15), 288.0);  // 298.67: between 288 and 320
}

TEST_F(Reference, NaNBecomesACodeOfNaN) {
  p_.op.output_scale = p_.pool.values(DType::kF32, {1}, {1});
  p_.op.sinks = p_.pool.values(DType::kF32, {4}, {0, kNaN, 0, 0});
  Outputs outputs{.out_codes = p_.pool.zeros(DType::kF8E4M3FN, {3, 4, 16})};
  run_once(*backend_, p_.problem(), outputs);
  EXPECT_TRUE(std::isnan(value_at(outputs.out_codes, 0, 1, 0)));
  EXPECT_FALSE(std::isnan(value_at(outputs.out_codes, 0, 0, 0)));
}

TEST_F(Reference, RowsThatSeeNoKeyAreWrittenToo) {
  p_.op.seq_lens = p_.pool.values(DType::kI32, {2}, {1, 0});
  Outputs outputs{.out = out(), .lse = lse()};
  fill(outputs.out, 0xAB);
  fill(outputs.lse, 0xAB);
  run_once(*backend_, p_.problem(), outputs);
  for (const std::int64_t token : {0, 2}) {
    EXPECT_EQ(value_at(outputs.out, token, 1, 5), 0.0);
    EXPECT_EQ(value_at(outputs.lse, 1, token), -kInf);
  }
  EXPECT_EQ(value_at(outputs.out, 1, 1, 5), 1.0);  // one key, 2^0
}

TEST_F(Reference, APlanAnswersOtherProblemsOfTheSameShape) {
  const auto plan = backend_->prepare(p_.problem(), {});
  MeanProblem other;
  other.op.scale = -3;
  other.op.kv.v_scale = other.pool.values(DType::kF32, {1}, {2});
  Outputs outputs{.out = out()};
  plan->run(other.problem(), outputs);
  EXPECT_NEAR(value_at(outputs.out, 0, 0, 0), 2 * MeanProblem::kMeans[0], 1e-14);
}

TEST_F(Reference, HonoursEveryExec) {
  p_.op.exec.num_splits = 2;
  p_.op.exec.has_common_prefix = true;
  p_.op.exec.common_prefix_len = 1;
  p_.op.exec.dcp_size = 2;
  p_.op.exec.dcp_interleave = 2;
  Outputs outputs{.out = out(), .lse = lse()};
  EXPECT_EQ(run_once(*backend_, p_.problem(), outputs), p_.op.exec);
  EXPECT_NEAR(value_at(outputs.out, 1, 2, 3), MeanProblem::kMeans[1], 1e-14);
  EXPECT_NEAR(value_at(outputs.lse, 2, 1), std::log(5), 1e-15 * 4);
}

// A cache of more than 2^31 elements in reserved memory of which two pages are touched: block 2048
// begins at element 2^31. A 32-bit offset would read block 0.
TEST_F(Reference, ReadsBlocksBeyond2To31Elements) {
  constexpr std::int64_t kBlockElements = std::int64_t{1} << 20;
  constexpr std::int64_t kNumBlocks = 2049;
  constexpr std::size_t kBytes = sizeof(float) * kBlockElements * kNumBlocks;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no 8 GiB of address space";
  const std::unique_ptr<void, void (*)(void*)> owner(memory, [](void* m) { munmap(m, kBytes); });
  TensorView key = contiguous(static_cast<const void*>(memory), DType::kF32, {kNumBlocks, 1, 1, 1});
  key.stride_bytes[0] = sizeof(float) * kBlockElements;
  TensorView value = key;
  value.data = static_cast<const float*>(memory) + 1;
  auto* values = static_cast<float*>(memory) + 1;
  values[0] = 9;
  values[2047 * kBlockElements] = 7;
  values[2048 * kBlockElements] = 5;

  TensorPool pool;
  AttentionOp op;
  op.query = pool.values(DType::kF32, {2, 1, 1}, {1, 1});
  op.query_start_loc = pool.values(DType::kI32, {3}, {0, 1, 2});
  op.seq_lens = pool.values(DType::kI32, {2}, {1, 1});
  op.kv.layout = KvLayout::kPaged;
  op.kv.key = key;
  op.kv.value = value;
  op.kv.block_table = pool.values(DType::kI32, {2, 1}, {2048, 2047});
  Outputs outputs{.out = pool.zeros(DType::kF64, {2, 1, 1})};
  run_once(*backend_, AttentionProblem(op), outputs);
  EXPECT_EQ(value_at(outputs.out, 0, 0, 0), 5.0);
  EXPECT_EQ(value_at(outputs.out, 1, 0, 0), 7.0);
}

}  // namespace
}  // namespace attn
