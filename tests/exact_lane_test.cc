// Rows that must be exact, and rows of which that cannot be asked.
#include "judge/exact_lane.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/special_values.h"
#include "tests/judged_answer.h"

namespace attn {
namespace {

// Queries of 0, integer values; the t-th of 5 tokens sees t + 1 keys.
class ExactLanes : public testing::Test {
 protected:
  ExactLanes() : drawn(5, 5, 3) {
    drawn.op.query = drawn.pool.zeros(DType::kF32, {5, 2, 4});
    drawn.op.kv.value = drawn.pool.values(DType::kF32, {5, 1, 3},
                                          {1, -2, 7, 4, 8, -7, 100, 0, 3, -6, 5, 2, 9, 9, 1});
  }

  // What is said of out[token, 1, 2] one unit in the last place away.
  std::optional<Gate> gate_of_one_ulp(std::int64_t token) {
    JudgedAnswer answer(drawn.op, DType::kF32, contract);
    const auto right = static_cast<float>(answer.expected["out"].value(token, 1, 2));
    answer.actual["out"].set(std::nextafter(right, 1000.0f), token, 1, 2);
    const Judgement judgement = answer.judge();
    if (judgement.gate) {
      EXPECT_NE(judgement.reason.find(", expected exactly "), std::string::npos);
    }
    return judgement.gate;
  }

