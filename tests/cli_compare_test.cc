// attn-oracle compare --case
#include <cmath>
#include <limits>

#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// Rows at positions 1 and 2 of three keys, and one that sees nothing: out 1.5, 2, 0.
CountingCase three_rows() {
  CountingCase made;
  made.requests = {{2, 3}, {1, 0}};
  return made;
}

class CompareCommand : public testing::Test {
 protected:
  CompareCommand() : answer_(three_rows().answer()) {
    folder_.write("case", three_rows().bytes());
    setting_.folder = folder_.path();
  }

  void set(const std::string& tensor, std::size_t at, double value) {
    std::vector<double> values = values_of<double>(answer_.tensors.at(tensor));
    values.at(at) = value;
    answer_.tensors.at(tensor) = f64_tensor(answer_.tensors.at(tensor).shape, values);
  }

  CommandOutput compare(const Words& more = {"--atol", "0.25", "--json"}) {
    folder_.write("y", answer_.bytes());
    Words words = {"compare", "--case", "case", "--actual", "y"};
    words.insert(words.end(), more.begin(), more.end());
    return attn_oracle(words, setting_);
  }

  // The document, whose exit is the program's.
  Json judged(int exit, const Words& more = {"--atol", "0.25", "--json"}) {
    const CommandOutput output = compare(more);
    EXPECT_EQ(output.exit, exit) << output.out << output.err;
    EXPECT_EQ(output.err, "");
    Json document = document_of(output);
    expect_document_form(document, "compare", exit);
    EXPECT_EQ(document["plain"]["verdict"], exit == 0 ? "pass" : "fail");
    return document;
  }

  PlainFile answer_;
  TemporaryFolder folder_;
  CommandSetting setting_;
};

TEST_F(CompareCommand, PassesTheRightAnswer) {
  const Json document = judged(0);
  EXPECT_EQ(keys_of(document),
            (Words{"format", "version", "replay", "id", "actual", "backend", "contract", "verdict",
                   "gate", "reason", "tensors", "strict", "plain", "exit"}));
  EXPECT_EQ(document["id"], "counting");
  EXPECT_EQ(document["actual"], "y");
  EXPECT_EQ(document["backend"], "MINE");
  EXPECT_EQ(document["reason"], "");
  EXPECT_EQ(keys_of(document["tensors"]), (Words{"lse", "out"}));
  EXPECT_EQ(document["tensors"]["out"]["elements"], 3);
  EXPECT_EQ(document["tensors"]["out"]["over"], 0);
  EXPECT_EQ(document["plain"]["atol"], 0.25);
  EXPECT_EQ(document["plain"]["rtol"], 0.0);
  EXPECT_LT(document["plain"]["ratio"].get<double>(), 1e-14);
  expect_replays(document, setting_);
}

TEST_F(CompareCommand, FailsBeyondWhatIsAllowedOnly) {
  set("out", 1, 2.25);
  EXPECT_EQ(judged(0)["plain"]["ratio"], 1.0);
  set("out", 1, 2.375);
  const Json document = judged(1);
  EXPECT_EQ(document["plain"]["ratio"], 1.5);
  EXPECT_EQ(document["tensors"]["out"]["over"], 1);
  EXPECT_EQ(document["tensors"]["lse"]["over"], 0);
  const Json& worst = document["tensors"]["out"]["worst"];
  EXPECT_EQ(worst["at"], Json::array({1, 0, 0}));
  EXPECT_EQ(worst["expected"], 2.0);
  EXPECT_EQ(worst["actual"], 2.375);
  EXPECT_EQ(worst["bound"], 0.25);
  EXPECT_NE(document["reason"].get<std::string>().find("out[1,0,0]"), std::string::npos);
  expect_replays(document, setting_);
}

TEST_F(CompareCommand, FindsErrorsOfEitherSignInEveryPlace) {
  for (const char* tensor : {"out", "lse"}) {
    for (const std::size_t at : {0U, 1U}) {
      for (const double error : {-0.26, 0.26}) {
        answer_ = three_rows().answer();
        set(tensor, at, values_of<double>(answer_.tensors.at(tensor))[at] + error);
        EXPECT_EQ(judged(1)["tensors"][tensor]["over"], 1) << tensor << at << error;
      }
    }
  }
  answer_ = three_rows().answer();
  set("out", 2, -0.26);
  EXPECT_EQ(judged(1)["tensors"]["out"]["worst"]["at"], Json::array({2, 0, 0}));
}

