// attn-oracle run --cases
#include "tests/case_folder_writer.h"
#include "tests/cli_expectations.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class RunFolder : public testing::Test {
 protected:
  RunFolder() : in_(folder_.path() / "in") { setting_.folder = folder_.path(); }

  CommandOutput run(const std::string& backend, const Words& more = {},
                    const std::string& out = "out") const {
    Words words = {"run", "--cases", "in", "--backend", backend, "--out", out};
    words.insert(words.end(), more.begin(), more.end());
    return attn_oracle(words, setting_);
  }

  // The folder of the contract's example.
  void make_example() {
    in_.add_third_party("hand_made", "H01-w1");
    in_.add_third_party("hand_made", "format-invalid-heads");
    in_.add_third_party("transformers", "hf-diffllama2");
  }

  static CountingCase made(const std::string& id, const std::string& result = "valid") {
    CountingCase made;
    made.id = id;
    made.result = result;
    return made;
  }
  static CountingCase broken(const std::string& id, const std::string& result) {
    CountingCase broken = made(id, result);
    broken.attrs["scale"] = "inf";
    return broken;
  }

  fs::path out(const std::string& name = "") const { return folder_.path() / "out" / name; }

  TemporaryFolder folder_;
  CommandSetting setting_;
  CaseFolderWriter in_;
};

const char* const kExampleRows =
    R"({"id":"H01-w1","exit":0,"backend":"CPU","reasons":[]}
{"id":"format-invalid-heads","exit":2,"backend":"CPU","reasons":["num_heads 5 is not a multiple of num_kv_heads 2"]}
{"id":"hf-diffllama2","exit":3,"backend":"CPU","reasons":["operation differential not supported"]}
)";

TEST_F(RunFolder, AnAnswerOfAnEarlierRunDoesNotOutliveARefusal) {
  make_example();
  EXPECT_EQ(run("REFERENCE").exit, 0);
  EXPECT_TRUE(fs::exists(out("hf-diffllama2.safetensors")));
  EXPECT_EQ(run("CPU").exit, 3);
  EXPECT_FALSE(fs::exists(out("hf-diffllama2.safetensors")));
  EXPECT_TRUE(fs::exists(out("H01-w1.safetensors")));
}

TEST_F(RunFolder, WritesAnswersAndTheirIndex) {
  make_example();
  const CommandOutput output = run("CPU");
  EXPECT_EQ(output.exit, 3) << output.err;
  EXPECT_EQ(lines_of(output.out).back(), "2 passed, 0 failed, 1 skipped");
  const auto contents = contents_of(out());
  ASSERT_EQ(contents.size(), 2U);
  EXPECT_EQ(contents.at("index.jsonl"), kExampleRows);
  const PlainFile y = PlainFile::read(out("H01-w1.safetensors"));
  EXPECT_EQ(y.metadata.at("backend"), "CPU");

  CommandSetting one = setting_;
  attn_oracle({"run", "--case", "in/H01-w1.safetensors", "--backend", "CPU", "--out", "y"}, one);
  EXPECT_EQ(text_of(folder_.path() / "y"), contents.at("H01-w1.safetensors"));
}

TEST_F(RunFolder, JsonStreamIsHeaderRowsSummary) {
  make_example();
  const CommandOutput output = run("CPU", {"--json"});
  EXPECT_EQ(output.exit, 3);
  EXPECT_EQ(output.err, "");
  const Words lines = lines_of(output.out);
  ASSERT_EQ(lines.size(), 5U);
  const Json header = Json::parse(lines[0]);
  EXPECT_EQ(keys_of(header), (Words{"format", "version", "replay"}));
  EXPECT_EQ(header["format"], "attn-run/1");
  EXPECT_EQ(lines[1] + "\n" + lines[2] + "\n" + lines[3] + "\n", kExampleRows);
  EXPECT_EQ(lines[4], R"({"summary":{"cases":3,"passed":2,"failed":0,"skipped":1,"exit":3}})");
  EXPECT_EQ(shell(header["replay"], setting_).out, output.out);
}

