// attn-oracle compare --case
#include <cmath>

#include "core/special_values.h"
#include "tests/compare_fixture.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

class CompareCommand : public CompareFixture {};

TEST_F(CompareCommand, PassesTheRightAnswer) {
  const Json document = passed();
  EXPECT_EQ(keys_of(document), (Words{"format", "version", "replay", "id", "actual", "backend",
                                      "contract", "verdict", "gate", "reason", "tensors", "strict",
                                      "telemetry", "policies", "plain", "exit"}));
  EXPECT_EQ(document["id"], "counting");
  EXPECT_EQ(document["actual"], "y");
  EXPECT_EQ(document["backend"], "MINE");
  EXPECT_EQ(document["contract"], "f64");
  EXPECT_EQ(document["strict"], nullptr);
  EXPECT_EQ(document["plain"], nullptr);
  EXPECT_EQ(keys_of(document["tensors"]), (Words{"out", "lse"}));
  EXPECT_EQ(document["tensors"]["out"],
            Json::parse(R"({"elements":3,"over":0,"ratio":0.0,"worst":null})"));
  EXPECT_EQ(document["tensors"]["lse"]["elements"], 3);
  EXPECT_LT(document["tensors"]["lse"]["ratio"].get<double>(), 1.0);
  expect_replays(document, setting_);
}

// e = (1.5, 2, 0), a = (1.5, 2.25, 0): sum (a-e)^2 = 1/16, sum e^2 = 6.25, sum a^2 = 7.3125.
TEST_F(CompareCommand, TelemetryIsOfOut) {
  set("out", 1, 2.25);
  const Json telemetry = failed("bound", "out[1,0,0]")["telemetry"];
  EXPECT_EQ(keys_of(telemetry),
            (Words{"nmse", "cosine", "max_ulp", "max_abs", "max_rel", "left_out"}));
  EXPECT_EQ(telemetry["left_out"], 0);
  EXPECT_DOUBLE_EQ(telemetry["nmse"], 0.01);
  EXPECT_DOUBLE_EQ(telemetry["cosine"], 6.75 / std::sqrt(6.25 * 7.3125));
  EXPECT_EQ(telemetry["max_ulp"], 0x1p49);  // of 2 in float64: 2^-51
  EXPECT_EQ(telemetry["max_abs"], 0.25);
  EXPECT_EQ(telemetry["max_rel"], 0.125);
  answer_.tensors["out"] = f32_tensor({3, 1, 1}, {1.5F, 2.25F, 0.0F});
  EXPECT_EQ(failed("bound", "out[1,0,0]")["telemetry"]["max_ulp"], 0x1p20);
}

// It does not look perfect where nothing was compared.
TEST_F(CompareCommand, TelemetrySaysWhatIsLeftOut) {
  set("out", 0, kNaN);
  set("out", 1, 2.25);
  const Json some = failed("nonfinite", "out[0,0,0]")["telemetry"];
  EXPECT_EQ(some["left_out"], 1);
  EXPECT_EQ(some["max_abs"], 0.25);
  set("out", 1, kInf);
  set("out", 2, kNaN);
  const Json none = failed("nonfinite", "out[0,0,0]");
  EXPECT_EQ(none["telemetry"], nullptr);
  for (const auto& [policy, verdict] : none["policies"].items())
    EXPECT_NE(verdict, "pass") << policy;
}

TEST_F(CompareCommand, PoliciesSayWhatPeersWould) {
  const auto policies = [&](double error) {
    set("out", 1, 2.0 + error);
    return judged(1)["policies"];
  };
  EXPECT_EQ(policies(0.25), Json::parse(R"({
    "cosine": "pass", "cudnn_isclose": "fail", "flashattention_2x": "fail", "flashinfer_bench": "fail",
    "ggml_nmse": "fail", "gpumode_allclose": "fail", "kernelbench_allclose": "fail",
    "onednn_absmag": "fail", "onnx_allclose": "fail", "te_allclose": "fail", "te_fp8_rmse": "pass",
    "vllm_allclose": "fail"})"));
  // 0.035: 1e-2 + 1e-2 * 2 = 0.03 forbids it, 1.5e-2 + 1.5e-2 * 2 allows it.
  EXPECT_EQ(policies(0.035), Json::parse(R"({
    "cosine": "pass", "cudnn_isclose": "pass", "flashattention_2x": "fail", "flashinfer_bench": "fail",
    "ggml_nmse": "pass", "gpumode_allclose": "pass", "kernelbench_allclose": "fail",
    "onednn_absmag": "fail", "onnx_allclose": "fail", "te_allclose": "pass", "te_fp8_rmse": "pass",
    "vllm_allclose": "fail"})"));
}

TEST_F(CompareCommand, PlainVerdictStandsBeside) {
  set("out", 1, 2.25);
  EXPECT_EQ(plain(1, {"--atol", "0.25"}),
            Json::parse(R"({"atol":0.25,"rtol":0.0,"verdict":"pass","ratio":1.0})"));
  EXPECT_EQ(plain(1, {"--atol", "0.125"}),
            Json::parse(R"({"atol":0.125,"rtol":0.0,"verdict":"fail","ratio":2.0})"));
  EXPECT_EQ(plain(1, {"--rtol", "0.125"})["ratio"], 1.0);
  EXPECT_EQ(plain(1, {"--rtol=0.0625"})["rtol"], 0.0625);
  EXPECT_EQ(plain(1, {"--atol", "0.125", "--rtol", "0.0625"})["ratio"], 1.0);
  EXPECT_EQ(plain(1, {"--atol", "0.25", "--rtol", "1"})["verdict"], "pass");
  // A row that sees nothing is exactly 0: a relative tolerance gives it no room.
  answer_ = three_rows().answer();
  set("out", 2, 1e-30);
  EXPECT_EQ(plain(1, {"--rtol", "1000"})["ratio"], "inf");
  // Neither does a plain fail change a pass.
  answer_ = three_rows().answer();
  set("out", 1, 2.0 + 0x1p-8);
  const Json document = passed({"--contract", "bf16_flash", "--atol", "0.001"});
  EXPECT_EQ(document["plain"]["verdict"], "fail");
  EXPECT_EQ(document["plain"]["ratio"], 3.90625);
  expect_replays(document, setting_);
}

