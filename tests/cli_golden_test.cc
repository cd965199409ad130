// golden make, verify, list, show from the outside.
#include <gtest/gtest.h>

#include <fstream>

#include "tests/case_folder_writer.h"
#include "tests/cli_expectations.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

// No rounding but that of the answer to float64.
constexpr const char* kOnlyTheAnswerIsRounded = R"({"extends": "f64", "vector": "exact",
  "dot": {"type": "exact"}, "sum": {"type": "exact"}, "pv": {"type": "exact"},
  "scale_roundings": 0, "cap": {"rel": "0x0p+0"}, "bias_rel": "0x0p+0",
  "exp": {"rel": "0x0p+0", "abs": "0x0p+0", "arg_roundings": 0}, "normalize_roundings": 0,
  "log": {"abs": "0x0p+0", "roundings": 0}, "out": "f64", "lse": "f64"})";

class CliGolden : public testing::Test {
 protected:
  // A pack of nine cases, one of them invalid, with one relation.
  void SetUp() override {
    ASSERT_EQ(RunningCommand({ATTN_SMALL_PACK, pack()}, {}).finish().exit, 0);
  }

  std::string pack() const { return (folder_.path() / "pack").string(); }

  // The stored answer of a case, wrong in one element, with every digest put right.
  void spoil_answer(const std::string& id, const std::string& tensor) const {
    const fs::path path = fs::path(pack()) / (id + ".safetensors");
    PlainFile file = PlainFile::read(path);
    std::vector<double> values = values_of<double>(file.tensors.at(tensor));
    values.at(0) += 1.0;
    file.tensors.at(tensor) = f64_tensor(file.tensors.at(tensor).shape, values);
    const std::string before = sha256_hex(text_of(path));
    folder_.write("pack/" + id + ".safetensors", file.bytes());
    replace("index.jsonl", before, sha256_hex(file.bytes()));
    seal();
  }

  void replace(const std::string& name, const std::string& from, const std::string& to) const {
    std::string text = text_of(fs::path(pack()) / name);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << name << " has no " << from;
    folder_.write("pack/" + name, text.replace(at, from.size(), to));
  }

  void seal() const {
    std::string sums;
    for (const auto& [name, text] : contents_of(pack())) {
      if (name != "SHA256SUMS") sums += sha256_hex(text) + "  " + name + "\n";
    }
    folder_.write("pack/SHA256SUMS", sums);
  }

  TemporaryFolder folder_;
};

TEST_F(CliGolden, VerifiesAWholePack) {
  const CommandOutput text = attn_oracle({"golden", "verify", pack()});
  EXPECT_EQ(text.exit, 0) << text.err;
  EXPECT_EQ(text.out, "9 passed, 0 failed\n");
  const CommandOutput output = attn_oracle({"golden", "verify", pack(), "--json"});
  const Json document = document_of(output);
  expect_document_form(document, "golden", 0);
  EXPECT_EQ(keys_of(document), (std::vector<std::string>{"format", "version", "replay", "action",
                                                         "dir", "backend", "damage", "passed",
                                                         "failed", "skipped", "failures", "exit"}));
  EXPECT_EQ(document["action"], "verify");
  EXPECT_EQ(document["dir"], pack());
  EXPECT_EQ(document["backend"], nullptr);
  EXPECT_EQ(document["passed"], 9);
  EXPECT_EQ(document["damage"], Json::array());
  expect_replays(document, {});
}

