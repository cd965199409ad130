// attn-oracle run --case
#include <sys/stat.h>

#include "tests/cli_expectations.h"
#include "tests/counting_case.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class RunCommand : public testing::Test {
 protected:
  RunCommand() { setting_.folder = folder_.path(); }

  CommandOutput run(const std::string& file, const std::string& backend, const Words& more = {}) {
    Words words = {"run", "--case", file, "--backend", backend, "--out", "y"};
    words.insert(words.end(), more.begin(), more.end());
    return attn_oracle(words, setting_);
  }

  std::string file(const std::string& name) const { return text_of(folder_.path() / name); }
  bool exists(const std::string& name) const { return fs::exists(folder_.path() / name); }
  PlainFile y() const { return PlainFile::read(folder_.path() / "y"); }

  TemporaryFolder folder_;
  CommandSetting setting_;
};

TEST_F(RunCommand, ReferenceAnswersInFloat64FromTheDefinition) {
  CountingCase made;
  made.requests = {{2, 3}, {1, 1}, {3, 2}};
  folder_.write("case", made.bytes());
  const CommandOutput output = run("case", "REFERENCE");
  EXPECT_EQ(output.exit, 0) << output.err;
  EXPECT_EQ(output.err, "");
  const PlainFile answer = y();
  EXPECT_EQ(answer.metadata,
            (std::map<std::string, std::string>{
                {"format", "attn-result/1"}, {"backend", "REFERENCE"}, {"exec", "{}"}}));
  ASSERT_EQ(answer.tensors.size(), 2U);
  const PlainTensor& out = answer.tensors.at("out");
  EXPECT_EQ(out.storage, "F64");
  EXPECT_EQ(out.shape, (std::vector<std::int64_t>{6, 1, 1}));
  EXPECT_EQ(values_of<double>(out), made.expected_out());
  const PlainTensor& lse = answer.tensors.at("lse");
  EXPECT_EQ(lse.storage, "F64");
  EXPECT_EQ(lse.shape, (std::vector<std::int64_t>{1, 6}));
  const std::vector<double> logs = values_of<double>(lse);
  const std::vector<double> expected = made.expected_lse();
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_DOUBLE_EQ(logs[i], expected[i]) << i;
}

TEST_F(RunCommand, CpuAnswersInFloat32) {
  CountingCase made;
  folder_.write("case", made.bytes());
  EXPECT_EQ(run("case", "CPU").exit, 0);
  const PlainFile answer = y();
  EXPECT_EQ(answer.metadata.at("backend"), "CPU");
  EXPECT_EQ(answer.tensors.at("lse").storage, "F32");
  EXPECT_EQ(answer.tensors.at("out").storage, "F32");
  const std::vector<float> out = values_of<float>(answer.tensors.at("out"));
  const std::vector<double> expected = made.expected_out();
  ASSERT_EQ(out.size(), expected.size());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_NEAR(out[i], expected[i], 1e-6);
}

TEST_F(RunCommand, DocumentSaysWhatRan) {
  folder_.write("case", CountingCase().bytes());
  const Json cpu = document_of(run("case", "auto", {"--json"}));
  expect_document_form(cpu, "run", 0);
  EXPECT_EQ(keys_of(cpu),
            (Words{"format", "version", "replay", "id", "op", "asked", "backend", "contract",
                   "overrides", "isa", "exec", "reasons", "out", "outputs", "seconds", "exit"}));
  EXPECT_EQ(cpu["id"], "counting");
  EXPECT_EQ(cpu["op"], "attention");
  EXPECT_EQ(cpu["asked"], "auto");
  EXPECT_EQ(cpu["contract"], "fp32");
  EXPECT_EQ(cpu["backend"], "CPU");
  EXPECT_EQ(cpu["exec"], Json::object());
  EXPECT_EQ(cpu["reasons"], Json::array());
  EXPECT_EQ(cpu["out"], "y");
  EXPECT_EQ(cpu["outputs"].dump(), R"({"lse":{"dtype":"f32","storage":"F32","shape":[1,2]},)"
                                   R"("out":{"dtype":"f32","storage":"F32","shape":[2,1,1]}})");
  EXPECT_GE(cpu["seconds"].get<double>(), 0.0);

  const Json reference = document_of(run("case", "REFERENCE", {"--json"}));
  expect_document_form(reference, "run", 0);
  EXPECT_EQ(reference["backend"], "REFERENCE");
  EXPECT_EQ(reference["outputs"]["out"]["storage"], "F64");
}

TEST_F(RunCommand, ReferenceHonoursExecAndBothSaySo) {
  CountingCase made;
  made.attrs["exec"] = {{"num_splits", 2}};
  folder_.write("case", made.bytes());
  const Json document = document_of(run("case", "REFERENCE", {"--json"}));
  EXPECT_EQ(document["exec"].dump(), R"({"num_splits":2})");
  EXPECT_EQ(y().metadata.at("exec"), R"({"num_splits":2})");
  const Json cpu = document_of(run("case", "CPU", {"--json"}));
  EXPECT_EQ(cpu["exec"].dump(), y().metadata.at("exec"));
}