  DrawnProblem drawn;
  std::string contract = "fp32";
};

TEST_F(ExactLanes, OneKeyIsExactWhateverItsValue) {
  drawn.op.kv.value = drawn.draw({5, 1, 3}, 8);
  EXPECT_EQ(gate_of_one_ulp(0), Gate::kExact);
  EXPECT_EQ(gate_of_one_ulp(1), std::nullopt);
}

TEST_F(ExactLanes, PowersOfTwoAreExactForIntegers) {
  EXPECT_EQ(gate_of_one_ulp(1), Gate::kExact);
  EXPECT_EQ(gate_of_one_ulp(2), std::nullopt);  // three keys
  EXPECT_EQ(gate_of_one_ulp(3), Gate::kExact);
  EXPECT_EQ(gate_of_one_ulp(4), std::nullopt);
}

// Scores of zero say nothing about what else has no bound.
TEST_F(ExactLanes, AreNoPassForWhatHasNoBound) {
  drawn.op.query = drawn.pool.values(DType::kF32, {5, 2, 4}, std::vector<double>(40, 1e5));
  drawn.op.kv.key = drawn.pool.zeros(DType::kF32, {5, 1, 4});
  JudgedAnswer beyond_f16(drawn.op, DType::kF32, "f16_flash");
  beyond_f16.actual["out"].set(1e30, 1, 0, 0);
  EXPECT_EQ(beyond_f16.judge().verdict, Verdict::kMistrusted);

  // Keys of 0 in 8 bits may have been 2^-10 each: scores are off by more than 1.
  JudgedAnswer coarse(drawn.op, DType::kF32);
  coarse.options.contract = {"fp32", R"({"key":"f8_e4m3fn"})"};
  coarse.actual["lse"].set(1e30, 0, 1);
  EXPECT_EQ(coarse.judge().verdict, Verdict::kMistrusted);
}

TEST_F(ExactLanes, RightAnswersPassUnderEveryContract) {
  for (const std::string_view name : contract_names()) {
    for (const DType stored : {DType::kF64, DType::kF32, DType::kBF16}) {
      JudgedAnswer answer(drawn.op, stored, std::string(name));
      EXPECT_NE(answer.judge().gate, Gate::kExact) << name << answer.judge().reason;
    }
  }
}

TEST_F(ExactLanes, AsksNothingOfScoresBiasesSinksAndScales) {
  const AttentionOp plain = drawn.op;
  ASSERT_EQ(gate_of_one_ulp(0), Gate::kExact);
  drawn.op.query = drawn.draw({5, 2, 4}, 9);
  EXPECT_EQ(gate_of_one_ulp(0), std::nullopt);
  drawn.op = plain;
  drawn.op.sinks = drawn.pool.values(DType::kF32, {2}, {0, 0});
  EXPECT_EQ(gate_of_one_ulp(0), std::nullopt);
  drawn.op = plain;
  drawn.op.kv.v_scale = drawn.pool.values(DType::kF32, {1}, {1});
  EXPECT_EQ(gate_of_one_ulp(0), std::nullopt);
  drawn.op = plain;
  drawn.op.bias.alibi_form = AlibiForm::kRow;
  drawn.op.bias.alibi_slopes = drawn.pool.values(DType::kF32, {2}, {0.5, 0.5});
  EXPECT_EQ(gate_of_one_ulp(1), std::nullopt);
}

TEST_F(ExactLanes, AsksNothingOfEqualScoresThatAreNotZero) {
  drawn.op.bias.attn_bias =
      drawn.pool.values(DType::kF32, {1, 2, 5, 5}, std::vector<double>(50, 0.5));
  EXPECT_EQ(gate_of_one_ulp(0), std::nullopt);
  EXPECT_EQ(gate_of_one_ulp(1), std::nullopt);
}

TEST_F(ExactLanes, AsksNothingOfSumsBeyondTheAccumulator) {
  drawn.op.kv.value = drawn.pool.values(DType::kF32, {5, 1, 3},
                                        {1, -2, 0x1p23, 4, 8, 1, 100, 0, 3, -6, 5, 2, 9, 9, 1});
  EXPECT_EQ(gate_of_one_ulp(0), Gate::kExact);
  EXPECT_EQ(gate_of_one_ulp(1), std::nullopt);
}

TEST_F(ExactLanes, AsksNothingOfMergesThroughLseAndOfInexactWeights) {
  contract = "fp32_split";
  EXPECT_EQ(gate_of_one_ulp(0), std::nullopt);
  contract = "fp8_flash";
  EXPECT_EQ(gate_of_one_ulp(0), std::nullopt);
  contract = "fp32_lanes";
  EXPECT_EQ(gate_of_one_ulp(0), Gate::kExact);
}

// bf16 operands do not hold every float32 value.
TEST_F(ExactLanes, AsksForTheTypesOnTheWay) {
  contract = "bf16_flash";
  EXPECT_EQ(gate_of_one_ulp(0), std::nullopt);
  drawn.op.kv.value = drawn.pool.values(DType::kBF16, {5, 1, 3},
                                        {1, -2, 7, 4, 8, -7, 100, 0, 3, -6, 5, 2, 9, 9, 1});
  EXPECT_EQ(gate_of_one_ulp(0), Gate::kExact);
  EXPECT_EQ(gate_of_one_ulp(3), Gate::kExact);
}

// 3 is a value of every format, but what is multiplied by it may be rounded; 2^-20 underflows.
TEST_F(ExactLanes, AsksForScalesThatKeepValues) {
  const auto gate_under = [&](const char* fields) {
    JudgedAnswer answer(drawn.op);
    answer.options.contract = {"fp32", fields};
    const auto right = static_cast<float>(answer.expected["out"].value(0, 1, 2));
    answer.actual["out"].set(std::nextafter(right, 1000.0f), 0, 1, 2);
    return answer.judge().gate;
  };
  EXPECT_EQ(gate_under("{}"), Gate::kExact);
  EXPECT_EQ(gate_under(R"({"p":{"type":"f16","scale":"0x1p+8"}})"), Gate::kExact);
  EXPECT_EQ(gate_under(R"({"p":{"type":"f16","scale":"0x1.8p+8"}})"), std::nullopt);
  EXPECT_EQ(gate_under(R"({"value":{"type":"f32","scale":"0x1p+0"}})"), Gate::kExact);
  EXPECT_EQ(gate_under(R"({"value":{"type":"f32","scale":"0x1.8p+0"}})"), std::nullopt);
  EXPECT_EQ(gate_under(R"({"out":{"type":"f32","scale":"0x1.8p+0"}})"), std::nullopt);
}

TEST_F(ExactLanes, AValueThatIsNoIntegerIsItselfForOneKey) {
  drawn.op.kv.value = drawn.draw({5, 1, 3}, 4);
  EXPECT_EQ(gate_of_one_ulp(0), Gate::kExact);
  JudgedAnswer answer(drawn.op);
  EXPECT_EQ(answer.judge().verdict, Verdict::kPass);
  const HostTensor right = answer.actual["out"];
  copy_units(right, 6, 3, answer.actual["out"], 0);  // the second row's answer
  EXPECT_EQ(answer.judge().gate, Gate::kExact);
}

TEST_F(ExactLanes, ASinkOfInfinityLeavesZero) {
  drawn.op.query = drawn.draw({5, 2, 4}, 9);
  drawn.op.sinks = drawn.pool.values(DType::kF32, {2}, {kInf, 0});
  for (const bool counted : {true, false}) {
    drawn.op.lse_includes_sink = counted;
    JudgedAnswer answer(drawn.op);
    ASSERT_EQ(answer.expected["out"].value(3, 0, 1), 0.0);
    Judgement judgement = answer.judge();
    EXPECT_FALSE(judgement.gate.has_value()) << judgement.reason;
    answer.actual["out"].set(1e-30, 3, 0, 1);
    judgement = answer.judge();
    EXPECT_EQ(judgement.gate, Gate::kExact);
    EXPECT_EQ(comparison(judgement, "out").worst.at, (std::vector<std::int64_t>{3, 0, 1}));
  }
}

}  // namespace
}  // namespace attn