TEST_F(CliGolden, DamageIsAFailureWithFileAndReason) {
  folder_.write("pack/merge-two_parts.safetensors", "short");
  folder_.write("pack/mla-absorbed.safetensors", "short");
  const CommandOutput text = attn_oracle({"golden", "verify", pack()});
  EXPECT_EQ(text.exit, 1);
  EXPECT_EQ(
      text.out,
      "merge-two_parts.safetensors: sha256 differs\nmla-absorbed.safetensors: sha256 differs\n"
      "7 passed, 2 failed\n");
  for (const char* backend : {"", "--backend=REFERENCE"}) {  // nothing runs then
    std::vector<std::string> words = {"golden", "verify", pack(), "--json"};
    if (*backend != '\0') words.emplace_back(backend);
    const CommandOutput output = attn_oracle(words);
    const Json document = document_of(output);
    expect_document_form(document, "golden", 1);
    EXPECT_EQ(output.exit, 1);
    EXPECT_EQ(document["damage"],
              Json::parse(R"([{"file":"merge-two_parts.safetensors","reason":"sha256 differs"},
                              {"file":"mla-absorbed.safetensors","reason":"sha256 differs"}])"));
    EXPECT_EQ(document["passed"], 7);
    EXPECT_EQ(document["failed"], 2);
  }
  expect_refused(attn_oracle({"golden", "list", pack()}),
                 pack() + "/merge-two_parts.safetensors: sha256 differs");
  expect_refused(attn_oracle({"golden", "show", pack(), "causal-first"}), "sha256 differs");
}

TEST_F(CliGolden, ABackendIsJudgedByThePack) {
  const CommandOutput reference =
      attn_oracle({"golden", "verify", pack(), "--backend", "REFERENCE", "--json"});
  const Json all = document_of(reference);
  expect_document_form(all, "golden", 0);
  EXPECT_EQ(reference.exit, 0);
  EXPECT_EQ(all["backend"], "REFERENCE");
  EXPECT_EQ(all["passed"], 10);  // and the relation
  EXPECT_EQ(all["failures"], Json::array());

  // Scores that may be off by more than 1: every mistrusted case is named.
  folder_.write("loose", std::string(R"({"logit": {"type": "f8_e5m2", "scale": "0x1p-20"}})"));
  const std::vector<std::string> loose = {"golden",     "verify",
                                          pack(),       "--backend=REFERENCE",
                                          "--contract", (folder_.path() / "loose").string()};
  const std::string named = attn_oracle(loose).out;
  std::vector<std::string> as_json = loose;
  as_json.emplace_back("--json");
  const Json mistrusting = document_of(attn_oracle(as_json));
  std::int64_t lines = 0;
  for (const std::string& line : lines_of(named)) {
    lines += line.find(" mistrusted: ") != std::string::npos;
  }
  EXPECT_GT(lines, 0);
  EXPECT_EQ(mistrusting["mistrusted"], lines) << named;
  EXPECT_NE(named.find("causal-first mistrusted: "), std::string::npos) << named;

  // CPU does not answer every operation: what it skips is no failure.
  const CommandOutput cpu = attn_oracle({"golden", "verify", pack(), "--backend", "CPU"});
  EXPECT_EQ(cpu.exit, 0) << cpu.out << cpu.err;
  EXPECT_EQ(cpu.out, "7 passed, 0 failed, 3 skipped\n");

  const CommandOutput missing = attn_oracle({"golden", "verify", pack(), "--backend", "CUBLAS"});
  EXPECT_EQ(missing.exit, 3);
  expect_refused(attn_oracle({"golden", "verify", pack(), "--backend", "NOBODY"}),
                 "unknown backend 'NOBODY'");
}

TEST_F(CliGolden, AnAnswerThatIsNotThePacksFails) {
  spoil_answer("merge-two_parts", "out");
  EXPECT_EQ(attn_oracle({"golden", "verify", pack()}).exit, 0);  // the pack itself cannot know
  const CommandOutput output =
      attn_oracle({"golden", "verify", pack(), "--backend", "REFERENCE", "--json"});
  EXPECT_EQ(output.exit, 1);
  const Json document = document_of(output);
  expect_document_form(document, "golden", 1);
  ASSERT_EQ(document["failures"].size(), 1U);
  const Json failure = document["failures"][0];
  EXPECT_EQ(keys_of(failure), (std::vector<std::string>{"id", "verdict", "gate", "reason"}));
  EXPECT_EQ(failure["id"], "merge-two_parts");
  EXPECT_EQ(failure["verdict"], "fail");
  EXPECT_EQ(failure["gate"], "bound");
  EXPECT_TRUE(failure["reason"].get<std::string>().starts_with("out[0,0,0] is off by "));
  EXPECT_EQ(document["failed"], 1);
  EXPECT_EQ(document["passed"], 9);
}