TEST_F(RunFolder, EveryResultHasItsPass) {
  in_.add(made("a-valid"));
  in_.add(broken("b-invalid", "invalid"));
  in_.add(made("c-acceptable", "acceptable"));
  in_.add(broken("d-acceptable", "acceptable"));
  const CommandOutput good = run("REFERENCE");
  EXPECT_EQ(good.exit, 0);
  EXPECT_EQ(lines_of(good.out), Words{"4 passed, 0 failed"});

  in_.add(broken("e-valid", "valid"));
  in_.add(made("f-invalid", "invalid"));
  in_.add_third_party("transformers", "hf-diffllama2");
  const CommandOutput bad = run("CPU");
  EXPECT_EQ(bad.exit, 1) << "failed outweighs skipped";
  EXPECT_EQ(lines_of(bad.out).back(), "4 passed, 2 failed, 1 skipped");
  EXPECT_NE(bad.out.find("e-valid failed: scale is inf"), std::string::npos) << bad.out;
  const Words rows = lines_of(text_of(out("index.jsonl")));
  ASSERT_EQ(rows.size(), 7U);
  EXPECT_EQ(Json::parse(rows[4])["exit"], 2);
  EXPECT_EQ(Json::parse(rows[5])["exit"], 0);
}

// Passes the folder's checks, but asks for more than any machine has.
TEST_F(RunFolder, CaseThatExhaustsMemoryFailsAloneWithOne) {
  CountingCase greedy = made("a-greedy");
  greedy.requests = {{1, 0}};
  PlainFile file;
  {
    TemporaryFolder scratch;
    file = PlainFile::read(scratch.write("case", greedy.bytes()));
  }
  const std::int64_t size = std::int64_t{1} << 52;
  Json object = Json::parse(file.metadata["case"]);
  file.tensors["value"].shape[2] = size;
  object["axes"]["head_size_v"] = size;
  object["inputs"]["value"]["shape"][2] = size;
  object["outputs"]["out"]["shape"][2] = size;
  file.metadata["case"] = object.dump();
  in_.add(greedy, file.bytes());
  in_.add(made("b-fine"));
  const CommandOutput output = run("REFERENCE", {"--json"});
  EXPECT_EQ(output.exit, 1) << output.err;
  const Words rows = lines_of(text_of(out("index.jsonl")));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(Json::parse(rows[0])["exit"], 1);
  EXPECT_EQ(Json::parse(rows[1])["exit"], 0);
}

TEST_F(RunFolder, EmptyFolderRanNothing) {
  const CommandOutput output = run("CPU");
  EXPECT_EQ(output.exit, 3);
  EXPECT_EQ(output.out, "0 passed, 0 failed\n");
  EXPECT_EQ(contents_of(out()), (std::map<std::string, std::string>{{"index.jsonl", ""}}));
}

TEST_F(RunFolder, QuietLeavesTheCounts) {
  make_example();
  const CommandOutput output = run("CPU", {"--quiet"});
  EXPECT_EQ(output.exit, 3);
  EXPECT_EQ(output.out, "2 passed, 0 failed, 1 skipped\n");
  EXPECT_EQ(output.err, "");
}

TEST_F(RunFolder, SameInputSameBytesWithAnyThreads) {
  make_example();
  in_.add_third_party("torch", "torch_flex-g7-d24");
  for (const char* backend : {"REFERENCE", "CPU", "auto"}) {
    run(backend, {"--threads", "1"});
    const auto first = contents_of(out());
    EXPECT_GE(first.size(), 3U);
    for (const char* threads : {"1", "2", "8"}) {
      run(backend, {"--threads", threads}, "again");
      EXPECT_EQ(contents_of(folder_.path() / "again"), first) << backend << " " << threads;
    }
  }
}

TEST_F(RunFolder, MakesFoldersAndReplacesOldAnswers) {
  in_.add(made("a"));
  EXPECT_EQ(run("CPU", {}, "new/er/out").exit, 0);
  EXPECT_EQ(contents_of(folder_.path() / "new/er/out").size(), 2U);

  fs::create_directory(out());
  folder_.write("out/a.safetensors", std::string(9999, 'x'));
  folder_.write("out/index.jsonl", std::string(9999, 'x'));
  folder_.write("out/other", std::string("mine"));
  EXPECT_EQ(run("CPU").exit, 0);
  auto contents = contents_of(out());
  EXPECT_EQ(contents["other"], "mine");
  contents.erase("other");
  EXPECT_EQ(contents, contents_of(folder_.path() / "new/er/out"));
}