TEST_F(CompareCommand, RelativeToleranceIsOfTheExpectedValue) {
  set("out", 1, 2.5);
  EXPECT_EQ(judged(0, {"--rtol", "0.25", "--json"})["plain"]["ratio"], 1.0);
  EXPECT_EQ(judged(1, {"--rtol=0.2", "--json"})["plain"]["rtol"], 0.2);
  EXPECT_EQ(judged(0, {"--atol", "0.25", "--rtol", "0.125", "--json"})["plain"]["ratio"], 1.0);
  // A row that sees nothing is exactly 0: a relative tolerance gives it no room.
  answer_ = three_rows().answer();
  set("out", 2, 1e-30);
  EXPECT_EQ(judged(1, {"--rtol", "1000", "--json"})["plain"]["ratio"], "inf");
}

TEST_F(CompareCommand, SpecialsMustMatchInPlaceAndSign) {
  for (const double special : {kNaN, kInf, -kInf}) {
    answer_ = three_rows().answer();
    set("out", 0, special);
    const Json document = judged(1, {"--atol", "1e300", "--json"});
    EXPECT_EQ(document["plain"]["ratio"], "inf");
    EXPECT_EQ(document["tensors"]["out"]["worst"]["actual"], std::isnan(special) ? "nan"
                                                             : special > 0       ? "inf"
                                                                                 : "-inf");
  }
  for (const double wrong : {kInf, kNaN, -1e308}) {
    answer_ = three_rows().answer();
    set("lse", 2, wrong);
    const Json document = judged(1, {"--atol", "1e300", "--json"});
    EXPECT_EQ(document["tensors"]["lse"]["worst"]["expected"], "-inf");
    EXPECT_EQ(document["tensors"]["lse"]["worst"]["at"], Json::array({0, 2}));
  }
}

TEST_F(CompareCommand, NaNIsRightWhereItIsExpected) {
  CountingCase made = three_rows();
  made.query = std::numeric_limits<float>::quiet_NaN();
  folder_.write("case", made.bytes());
  EXPECT_EQ(judged(1)["tensors"]["out"]["worst"]["expected"], "nan");
  for (const std::size_t at : {0U, 1U}) {
    set("out", at, kNaN);
    set("lse", at, kNaN);
  }
  judged(0);
  set("out", 2, kNaN);  // sees no key, so the query does not matter
  judged(1);
}

TEST_F(CompareCommand, AnswerMayBeOfAnyFloatingTypeAndHoldMore) {
  answer_.tensors["out"] = f32_tensor({3, 1, 1}, {1.5F, 2.0F, 0.0F});
  answer_.tensors["cond_out"] = f64_tensor({7}, std::vector<double>(7, kNaN));
  judged(0);
  // bf16 of 1.5, 2 and 0
  answer_.tensors["out"] = plain_tensor<std::uint16_t>("BF16", {3, 1, 1}, {0x3FC0, 0x4000, 0x0000});
  judged(0);
  answer_.tensors["out"] = plain_tensor<std::uint16_t>("F16", {3, 1, 1}, {0x3E00, 0x4000, 0x3E00});
  EXPECT_EQ(judged(1)["tensors"]["out"]["worst"]["at"], Json::array({2, 0, 0}));
}

TEST_F(CompareCommand, StoredAnswersAreNotLookedAt) {
  CountingCase lying = three_rows();
  lying.stored["out"] = f64_tensor({3, 1, 1}, {7.0, 8.0, 9.0});
  lying.stored["lse"] = f64_tensor({1, 3}, {7.0, 8.0, 9.0});
  folder_.write("case", lying.bytes());
  judged(0);
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
    expect_refused(compare(), "y: out is ");
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
  judged(0);
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

TEST_F(CompareCommand, NeedsATolerance) { expect_refused(compare({"--json"}), "--atol"); }

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
  const CommandOutput pass = compare({"--atol", "0.25"});
  EXPECT_EQ(lines_of(pass.out).size(), 1U);
  EXPECT_NE(pass.out.find("counting pass"), std::string::npos) << pass.out;
  set("out", 0, kNaN);
  const CommandOutput fail = compare({"--atol", "0.25", "--quiet"});
  EXPECT_EQ(fail.exit, 1);
  EXPECT_NE(fail.out.find("counting fail"), std::string::npos) << fail.out;
  EXPECT_NE(fail.out.find("out[0,0,0] is nan, expected 1.5"), std::string::npos) << fail.out;
}

TEST_F(CompareCommand, ZeroSizedAnswersPass) {
  for (const std::vector<CountingCase::Request>& requests :
       {std::vector<CountingCase::Request>{}, {{0, 0}, {0, 4}}}) {
    CountingCase made;
    made.requests = requests;
    folder_.write("case", made.bytes());
    answer_ = made.answer();
    EXPECT_EQ(judged(0)["tensors"]["out"]["elements"], 0);
  }
}

}  // namespace
}  // namespace attn