// float32 answers keep what CPU declares, not what float64 would allow.
TEST_F(CliGolden, ContractTakesThePlaceOfTheDeclaredOne) {
  std::vector<std::string> words = {"golden", "verify", pack(), "--backend", "CPU", "--json"};
  EXPECT_EQ(attn_oracle(words).exit, 0);
  words.insert(words.end(), {"--contract", "f64"});
  const CommandOutput output = attn_oracle(words);
  EXPECT_EQ(output.exit, 1);
  const Json document = document_of(output);
  EXPECT_EQ(document["passed"].get<int>() + document["failed"].get<int>(), 7);
  EXPECT_GE(document["failed"], 3);
  for (const Json& failure : document["failures"]) {
    EXPECT_EQ(failure["verdict"], "fail");
    EXPECT_EQ(failure["gate"], "bound");
  }
  expect_replays(document, {});

  folder_.write("wide.json", std::string(R"({"extends": "f64", "out": "bf16", "lse": "bf16"})"));
  words.back() = (folder_.path() / "wide.json").string();
  EXPECT_EQ(attn_oracle(words).exit, 0);
  words.back() = "f65";
  expect_refused(attn_oracle(words), "--contract is 'f65'");
  expect_refused(attn_oracle({"golden", "verify", pack(), "--contract", "f64"}), "--backend");
}

// Values of a pack are correctly rounded: an answer is allowed its own bound and half a unit in the
// last place, not the error of another evaluation. REFERENCE is not that good.
TEST_F(CliGolden, ThePacksOwnErrorIsHalfAUnit) {
  const std::string core = ATTN_CORE_PACK;
  folder_.write("rounded.json", std::string(kOnlyTheAnswerIsRounded));
  const Json document =
      document_of(attn_oracle({"golden", "verify", core, "--backend", "REFERENCE", "--json",
                               "--contract", (folder_.path() / "rounded.json").string()}));
  EXPECT_EQ(document["exit"], 1);
  EXPECT_GT(document["failed"], 50);
  for (const Json& failure : document["failures"]) EXPECT_EQ(failure["gate"], "bound");
}

TEST_F(CliGolden, ListsTheCases) {
  const Json document = document_of(attn_oracle({"golden", "list", pack(), "--json"}));
  expect_document_form(document, "golden", 0);
  EXPECT_EQ(document["action"], "list");
  ASSERT_EQ(document["cases"].size(), 9U);
  const Json window = document["cases"][8];
  EXPECT_EQ(window, (Json{{"id", "sliding_window-hnd"},
                          {"op", "attention"},
                          {"variant", "sliding_window"},
                          {"result", "valid"},
                          {"flags", {"poisoned"}},
                          {"bytes", fs::file_size(pack() + "/sliding_window-hnd.safetensors")}}));
  const CommandOutput text = attn_oracle({"golden", "list", pack()});
  EXPECT_EQ(text.exit, 0);
  EXPECT_EQ(lines_of(text.out).size(), 9U);
  EXPECT_EQ(lines_of(text.out)[8], "sliding_window-hnd attention sliding_window valid poisoned");
}

