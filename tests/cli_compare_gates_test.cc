// Verdicts of attn-oracle compare --case, gate by gate.
#include <cmath>

#include "core/special_values.h"
#include "tests/compare_fixture.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

class CompareGates : public CompareFixture {};

// The bound of out[1,0,0] = 2 is 2^-7 there, that of lse = log 3 is 2^-8 log 3.
TEST_F(CompareGates, FailsBeyondTheBoundOnly) {
  folder_.write("one", std::string(kOneRounding));
  const Words contract = {"--contract", "one"};
  for (const double sign : {-1.0, 1.0}) {
    set("out", 1, 2.0 + sign * 0x1p-8);
    const Json half = passed(contract)["tensors"]["out"];
    EXPECT_NEAR(half["ratio"].get<double>(), 0.5, 1e-6);
    EXPECT_EQ(half["worst"]["at"], Json::array({1, 0, 0}));
    EXPECT_EQ(half["worst"]["expected"], 2.0);
    EXPECT_EQ(half["worst"]["actual"], 2.0 + sign * 0x1p-8);
    EXPECT_NEAR(half["worst"]["bound"].get<double>(), 0x1p-7, 1e-8);
    set("out", 1, 2.0 + sign * 0x1p-7);
    passed(contract);
    set("out", 1, 2.0 + sign * 0x1.01p-7);
    const Json document = failed("bound", "out[1,0,0] is off by 1 times its bound", contract);
    EXPECT_EQ(document["tensors"]["out"]["over"], 1);
    EXPECT_EQ(document["tensors"]["lse"]["over"], 0);
    EXPECT_NEAR(document["tensors"]["out"]["ratio"].get<double>(), 1.0 + 0x1p-8, 1e-5);
    expect_replays(document, setting_);
    set("out", 1, 2.0);

    const double bound = 0x1p-8 * std::log(3.0);
    set("lse", 1, std::log(3.0) + sign * 0.99 * bound);
    EXPECT_NEAR(passed(contract)["tensors"]["lse"]["ratio"].get<double>(), 0.99, 1e-5);
    set("lse", 1, std::log(3.0) + sign * 1.2 * bound);
    failed("bound", "lse[0,1] is off by 1.2 times its bound", contract);
    set("lse", 1, std::log(3.0));
  }
}

TEST_F(CompareGates, NonfiniteGateWantsSpecialsInPlaceAndSign) {
  for (const auto& [text, special] : std::multimap<std::string, double>{
           {"nan", kNaN}, {"nan", -kNaN}, {"inf", kInf}, {"-inf", -kInf}}) {
    set("out", 0, special);
    const Json document = failed("nonfinite", "out[0,0,0] is " + text + ", expected 1.5");
    EXPECT_EQ(document["tensors"]["out"]["ratio"], "inf");
    EXPECT_EQ(document["tensors"]["out"]["worst"]["actual"], text);
  }
  answer_ = three_rows().answer();
  for (const double wrong : {kInf, kNaN, -1e308}) {
    set("lse", 2, wrong);
    const Json document = failed("nonfinite", "lse[0,2] is ");
    EXPECT_EQ(document["tensors"]["lse"]["worst"]["expected"], "-inf");
  }
}

TEST_F(CompareGates, EmptyRowsGateWantsZero) {
  set("out", 2, 1e-300);
  failed("empty_rows", "out[2,0,0] is 1e-300, expected 0: its row sees no key");
  set("out", 2, -0.0);
  passed();
}

// The weight of a single key is e^0 / e^0 in every arithmetic. Its value is rounded in some.
TEST_F(CompareGates, ExactGateOfARowWithOneKey) {
  CountingCase made;
  made.requests = {{3, 3}};
  write_case(made);
  passed({"--contract", "fp32"});
  set("out", 0, 1.0 + 0x1p-52);
  failed("exact", "out[0,0,0] is 1.0000000000000002, expected exactly 1", {"--contract", "fp32"});
  passed({"--contract", "bf16_flash"});
}

// Codes of 8 bits come back from a file as bytes.
TEST_F(CompareGates, ExactGateOfACacheWrite) {
  const std::string pack = ATTN_CORE_PACK;
  for (const std::string& written : {third_party("vllm/vllm_triton-cache-f32.safetensors"),
                                     pack + "/cache_write-fp8_e4m3.safetensors"}) {
    const Words run = {"run", "--case", written, "--backend", "REFERENCE", "--out", "w"};
    ASSERT_EQ(attn_oracle(run, setting_).exit, 0);
    const Words words = {"compare", "--case", written, "--actual", "w", "--json"};
    const Json right = document_of(attn_oracle(words, setting_));
    EXPECT_EQ(right["verdict"], "pass");
    EXPECT_EQ(right["telemetry"], nullptr);
    EXPECT_EQ(right["policies"], Json::object());
    PlainFile answer = PlainFile::read(folder_.path() / "w");
    answer.tensors.at("value_cache_after").bytes[0] ^= 1;
    folder_.write("w", answer.bytes());
    const CommandOutput output = attn_oracle(words, setting_);
    EXPECT_EQ(output.exit, 1);
    const Json wrong = document_of(output);
    EXPECT_EQ(wrong["verdict"], "fail");
    EXPECT_EQ(wrong["gate"], "exact");
    EXPECT_EQ(wrong["tensors"]["value_cache_after"]["over"], 1);
    EXPECT_EQ(wrong["tensors"]["key_cache_after"]["over"], 0);
  }
}