TEST_F(RunCommand, ConditioningSumsComeFromABackendThatHasThem) {
  folder_.write("case", CountingCase().bytes());
  const CommandOutput refused = run("case", "CPU", {"--conditioning"});
  EXPECT_EQ(refused.exit, 3);
  EXPECT_NE(refused.err.find("conditioning sums not supported"), std::string::npos) << refused.err;
  EXPECT_FALSE(exists("y"));
  for (const char* backend : {"REFERENCE", "auto"}) {
    const CommandOutput output = run("case", backend, {"--conditioning"});
    EXPECT_EQ(output.exit, 0) << output.err;
    const PlainFile answer = y();
    EXPECT_EQ(answer.metadata.at("backend"), "REFERENCE");
    const PlainTensor& rows = answer.tensors.at("cond_row");
    ASSERT_EQ(rows.shape, (std::vector<std::int64_t>{2, 1, 17}));
    const std::vector<double> fields = values_of<double>(rows);
    EXPECT_EQ(fields[2], 2.0);  // visible keys of the row at position 1
    EXPECT_EQ(fields[17 + 2], 3.0);
    EXPECT_EQ(answer.tensors.at("cond_pv").shape, (std::vector<std::int64_t>{2, 1, 1}));
    fs::remove(folder_.path() / "y");
  }
}

TEST_F(RunCommand, StoredAnswersAreNotRead) {
  CountingCase made;
  folder_.write("case", made.bytes());
  made.stored["out"] = f64_tensor({2, 1, 1}, {77.0, 78.0});
  made.stored["lse"] = f64_tensor({1, 2}, {79.0, 80.0});
  folder_.write("lying", made.bytes());
  for (const char* backend : {"REFERENCE", "CPU"}) {
    ASSERT_EQ(run("case", backend).exit, 0);
    const std::string right = file("y");
    ASSERT_EQ(run("lying", backend).exit, 0);
    EXPECT_EQ(file("y"), right);
  }
}

TEST_F(RunCommand, EmptyBatchesAndRequestsAreAnswered) {
  const std::vector<std::vector<CountingCase::Request>> batches = {
      {}, {{0, 0}}, {{0, 3}}, {{2, 0}}, {{0, 0}, {2, 3}, {0, 2}}, {{3, 1}}};
  for (std::size_t i = 0; i < batches.size(); ++i) {
    CountingCase made;
    made.requests = batches[i];
    folder_.write("case", made.bytes());
    for (const char* backend : {"REFERENCE", "CPU"}) {
      const CommandOutput output = run("case", backend);
      ASSERT_EQ(output.exit, 0) << "batch " << i << ": " << output.err;
      const PlainTensor out = y().tensors.at("out");
      EXPECT_EQ(out.shape, (std::vector<std::int64_t>{made.num_tokens(), 1, 1}));
      if (out.storage == "F64") {
        EXPECT_EQ(values_of<double>(out), made.expected_out());
      }
    }
  }
}

TEST_F(RunCommand, BytesDoNotDependOnThreads) {
  const std::string many = third_party("torch/torch_flex-g7-d24.safetensors");
  for (const char* backend : {"REFERENCE", "CPU"}) {
    ASSERT_EQ(run(many, backend, {"--threads", "1"}).exit, 0);
    const std::string one = file("y");
    for (const char* threads : {"2", "8", "64", "1024"}) {
      ASSERT_EQ(run(many, backend, {"--threads", threads}).exit, 0);
      EXPECT_EQ(file("y"), one) << backend << " with " << threads;
    }
  }
}

TEST_F(RunCommand, TextSaysWhoAnsweredUnlessQuiet) {
  folder_.write("case", CountingCase().bytes());
  const CommandOutput prose = run("case", "CPU");
  EXPECT_EQ(lines_of(prose.out).size(), 1U);
  EXPECT_NE(prose.out.find("CPU"), std::string::npos);
  const CommandOutput quiet = run("case", "CPU", {"--quiet"});
  EXPECT_EQ(quiet.exit, 0);
  EXPECT_EQ(quiet.out, "");
  EXPECT_EQ(quiet.err, "");
}

// An invalid case is 2 whoever is asked, one that could not answer it too.
TEST_F(RunCommand, InvalidCaseIsTwoWithEveryBackend) {
  CountingCase made;
  made.result = "invalid";
  made.attrs["scale"] = "inf";
  folder_.write("infinite-scale", made.bytes());
  for (const char* backend :
       {"REFERENCE", "CPU", "auto", "CUDA_FLASH", "SIMT_MLA", "REFERENCE_FAST"}) {
    expect_refused(run("infinite-scale", backend, {"--json"}), "scale is inf");
    expect_refused(
        run(third_party("hand_made/format-invalid-heads.safetensors"), backend),
        "format-invalid-heads.safetensors: num_heads 5 is not a multiple of num_kv_heads 2");
    EXPECT_FALSE(exists("y"));
  }
}