TEST_F(CompareCommand, StoredAnswersAreNotLookedAt) {
  CountingCase lying = three_rows();
  lying.stored["out"] = f64_tensor({3, 1, 1}, {7.0, 8.0, 9.0});
  lying.stored["lse"] = f64_tensor({1, 3}, {7.0, 8.0, 9.0});
  folder_.write("case", lying.bytes());
  passed();
}

TEST_F(CompareCommand, WrongTensorsAreTwo) {
  const std::map<std::string, PlainTensor> wrong = {
      {"fewer rows", f64_tensor({2, 1, 1}, {1.5, 2.0})},
      {"other axes", f64_tensor({1, 3, 1}, {1.5, 2.0, 0.0})},
      {"fewer axes", f64_tensor({3, 1}, {1.5, 2.0, 0.0})},
      {"more axes", f64_tensor({3, 1, 1, 1}, {1.5, 2.0, 0.0})},
      {"integers", i32_tensor({3, 1, 1}, {1, 2, 0})},
      {"bytes", {"U8", {3, 1, 1}, "abc"}}};
  for (const auto& [what, tensor] : wrong) {
    answer_.tensors["out"] = tensor;
    expect_refused(compare(), "y: actual out is ");
  }
  answer_.tensors.erase("out");
  expect_refused(compare(), "y: tensor out is missing");
  answer_ = three_rows().answer();
  answer_.tensors.erase("lse");
  expect_refused(compare(), "y: tensor lse is missing");
}

TEST_F(CompareCommand, WhatIsNoResultIsTwo) {
  const auto refused = [&](const std::string& actual, const std::string& says) {
    expect_refused(
        attn_oracle({"compare", "--case", "case", "--actual", actual, "--atol", "1"}, setting_),
        says);
  };
  refused("case", "attn-result/1");
  refused("missing", "missing: ");
  refused(".", ".: ");
  folder_.write("empty", std::string());
  refused("empty", "empty: ");
  answer_.metadata["format"] = "attn-result/2";
  expect_refused(compare(), "attn-result/1");
  answer_.metadata["format"] = "attn-result/1";
  answer_.metadata.erase("exec");
  expect_refused(compare(), "exec");
  answer_.metadata["exec"] = "none";
  expect_refused(compare(), "exec");
  answer_.metadata["exec"] = "{}";
  passed();
}

TEST_F(CompareCommand, ResultGivenAsCaseIsTwo) {
  compare();
  expect_refused(attn_oracle({"compare", "--case", "y", "--actual", "y", "--atol", "1"}, setting_),
                 "attn-case/1");
}

TEST_F(CompareCommand, InvalidCaseIsTwo) {
  CountingCase made = three_rows();
  made.attrs["scale"] = "inf";
  made.result = "invalid";
  folder_.write("case", made.bytes());
  expect_refused(compare(), "scale is inf");
}

TEST_F(CompareCommand, TolerancesAreFiniteNumbersAndNotNegative) {
  for (const char* value : {"nan", "inf", "-inf", "-1", "-1e-300", "1e400", "", "x", "1,2", "1e"}) {
    expect_refused(compare({"--atol", value}), "--atol");
    expect_refused(compare({std::string("--rtol=") + value, "--atol", "1"}), "--rtol");
  }
  for (const char* value : {"0", "1e-320", "5", "1e308", ".5"}) {
    EXPECT_EQ(compare({"--atol", value, "--rtol", "1e-12"}).exit, 0) << value;
  }
}

TEST_F(CompareCommand, TextSaysTheVerdict) {
  set("out", 1, 2.0 + 0x1p-8);
  folder_.write("one", std::string(kOneRounding));
  EXPECT_EQ(compare({"--contract", "one"}).out,
            "counting pass under f64 with changes: largest error 0.5 times its bound\n");
  set("out", 0, kNaN);
  const CommandOutput fail = compare({"--quiet"});
  EXPECT_EQ(fail.exit, 1);
  EXPECT_EQ(fail.out,
            "counting fail under f64: largest error inf times its bound; "
            "out[0,0,0] is nan, expected 1.5\n");
}

TEST_F(CompareCommand, CaseThatAsksForNothingIsThree) {
  CountingCase made;
  made.outputs = {};
  write_case(made);
  const CommandOutput output = compare();
  EXPECT_EQ(output.exit, 3);
  const Json document = document_of(output);
  expect_document_form(document, "compare", 3);
  EXPECT_EQ(document["verdict"], "skipped");
  EXPECT_EQ(document["contract"], nullptr);
  EXPECT_EQ(document["reason"], "the case asks for no output");
  EXPECT_EQ(output.err, "attn-oracle: counting skipped: the case asks for no output\n");
}

}  // namespace
}  // namespace attn
