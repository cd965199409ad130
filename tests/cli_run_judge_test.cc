// attn-oracle run --judge
#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

const Words kJudgementKeys = {"verdict", "gate",      "reason",  "tensors",
                              "strict",  "telemetry", "policies"};

class RunJudge : public testing::Test {
 protected:
  RunJudge() { setting_.folder = folder_.path(); }

  CommandOutput run(const std::string& file, const std::string& backend, const Words& more) const {
    Words words = {"run", "--case", file, "--backend", backend, "--out", "y", "--judge"};
    words.insert(words.end(), more.begin(), more.end());
    return attn_oracle(words, setting_);
  }
  bool exists(const std::string& name) const { return fs::exists(folder_.path() / name); }

  // The part of a document that the judge said, and under which contract.
  static Json judged(const Json& document) {
    Json part = {{"contract", document["contract"]}};
    if (document.contains("overrides")) part["overrides"] = document["overrides"];
    for (const std::string& key : kJudgementKeys) part[key] = document.at(key);
    return part;
  }

  const std::string case_ = third_party("torch/torch_flex-g7-d24.safetensors");
  TemporaryFolder folder_;
  CommandSetting setting_;
};

TEST_F(RunJudge, EveryBackendKeepsWhatItDeclares) {
  for (const auto& [backend, contract] :
       std::map<std::string, std::string>{{"REFERENCE", "reference"}, {"CPU", "fp32"}}) {
    const CommandOutput output = run(case_, backend, {"--json"});
    EXPECT_EQ(output.exit, 0) << output.err;
    const Json document = document_of(output);
    expect_document_form(document, "run", 0);
    Words keys = {"format", "version", "replay", "id", "op", "asked", "backend", "contract"};
    if (document.contains("overrides")) keys.emplace_back("overrides");
    if (backend == "CPU") keys.emplace_back("isa");
    for (const char* key : {"exec", "reasons", "out", "outputs", "seconds"}) keys.emplace_back(key);
    keys.insert(keys.end(), kJudgementKeys.begin(), kJudgementKeys.end());
    keys.emplace_back("exit");
    EXPECT_EQ(keys_of(document), keys);
    EXPECT_EQ(document["contract"], contract);
    EXPECT_EQ(document["verdict"], "pass");
    for (const auto& [tensor, result] : document["tensors"].items()) {
      EXPECT_LE(result["ratio"].get<double>(), 1.0) << backend << " " << tensor;
    }
    expect_replays(document, setting_);
  }
}

TEST_F(RunJudge, SaysWhatCompareSaysOfTheFile) {
  for (const Words& contract : {Words{}, Words{"--contract", "f64"}}) {
    Words words = contract;
    words.emplace_back("--json");
    const CommandOutput ran = run(case_, "CPU", words);
    Words compare = {"compare", "--case", case_, "--actual", "y"};
    compare.insert(compare.end(), words.begin(), words.end());
    const CommandOutput compared = attn_oracle(compare, setting_);
    EXPECT_EQ(ran.exit, compared.exit);
    EXPECT_EQ(judged(document_of(ran)), judged(document_of(compared)));
  }
}

TEST_F(RunJudge, TooTightAContractFailsAndYIsWritten) {
  const CommandOutput output = run(case_, "CPU", {"--contract", "f64", "--json"});
  EXPECT_EQ(output.exit, 1);
  const Json document = document_of(output);
  expect_document_form(document, "run", 1);
  EXPECT_EQ(document["contract"], "f64");
  EXPECT_EQ(document["verdict"], "fail");
  EXPECT_EQ(document["gate"], "bound");
  EXPECT_TRUE(document["reason"].get<std::string>().starts_with("out["));
  EXPECT_TRUE(exists("y"));
  folder_.write("wide.json", std::string(R"({"extends":"f64","out":"bf16","lse":"bf16"})"));
  const Json wide = document_of(run(case_, "CPU", {"--contract", "wide.json", "--json"}));
  EXPECT_EQ(wide["verdict"], "pass");
  EXPECT_EQ(wide["overrides"], Json::parse(R"({"lse":"bf16","out":"bf16"})"));
}

TEST_F(RunJudge, TextSaysTheVerdictAlsoWhenQuiet) {
  const CommandOutput prose = run(case_, "CPU", {});
  ASSERT_EQ(lines_of(prose.out).size(), 2U);
  EXPECT_TRUE(lines_of(prose.out)[1].starts_with("torch_flex-g7-d24 pass under fp32"));
  const CommandOutput quiet = run(case_, "CPU", {"--contract", "f64", "--quiet"});
  EXPECT_EQ(quiet.exit, 1);
  ASSERT_EQ(lines_of(quiet.out).size(), 1U);
  EXPECT_TRUE(quiet.out.starts_with("torch_flex-g7-d24 fail under f64: largest error "))
      << quiet.out;
}

TEST_F(RunJudge, MistrustedIsNoFailure) {
  CountingCase constant;
  constant.requests = {{1, 3}, {1, 3}};
  folder_.write("case", constant.bytes());
  const CommandOutput output = run("case", "CPU", {"--json"});
  EXPECT_EQ(output.exit, 0);
  EXPECT_EQ(document_of(output)["verdict"], "mistrusted");
}

// What cannot be judged is not run.
TEST_F(RunJudge, NothingToJudgeIsThree) {
  CountingCase silent;
  silent.outputs = {};
  folder_.write("case", silent.bytes());
  const CommandOutput output = run("case", "CPU", {"--json"});
  EXPECT_EQ(output.exit, 3);
  EXPECT_EQ(document_of(output)["reasons"],
            Json::array({"cannot be judged: the case asks for no output"}));
  EXPECT_FALSE(exists("y"));
}

TEST_F(RunJudge, BadUsageIsTwoAndNothingIsWritten) {
  folder_.write("broken", std::string(R"({"tiles": 1})"));
  expect_refused(run(case_, "CPU", {"--contract", "broken"}),
                 "broken has the unknown key \"tiles\"");
  expect_refused(run(case_, "CPU", {"--contract", "nothing", "--json"}), "--contract is 'nothing'");
  expect_refused(run(case_, "CPU", {"--contract", ""}), "--contract");
  expect_refused(run("broken", "CPU", {}), "broken: ");
  const Words without = {"run",   "--case", case_,        "--backend", "CPU",
                         "--out", "y",      "--contract", "fp32"};
  expect_refused(attn_oracle(without, setting_), "--contract needs --judge");
  const Words folder = {"run", "--cases", ".", "--backend", "CPU", "--out", "y", "--judge"};
  expect_refused(attn_oracle(folder, setting_), "--judge");
  EXPECT_FALSE(exists("y"));
}

}  // namespace
}  // namespace attn