TEST_F(RunCommand, UnsupportedIsThreeWithReasons) {
  const std::string differential = third_party("transformers/hf-diffllama2.safetensors");
  const CommandOutput output = run(differential, "CPU", {"--json"});
  EXPECT_EQ(output.exit, 3);
  const Json document = document_of(output);
  expect_document_form(document, "run", 3);
  EXPECT_EQ(keys_of(document), (Words{"format", "version", "replay", "id", "op", "asked", "backend",
                                      "reasons", "exit"}));
  EXPECT_EQ(document["id"], "hf-diffllama2");
  EXPECT_EQ(document["op"], "differential");
  EXPECT_EQ(document["reasons"], Json::array({"operation differential not supported"}));
  EXPECT_EQ(lines_of(output.err).size(), 1U);
  EXPECT_NE(output.err.find("operation differential not supported"), std::string::npos);

  const CommandOutput text = run(differential, "CPU");
  EXPECT_EQ(text.exit, 3);
  EXPECT_EQ(text.out, "");
  EXPECT_EQ(text.err, output.err);
  EXPECT_FALSE(exists("y"));
}

TEST_F(RunCommand, BackendOfAnotherBuildIsThree) {
  folder_.write("case", CountingCase().bytes());
  const Json list = document_of(attn_oracle({"list", "--json"}));
  for (const Json& item : list["items"]) {
    if (item["usable"].get<bool>()) continue;
    const CommandOutput output = run("case", item["name"], {"--json"});
    EXPECT_EQ(output.exit, 3) << item["name"];
    EXPECT_FALSE(document_of(output)["reasons"].empty());
    EXPECT_FALSE(exists("y"));
  }
}

TEST_F(RunCommand, StrangePathsWorkAndReplay) {
  for (const char* name : {"with space", "qu'ote\"s", "[a,b]{c}", "ünïcødé-\u6F22", "$HOME`id`\\n",
                           "tab\tand\nline", "-dash", "a;b&c|d>e", "*?~#!"}) {
    const std::string path = std::string("./") + name;
    folder_.write(name, CountingCase().bytes());
    const CommandOutput output = attn_oracle(
        {"run", "--case", path, "--backend", "CPU", "--out", path + ".y", "--json"}, setting_);
    ASSERT_EQ(output.exit, 0) << output.err;
    const Json document = document_of(output);
    EXPECT_EQ(document["out"], path + ".y");
    EXPECT_TRUE(exists(std::string(name) + ".y"));
    expect_replays(document, setting_);
  }
}

TEST_F(RunCommand, PathThatIsNotUtf8StaysReadableJson) {
  const std::string name = "latin-\xE9";
  folder_.write(name, CountingCase().bytes());
  const CommandOutput output = attn_oracle(
      {"run", "--case", name, "--backend", "CPU", "--out", name + ".y", "--json"}, setting_);
  EXPECT_EQ(output.exit, 0);
  EXPECT_EQ(document_of(output)["out"], "latin-\uFFFD.y");
  EXPECT_TRUE(exists(name + ".y"));
}

TEST_F(RunCommand, WhatIsNoCaseFileIsTwo) {
  folder_.write("empty", std::string());
  folder_.write("text", std::string("this is not a case file at all\n"));
  folder_.write("truncated", CountingCase().bytes().substr(0, 900));
  folder_.write("longer", CountingCase().bytes() + "x");
  folder_.write("result", CountingCase().answer().bytes());
  fs::create_directory(folder_.path() / "folder");
  ASSERT_EQ(::mkfifo((folder_.path() / "pipe").c_str(), 0666), 0);
  fs::create_symlink("loop", folder_.path() / "loop");
  for (const std::string& name :
       {std::string("empty"), std::string("text"), std::string("truncated"), std::string("longer"),
        std::string("result"), std::string("folder"), std::string("pipe"), std::string("loop"),
        std::string("missing"), std::string("text/child"), std::string("/dev/zero"),
        std::string("/dev/null"), std::string(5000, 'a')}) {
    expect_refused(run(name, "REFERENCE", {"--json"}), name + ": ");
    EXPECT_FALSE(exists("y"));
  }
  expect_refused(run("", "REFERENCE"), "cannot open");
}

TEST_F(RunCommand, ExtraIdsMayBeLong) {
  CountingCase made;
  made.id = std::string(4000, 'i');
  folder_.write("case", made.bytes());
  EXPECT_EQ(document_of(run("case", "CPU", {"--json"}))["id"], made.id);
}

}  // namespace
}  // namespace attn