// An average of 1, 2 and 3 cannot be 3.5, whatever the arithmetic.
TEST_F(CompareGates, HullGate) {
  set("out", 1, 3.5);
  failed("hull", "out[1,0,0] is 3.5, outside the hull of its values, 3");
  failed("hull", "out[1,0,0] is 3.5", {"--contract", "bf16_flash"});
  set("out", 1, 2.75);
  failed("bound", "out[1,0,0] is off by ");
}

// A sum of 4096 equal weights: in the worst case every rounding errs to the same side, which
// independent ones never do.
TEST_F(CompareGates, StrictGateIsTheProbableBound) {
  CountingCase made;
  made.requests = {{2, 4096}};
  write_case(made);
  EXPECT_EQ(passed({"--contract", "fp32", "--strict"})["strict"], "pass");
  set("out", 1, 2048.5 + 0.25);
  const Json certified = passed({"--contract", "fp32"});
  EXPECT_EQ(certified["strict"], nullptr);
  const double ratio = certified["tensors"]["out"]["ratio"];
  EXPECT_GT(ratio, 0.1);
  const Json document =
      failed("strict", "out[1,0,0] is off by ", {"--contract", "fp32", "--strict"});
  EXPECT_EQ(document["strict"], "fail");
  EXPECT_EQ(document["tensors"]["out"]["ratio"], ratio);
  expect_replays(document, setting_);
}

// Of docs/numerics.md, section 9, only sqrt(Q) u_P is left: Q = A v_max e^(m - L) of n equal
// weights of the values 1 ... n, whose mean A is; u of bf16 is 2^-8.
TEST_F(CompareGates, StrictGateIsSixStandardDeviationsOfRoundedWeights) {
  folder_.write("weights", std::string(R"({"extends": "f64", "vector": "exact",
    "dot": {"type": "exact"}, "sum": {"type": "exact"}, "pv": {"type": "exact"},
    "scale_roundings": 0, "cap": {"rel": "0x0p+0"}, "bias_rel": "0x0p+0", "tile": 0,
    "exp": {"rel": "0x0p+0", "abs": "0x0p+0", "arg_roundings": 0, "shift_roundings": 0},
    "normalize_roundings": 0, "log": {"abs": "0x0p+0", "roundings": 0}, "p": "bf16"})"));
  const Words strict = {"--contract", "weights", "--strict"};
  CountingCase made;
  made.requests = {{1, 99}, {1, 1000}};
  write_case(made);
  const std::vector<std::size_t> keys = {99, 1000};
  for (const std::size_t row : {0U, 1U}) {
    const double n = static_cast<double>(keys[row]);
    const double mean = (n + 1.0) / 2.0;
    const double probable = 6.0 * std::sqrt(mean * n / n) * 0x1p-8;
    for (const double sign : {-1.0, 1.0}) {
      set("out", row, mean + sign * 0.999 * probable);
      EXPECT_EQ(passed(strict)["strict"], "pass");
      set("out", row, mean + sign * 1.001 * probable);
      EXPECT_EQ(failed("strict", "out[" + std::to_string(row) + ",0,0] is off by 1 times",
                       strict)["strict"],
                "fail");
      passed({"--contract", "weights"});
    }
    set("out", row, mean);
  }
}

// The first gate that fails names the fault.
TEST_F(CompareGates, GatesHaveAnOrder) {
  set("out", 1, 2.75);
  failed("bound", "out[1,0,0]");
  set("out", 1, 3.5);
  failed("hull", "out[1,0,0]");
  set("out", 0, 1.75);  // two keys, integer values, scores of 0
  failed("exact", "out[0,0,0]");
  set("out", 2, 1.0);
  failed("empty_rows", "out[2,0,0]");
  set("out", 1, kNaN);
  failed("nonfinite", "out[1,0,0]");
}

