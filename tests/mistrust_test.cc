// Answers that no gate fails and that prove nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/judged_answer.h"

namespace attn {
namespace {

constexpr const char* kZerosWouldPass = "zeros would pass: no element is larger than its bound";

double largest(const HostTensor& tensor) {
  double size = 0.0;
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    size = std::max(size, std::fabs(decode(tensor.dtype(), tensor.code(i))));
  }
  return size;
}

// `tensor`, all of whose elements are 0, instead of what it was.
void zero(HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) tensor.set_code(i, 0);
}

TEST(Mistrust, IsForExpectationsThatProveNothing) {
  DrawnProblem constant(3, 5, 4);
  constant.op.kv.value = constant.pool.values(DType::kF32, {5, 1, 4}, std::vector<double>(20, 0.5));
  JudgedAnswer same(constant.op);
  // All of one value: the rounding of the reference must not hide it.
  for (std::int64_t i = 0; i < 24; ++i) {
    same.expected["out"].set_code(i, encode(DType::kF64, 0.5, Overflow::kInfinity));
  }
  EXPECT_EQ(same.judge().verdict, Verdict::kMistrusted);
  EXPECT_EQ(same.judge().reason, "the expected answer is the same everywhere");
  same.actual["out"].set(0.25, 0, 0, 0);
  EXPECT_EQ(same.judge().verdict, Verdict::kFail);

  DrawnProblem single(1, 1, 1);
  single.op.query = single.draw({1, 1, 4}, 1);  // one element
  EXPECT_EQ(JudgedAnswer(single.op).judge().verdict, Verdict::kPass);

  DrawnProblem empty(2, 0, 3);
  const Judgement judgement = JudgedAnswer(empty.op).judge();
  EXPECT_EQ(judgement.verdict, Verdict::kMistrusted);
  EXPECT_EQ(judgement.reason, "no row sees a key");
  EXPECT_EQ(judgement.rows, 0);
}

// Of 1300 elements a single one above its bound proves something.
TEST(Mistrust, IsForBoundsThatZerosWouldPass) {
  const DrawnProblem drawn;
  JudgedAnswer answer(drawn.op, DType::kF64);
  const double size = largest(answer.expected["out"]) / (1.0 + 0x1p-20);
  const FakeBounds above(size * (1.0 + 0x1p-40));
  const FakeBounds below(size * (1.0 - 0x1p-40));
  EXPECT_EQ(answer.judge(below).verdict, Verdict::kPass) << answer.judge(below).reason;
  EXPECT_EQ(answer.judge(above).verdict, Verdict::kMistrusted);
  EXPECT_EQ(answer.judge(above).reason, kZerosWouldPass);
  EXPECT_FALSE(answer.judge(above).gate.has_value());
  zero(answer.actual["out"]);
  EXPECT_EQ(answer.judge(below).gate, Gate::kBound);
  EXPECT_EQ(answer.judge(above).verdict, Verdict::kMistrusted);
}

TEST(Mistrust, IsNotLiftedByRowsThatSeeNoKey) {
  const DrawnProblem drawn(4, 2, 3);  // rows 0 and 1 lie before the first key
  const JudgedAnswer answer(drawn.op);
  FakeBounds loose(100.0);
  for (const std::int64_t head : {0, 1}) {
    loose.empty_rows[{0, head}] = loose.empty_rows[{1, head}] = true;
  }
  EXPECT_EQ(answer.judge(loose).reason, kZerosWouldPass);
}

// Queries of 0: the first row sees one key and is exact.
TEST(Mistrust, IsNotForAnswersThatAreKnownExactly) {
  DrawnProblem drawn(3, 3, 3);
  drawn.op.query = drawn.pool.zeros(DType::kF32, {3, 2, 4});
  EXPECT_EQ(JudgedAnswer(drawn.op).judge(FakeBounds(100.0)).verdict, Verdict::kPass);

  DrawnProblem single(1, 1, 1);
  single.op.query = single.pool.zeros(DType::kF32, {1, 1, 4});
  single.op.kv.value = single.pool.zeros(DType::kF32, {1, 1, 1});
  EXPECT_EQ(JudgedAnswer(single.op).judge().verdict, Verdict::kPass);
}

TEST(Mistrust, IsForLogitsThatZerosWouldPass) {
  TensorPool pool;
  IndexerOp op;
  op.query = pool.values(DType::kF32, {1, 1, 2}, {1, 2});
  op.key = pool.values(DType::kF32, {2, 2}, {1, 1, 2, 3});
  op.weights = pool.values(DType::kF32, {1, 1}, {0.5});
  op.k_start = pool.values(DType::kI32, {1}, {0});
  op.k_end = pool.values(DType::kI32, {1}, {2});
  const JudgedAnswer answer(op);
  EXPECT_EQ(answer.judge(FakeBounds(3.5)).verdict, Verdict::kPass);
  EXPECT_EQ(answer.judge(FakeBounds(4.0)).reason, kZerosWouldPass);
}

}  // namespace
}  // namespace attn
