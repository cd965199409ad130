// What holds for every command: help, flags, exit codes, where output goes.
#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

class CommandLine : public testing::Test {
 protected:
  CommandLine() {
    folder_.write("case", CountingCase().bytes());
    folder_.write("answer", CountingCase().answer().bytes());
    setting_.folder = folder_.path();
  }

  CommandOutput run(const Words& words) const { return attn_oracle(words, setting_); }

  TemporaryFolder folder_;
  CommandSetting setting_;
};

const Words kCommands[] = {
    {"run", "--case", "case", "--backend", "CPU", "--out", "y"},
    {"compare", "--case", "case", "--actual", "answer", "--atol", "0"},
    {"show", "--case", "case"},
    {"list", "backends"},
};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST_F(CommandLine, HelpAndVersionAreAnswers) {
  for (const Words& words : {Words{"--help"}, Words{"run", "--help"}, Words{"compare", "--help"},
                             Words{"show", "--help"}, Words{"list", "--help"}}) {
    const CommandOutput output = run(words);
    EXPECT_EQ(output.exit, 0) << words[0];
    EXPECT_NE(output.out.find("--help"), std::string::npos) << words[0];
    EXPECT_EQ(output.err, "") << words[0];
  }
  const CommandOutput version = run({"--version"});
  EXPECT_EQ(version.exit, 0);
  EXPECT_EQ(version.out, std::string("attn-oracle ") + ATTN_VERSION + "\n");
  EXPECT_EQ(version.err, "");
}

TEST_F(CommandLine, HelpOfACommandNamesItsFlags) {
  for (const auto& [command, flags] : std::map<std::string, Words>{
           {"run", {"--case", "--cases", "--backend", "--out"}},
           {"compare", {"--case", "--cases", "--actual", "--atol", "--rtol"}},
           {"show", {"--case", "--request", "--head", "--svg"}}}) {
    const std::string help = run({command, "--help"}).out;
    for (const std::string& flag : flags) {
      EXPECT_NE(help.find(flag + " "), std::string::npos) << command << " " << flag;
    }
  }
}

struct BadUsage {
  const char* name;
  Words words;
  const char* says;
};

class BadUsageTest : public CommandLine, public testing::WithParamInterface<BadUsage> {};

TEST_P(BadUsageTest, IsTwoWithOneLineAndNothingWritten) {
  expect_refused(run(GetParam().words), GetParam().says);
  EXPECT_EQ(folder_.names().size(), 2U) << "something was written";
}

const BadUsage kBadUsages[] = {
    {"NoCommand", {}, "subcommand"},
    {"UnknownCommand", {"frobnicate"}, "frobnicate"},
    {"UnknownCommandAfterAnOption", {"--threads", "2", "frobnicate"}, "frobnicate"},
    {"CommandInAnotherCase", {"RUN"}, "RUN"},
    {"TwoCommands", {"show", "--case", "case", "list"}, ""},
    {"UnknownFlag", with(kCommands[0], {"--no-such-flag"}), "--no-such-flag"},
    {"FlagCutShort", with(kCommands[2], {"--js"}), "--js"},
    {"UnknownGlobalFlag", {"--jsonl", "list"}, "--jsonl"},
    {"UnexpectedWord", with(kCommands[0], {"word"}), "word"},
    {"UnknownTopic", {"list", "bogus"}, "bogus"},
    {"TwoTopics", {"list", "backends", "facts"}, "facts"},
    {"RepeatedOption", with(kCommands[0], {"--out", "z"}), "--out"},
    {"RepeatedSameOption", with(kCommands[2], {"--case", "case"}), "--case"},
    {"RepeatedJson", with(kCommands[2], {"--json", "--json"}), "--json"},
    {"RepeatedQuiet", {"--quiet", "list", "--quiet"}, "--quiet"},
    {"RepeatedRequireGpu", {"--require-gpu", "list", "--require-gpu"}, "--require-gpu"},
    {"RepeatedStrict", with(kCommands[1], {"--strict", "--strict"}), "--strict"},
    {"RepeatedConditioning", with(kCommands[0], {"--conditioning", "--conditioning"}),
     "--conditioning"},
    {"RepeatedJudge", with(kCommands[0], {"--judge", "--judge"}), "--judge"},
    {"RepeatedThreads", {"--threads", "1", "list", "--threads=2"}, "--threads"},
    {"RunCaseAndCases", with(kCommands[0], {"--cases", "."}), "--cases"},
    {"CompareCaseAndCases", with(kCommands[1], {"--cases", "."}), "--cases"},
    {"RunNeitherCaseNorCases", {"run", "--backend", "CPU", "--out", "y"}, "--case"},
    {"RunWithoutBackend", {"run", "--case", "case", "--out", "y"}, "--backend"},
    {"RunWithoutOut", {"run", "--case", "case", "--backend", "CPU"}, "--out"},
    {"OptionWithoutValue", {"run", "--case", "case", "--backend", "CPU", "--out"}, "--out"},
    {"CompareNeitherCaseNorCases", {"compare", "--actual", "answer", "--atol", "0"}, "--case"},
    {"CompareWithoutActual", {"compare", "--case", "case", "--atol", "0"}, "--actual"},
    {"ShowWithoutCase", {"show"}, "--case"},
    {"NoThreads", {"--threads", "0", "list"}, "0"},
    {"NegativeThreads", {"--threads", "-3", "list"}, "-3"},
    {"FractionalThreads", {"--threads", "1.5", "list"}, "1.5"},
    {"WordForThreads", {"--threads", "many", "list"}, "many"},
    {"EmptyThreads", {"--threads", "", "list"}, "--threads"},
    {"HugeThreads", {"--threads", "99999999999999999999", "list"}, "99999999999999999999"},
    {"WordForBoolean", {"--json=perhaps", "list"}, "perhaps"},
    {"UnknownBackend", {"run", "--case", "case", "--backend", "NOPE", "--out", "y"}, "NOPE"},
    {"BackendInAnotherCase", {"run", "--case", "case", "--backend", "cpu", "--out", "y"}, "cpu"},
    {"EmptyBackend", {"run", "--case", "case", "--backend", "", "--out", "y"}, "backend"},
    {"DescribedBackend",
     {"run", "--case", "case", "--backend", "FLASH_ATTN", "--out", "y"},
     "FLASH_ATTN"},
    {"UnknownBackendForFolder", {"run", "--cases", ".", "--backend", "NOPE", "--out", "y"}, "NOPE"},
};