TEST_F(CompareGates, VacuousComparisonsAreMistrusted) {
  CountingCase made;
  made.requests = {{1, 3}, {1, 3}};
  write_case(made);
  mistrusted("the expected answer is the same everywhere");
  set("out", 0, 2.25);  // gates come first
  failed("bound", "out[0,0,0]");

  made.requests = {{1, 3}};  // one element is no constant
  write_case(made);
  passed();

  made.requests = {{2, 0}};
  write_case(made);
  mistrusted("no row sees a key");

  made = three_rows();
  made.query = std::numeric_limits<float>::quiet_NaN();
  write_case(made);
  for (const std::size_t at : {0U, 1U}) {
    set("out", at, kNaN);
    set("lse", at, kNaN);
  }
  mistrusted("no row has a finite answer");
}

// Scores may be off by 8: nothing is known of the weights, but that they are positive.
TEST_F(CompareGates, RowsWithoutABoundAreMistrusted) {
  folder_.write("loose", std::string(R"({"logit": {"type": "f8_e5m2", "scale": "0x1p-20"}})"));
  const Words loose = {"--contract", "loose"};
  set("out", 1, 2.75);
  const Json document = judged(0, loose);
  EXPECT_EQ(document["verdict"], "mistrusted");
  EXPECT_EQ(document["reason"], "2 of 2 rows have no bound");
  EXPECT_EQ(judged(1, {"--contract", "loose", "--strict"})["verdict"], "mistrusted");
  set("out", 1, 3.5);
  failed("hull", "out[1,0,0] is 3.5, outside the hull of its values, 3", loose);
  set("out", 1, kNaN);
  failed("nonfinite", "out[1,0,0] is nan", loose);
}

// Exponentials off by a quarter: the bound is gamma(1/4) = 1/3 of numerator and sum, which is all
// of the answer; off by an eighth it is a third of it. 3 and 5 keys are in no exact lane.
TEST_F(CompareGates, BoundsThatZerosWouldPassAreMistrusted) {
  folder_.write("quarter", std::string(R"({"tile": 0, "exp": {"rel": "0x1p-2"}})"));
  folder_.write("eighth", std::string(R"({"tile": 0, "exp": {"rel": "0x1p-3"}})"));
  CountingCase made;
  made.requests = {{1, 3}, {1, 5}};
  write_case(made);
  passed({"--contract", "eighth"});
  const Words quarter = {"--contract", "quarter"};
  const char* reason = "zeros would pass: no element is larger than its bound";
  EXPECT_EQ(judged(0, quarter)["reason"], reason);
  EXPECT_EQ(judged(1, {"--contract", "quarter", "--strict"})["reason"], reason);
  set("out", 0, 0.0);
  set("out", 1, 0.0);
  EXPECT_EQ(judged(0, quarter)["verdict"], "mistrusted");
  failed("bound", "out[", {"--contract", "eighth"});
}

// The scaled values of the first row's 16 keys sum to 136 2^120, more than a quarter of what
// float32 holds; the second row's four have an exact answer.
TEST_F(CompareGates, RowsOutOfRangeStandBesideExactOnes) {
  folder_.write("scaled", std::string(R"({"p": {"type": "f32", "scale": "0x1p+120"}})"));
  const Words scaled = {"--contract", "scaled"};
  CountingCase made;
  made.requests = {{1, 16}, {1, 4}};
  write_case(made);
  for (const double anything : {8.5, 0.0, -1e30, kInf, kNaN}) {
    set("out", 0, anything);
    set("lse", 0, anything);
    set("out", 1, 2.5);
    const Json document = judged(0, scaled);
    EXPECT_EQ(document["verdict"], "mistrusted") << anything;
    EXPECT_EQ(document["reason"], "1 of 2 rows have no bound");
    set("out", 1, 2.5 + 0x1p-51);
    failed("exact", "out[1,0,0] is 2.5000000000000004, expected exactly 2.5", scaled);
  }
}

TEST_F(CompareGates, ZeroSizedAnswersAreMistrusted) {
  for (const std::vector<CountingCase::Request>& requests :
       {std::vector<CountingCase::Request>{}, {{0, 0}, {0, 4}}}) {
    CountingCase made;
    made.requests = requests;
    write_case(made);
    EXPECT_EQ(mistrusted("no row sees a key")["tensors"]["out"]["elements"], 0);
  }
}

TEST_F(CompareGates, NaNIsRightWhereItIsExpected) {
  CountingCase made = three_rows();
  made.query = std::numeric_limits<float>::quiet_NaN();
  folder_.write("case", made.bytes());
  failed("nonfinite", "out[0,0,0] is 1.5, expected nan");
  for (const std::size_t at : {0U, 1U}) {
    set("out", at, kNaN);
    set("lse", at, kNaN);
  }
  EXPECT_EQ(judged(0)["verdict"], "mistrusted");
  set("out", 2, kNaN);  // sees no key, so the query does not matter
  failed("nonfinite", "out[2,0,0]");
}

}  // namespace
}  // namespace attn