TEST_F(RunFolder, BackendNobodyHereHasSkipsAll) {
  in_.add(made("a"));
  in_.add(broken("b", "invalid"));
  const CommandOutput output = run("SIMT_MLA");
  EXPECT_EQ(output.exit, 3);
  EXPECT_EQ(lines_of(output.out).back(), "1 passed, 0 failed, 1 skipped");
  EXPECT_EQ(contents_of(out()).size(), 1U);
}

TEST_F(RunFolder, UnusableOutIsTwoBeforeAnythingRuns) {
  in_.add(made("a"));
  folder_.write("file", std::string("mine"));
  const auto before = contents_of(in_.path());
  for (const char* target : {"file", "file/out", "", "in", "./in/", "out/../in"}) {
    fs::create_directories(out());
    const CommandOutput output = run("CPU", {"--json"}, target);
    expect_refused(output, target);
    EXPECT_EQ(contents_of(in_.path()), before) << target;
    EXPECT_TRUE(fs::is_empty(out())) << target;
  }
  EXPECT_EQ(text_of(folder_.path() / "file"), "mine");
}

TEST_F(RunFolder, AnswerThatCannotBeWrittenIsTwo) {
  in_.add(made("a"));
  fs::create_directories(out("a.safetensors"));
  folder_.write("out/index.jsonl", std::string("of an earlier run\n"));
  const CommandOutput output = run("CPU");
  EXPECT_EQ(output.exit, 2);
  EXPECT_EQ(lines_of(output.err).size(), 1U);
  EXPECT_NE(output.err.find("a.safetensors: cannot write: it is a folder"), std::string::npos);
  EXPECT_FALSE(fs::exists(out("index.jsonl"))) << "an index of answers that are not there";
}

class Interrupt : public RunFolder, public testing::WithParamInterface<int> {
 protected:
  // Ends the command after so many lines of its stream.
  CommandOutput interrupted(const Words& words, std::size_t lines) const {
    RunningCommand command(attn_oracle_words(words), setting_);
    command.wait_for_lines(lines);
    command.send(GetParam());
    return command.finish();
  }

  static void expect_whole_lines(const CommandOutput& output) {
    EXPECT_EQ(output.exit, 128 + GetParam());
    EXPECT_EQ(output.err, "");
    EXPECT_TRUE(output.out.ends_with('\n'));
    for (const std::string& line : lines_of(output.out)) {
      EXPECT_TRUE(Json::accept(line)) << line;
      EXPECT_FALSE(line.starts_with("{\"summary\"")) << "was too late to interrupt";
    }
  }
};

INSTANTIATE_TEST_SUITE_P(By, Interrupt, testing::Values(SIGINT, SIGTERM),
                         [](const auto& test) { return test.param == SIGINT ? "Int" : "Term"; });

TEST_P(Interrupt, LeavesWholeLinesAndWholeFiles) {
  in_.add_many(made("one"), 3000);
  for (const std::size_t lines : {1U, 2U, 5U, 17U, 60U}) {
    fs::remove_all(out());
    expect_whole_lines(interrupted(
        {"run", "--cases", "in", "--backend", "REFERENCE", "--out", "out", "--json"}, lines));
    std::string first;
    for (const auto& [name, bytes] : contents_of(out())) {
      EXPECT_TRUE(name.starts_with("many-") && name.ends_with(".safetensors")) << name;
      if (first.empty()) first = bytes;
      EXPECT_EQ(bytes, first) << name;
    }
  }
}

TEST_P(Interrupt, EndsACompareToo) {
  in_.add_many(made("one"), 3000);
  expect_whole_lines(interrupted({"compare", "--cases", "in", "--json"}, 3));
}

}  // namespace
}  // namespace attn