INSTANTIATE_TEST_SUITE_P(CommandLine, BadUsageTest, testing::ValuesIn(kBadUsages),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(CommandLine, RefusalStaysOneLineWhateverIsNamed) {
  const CommandOutput output =
      run({"run", "--case", "case", "--backend", "two\nlines\r\x1b[31m", "--out", "y"});
  expect_refused(output, "two lines");
  EXPECT_EQ(output.err.find('\x1b'), std::string::npos);
}

TEST_F(CommandLine, GlobalFlagsStandBeforeOrBehindTheCommand) {
  const CommandOutput before = run({"--json", "--threads=2", "show", "--case=case"});
  const CommandOutput behind = run({"show", "--case", "case", "--threads", "2", "--json"});
  EXPECT_EQ(before.exit, 0) << before.err;
  Json a = document_of(before);
  Json b = document_of(behind);
  for (Json* document : {&a, &b}) document->erase("replay");
  EXPECT_EQ(a, b);
}

TEST_F(CommandLine, BooleanFlagsTakeAValue) {
  const CommandOutput text = run({"show", "--case", "case"});
  EXPECT_EQ(run({"show", "--case", "case", "--json=false"}).out, text.out);
  EXPECT_EQ(document_of(run({"show", "--case", "case", "--json=true"}))["exit"], 0);
}

TEST_F(CommandLine, RequireGpuChangesNothingWhereNoDeviceWasAsked) {
  for (const Words& words : kCommands) {
    EXPECT_EQ(run(with(words, {"--require-gpu"})).exit, 0) << words[0];
  }
}

TEST_F(CommandLine, EveryCommandRepeatsItselfFromItsReplayLine) {
  for (const Words& words : kCommands) {
    const CommandOutput output = run(with(words, {"--json"}));
    ASSERT_EQ(output.exit, 0) << output.err;
    EXPECT_EQ(output.err, "");
    const Json document = document_of(output);
    expect_document_form(document, words[0], 0);
    expect_replays(document, setting_);
  }
}

// A path that is no UTF-8 is found; JSON, which has no such text, shows U+FFFD for its bytes.
TEST_F(CommandLine, PathsThatAreNoUtf8AreShownInValidJson) {
  const std::string odd = "case\xFF'\xC3";
  std::filesystem::copy(folder_.path() / "case", folder_.path() / odd);
  const CommandOutput output =
      run({"compare", "--case", odd, "--actual", "answer", "--atol", "1", "--json"});
  EXPECT_EQ(output.exit, 0) << output.err;
  const std::string replay = document_of(output)["replay"];
  EXPECT_NE(replay.find("case\xEF\xBF\xBD'\\''\xEF\xBF\xBD"), std::string::npos) << replay;
  EXPECT_EQ(run({"show", "--case", "\xFF", "--json"}).exit, 2);
}

// A disk that is full and a reader that is gone are failures, not passes.
TEST_F(CommandLine, UnwritableStandardOutputIsTwo) {
  for (const char* target : {"/dev/full", ""}) {
    CommandSetting setting = setting_;
    setting.out_to = target;
    std::vector<Words> all = {{"--help"}, {"--version"}, {"run", "--help"}};
    for (const Words& words : kCommands) {
      all.push_back(words);
      all.push_back(with(words, {"--json"}));
    }
    for (const Words& words : all) {
      const CommandOutput output = attn_oracle(words, setting);
      EXPECT_EQ(output.exit, 2) << testing::PrintToString(words) << " > '" << target << "'";
      EXPECT_EQ(lines_of(output.err).size(), 1U) << output.err;
    }
  }
}

TEST_F(CommandLine, UnwritableStandardErrorChangesNoExitCode) {
  for (const char* target : {"/dev/full", ""}) {
    CommandSetting setting = setting_;
    setting.err_to = target;
    EXPECT_EQ(attn_oracle({"frobnicate"}, setting).exit, 2) << target;
    EXPECT_EQ(
        attn_oracle({"run", "--case", "case", "--backend", "SIMT_MLA", "--out", "y"}, setting).exit,
        3)
        << target;
    EXPECT_EQ(attn_oracle(kCommands[1], setting).exit, 0) << target;
  }
}

TEST_F(CommandLine, ReaderThatGoesAwayIsNoCrash) {
  const CommandOutput output =
      shell("{ attn-oracle show --case case --json; echo $? >&2; } | true", setting_);
  EXPECT_TRUE(output.err == "0\n" || output.err.ends_with("written\n2\n")) << output.err;
}

TEST_F(CommandLine, LocaleChangesNothing) {
  const std::string command = "attn-oracle compare --case case --actual answer --atol 0.5 --json";
  const std::string plain = shell("LC_ALL=C " + command, setting_).out;
  EXPECT_EQ(shell("LC_ALL=de_DE.UTF-8 LANG=tr_TR.UTF-8 " + command, setting_).out, plain);
  EXPECT_NE(plain.find("\"atol\":0.5"), std::string::npos) << plain;
}

}  // namespace
}  // namespace attn