TEST_F(CliGolden, ShowsACase) {
  const std::string id = "sliding_window-hnd";
  const Json document = document_of(attn_oracle({"golden", "show", pack(), id, "--json"}));
  expect_document_form(document, "golden", 0);
  EXPECT_EQ(document["action"], "show");
  EXPECT_EQ(document["id"], id);
  EXPECT_EQ(
      document["requests"],
      Json::parse(R"([{"request":0,"query_len":2,"seq_len":3,"visible":[[[0,2]],[[1,3]]]}])"));
  const std::string file = pack() + "/" + id + ".safetensors";
  EXPECT_EQ(attn_oracle({"golden", "show", pack(), id}).out,
            attn_oracle({"show", "--case", file}).out);
  expect_refused(attn_oracle({"golden", "show", pack(), "nobody"}), "has no case 'nobody'");
  EXPECT_EQ(attn_oracle({"golden", "show", pack(), "merge-two_parts"}).exit, 3);
}

TEST_F(CliGolden, NoCommandTakesAnUnfinishedPack) {
  const std::string unfinished = (folder_.path() / "small-0.2.0.partial-1").string();
  fs::rename(pack(), unfinished);
  const std::string says = unfinished + ": is an unfinished pack";
  expect_refused(attn_oracle({"golden", "verify", unfinished}), says);
  expect_refused(attn_oracle({"golden", "list", unfinished}), says);
  expect_refused(attn_oracle({"golden", "show", unfinished, "causal-first"}), says);
  expect_refused(attn_oracle({"compare", "--cases", unfinished}), says);
  const std::string out = (folder_.path() / "out").string();
  expect_refused(attn_oracle({"run", "--cases", unfinished, "--backend", "CPU", "--out", out}),
                 says);
  expect_refused(attn_oracle({"golden", "make", "--out", unfinished}), says);
}

TEST_F(CliGolden, UsageErrorsAreRefused) {
  expect_refused(attn_oracle({"golden"}), "subcommand");
  expect_refused(attn_oracle({"golden", "verify"}), "dir");
  expect_refused(attn_oracle({"golden", "verify", pack(), "more"}), "more");
  expect_refused(attn_oracle({"golden", "make"}), "--out");
  expect_refused(attn_oracle({"golden", "make", "--out", ""}), "empty");
  expect_refused(attn_oracle({"golden", "make", "--out", pack()}), "exists and is not empty");
  expect_refused(attn_oracle({"golden", "make", "--out", "x", "--pack", "huge"}), "huge");
  expect_refused(attn_oracle({"golden", "verify", pack() + "-none"}), "No such file");
  EXPECT_EQ(attn_oracle({"golden", "--help"}).exit, 0);
  expect_refused(attn_oracle({"golden", "make", "--out", pack(), "--pack", "extended"}),
                 "exists and is not empty");
}

// The real pack: made twice it has the same bytes, and both backends agree with it.
TEST_F(CliGolden, MakesTheCorePack) {
  const std::string core = (folder_.path() / "core").string();
  const CommandOutput output = attn_oracle({"golden", "make", "--out", core, "--json"});
  ASSERT_EQ(output.exit, 0) << output.err;
  const Json document = document_of(output);
  expect_document_form(document, "golden", 0);
  EXPECT_EQ(keys_of(document),
            (std::vector<std::string>{"format", "version", "replay", "action", "pack", "dir",
                                      "cases", "bytes", "sha256sums", "exit"}));
  EXPECT_EQ(document["sha256sums"], sha256_hex(text_of(core + "/SHA256SUMS")));
  EXPECT_EQ(document["cases"], lines_of(text_of(core + "/index.jsonl")).size());

  const std::string again = (folder_.path() / "again").string();
  EXPECT_EQ(attn_oracle({"golden", "make", "--out", again, "--threads", "3", "--quiet"}).exit, 0);
  EXPECT_TRUE(contents_of(again) == contents_of(core));
  for (const char* backend : {"REFERENCE", "CPU"}) {
    const CommandOutput verified =
        attn_oracle({"golden", "verify", core, "--backend", backend, "--json"});
    EXPECT_EQ(verified.exit, 0) << backend << verified.out;
    EXPECT_EQ(document_of(verified)["failed"], 0) << verified.out;
  }
}

}  // namespace
}  // namespace attn
