// attn-oracle compare --cases
#include "tests/case_folder_writer.h"
#include "tests/cli_expectations.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class CompareFolder : public testing::Test {
 protected:
  CompareFolder() : in_(folder_.path() / "in") {
    fs::create_directory(folder_.path() / "out");
    setting_.folder = folder_.path();
  }

  CommandOutput stored(const Words& more = {}) const {
    Words words = {"compare", "--cases", "in"};
    words.insert(words.end(), more.begin(), more.end());
    return attn_oracle(words, setting_);
  }
  CommandOutput actual(const Words& more = {}) const {
    Words words = {"--actual", "out"};
    words.insert(words.end(), more.begin(), more.end());
    return stored(words);
  }

  void answer(const std::string& id, const PlainFile& file) const {
    folder_.write("out/" + id + ".safetensors", file.bytes());
  }

  // A case whose row 1 of out is off by `error` in the stored answer.
  static CountingCase with_stored(const std::string& id, double error) {
    CountingCase made;
    made.id = id;
    std::vector<double> out = made.expected_out();
    out[1] += error;
    made.stored["out"] = f64_tensor({2, 1, 1}, out);
    made.stored["lse"] = f64_tensor({1, 2}, made.expected_lse());
    return made;
  }
  static CountingCase made(const std::string& id) {
    CountingCase made;
    made.id = id;
    return made;
  }

  static std::string counts(const CommandOutput& output) { return lines_of(output.out).back(); }

  TemporaryFolder folder_;
  CommandSetting setting_;
  CaseFolderWriter in_;
};

TEST_F(CompareFolder, JudgesStoredAnswers) {
  in_.add(with_stored("a", 0.0));
  in_.add(with_stored("b", 0x1p-52));  // within a float64's rounding errors
  in_.add_third_party("jax", "jax-gqa-f64");
  in_.add_third_party("vllm_cpu", "vllm_cpu-causal-decode-bf16");
  const CommandOutput good = stored();
  EXPECT_EQ(good.exit, 0) << good.out;
  EXPECT_EQ(good.out, "4 passed, 0 failed\n");

  in_.add(with_stored("c", 1e-13));  // beyond; it would be within any tolerance
  in_.add(with_stored("d", -1e-13));
  const CommandOutput bad = stored();
  EXPECT_EQ(bad.exit, 1);
  EXPECT_EQ(counts(bad), "4 passed, 2 failed");
  EXPECT_NE(bad.out.find("c fail: out[1,0,0]"), std::string::npos) << bad.out;
}

TEST_F(CompareFolder, CaseWithoutAnswerIsSkipped) {
  in_.add(with_stored("a", 0.0));
  in_.add(made("b"));
  in_.add(made("c"));
  in_.add_third_party("hand_made", "format-invalid-heads");
  const CommandOutput output = stored();
  EXPECT_EQ(output.exit, 3);
  EXPECT_EQ(output.out,
            "b and 1 more skipped: no stored answer\n"
            "format-invalid-heads skipped: the case is invalid\n"
            "1 passed, 0 failed, 3 skipped\n");
}

TEST_F(CompareFolder, JsonStreamIsHeaderCasesSummary) {
  in_.add(with_stored("a", 0.0));
  in_.add(with_stored("b", 0.5));
  in_.add_third_party("hand_made", "format-invalid-heads");
  const CommandOutput output = stored({"--json"});
  EXPECT_EQ(output.exit, 1);
  EXPECT_EQ(output.err, "");
  const Words lines = lines_of(output.out);
  ASSERT_EQ(lines.size(), 5U);
  const Json header = Json::parse(lines[0]);
  EXPECT_EQ(keys_of(header), (Words{"format", "version", "replay"}));
  EXPECT_EQ(header["format"], "attn-compare/1");
  const Json right = Json::parse(lines[1]);
  const Words keys = {"id",      "backend", "contract",  "verdict",  "gate", "reason",
                      "tensors", "strict",  "telemetry", "policies", "plain"};
  EXPECT_EQ(keys_of(right), keys);
  EXPECT_EQ(right["id"], "a");
  EXPECT_EQ(right["backend"], nullptr);
  EXPECT_EQ(right["contract"], "f64");
  EXPECT_EQ(right["verdict"], "pass");
  EXPECT_EQ(right["plain"]["verdict"], "pass");
  const Json wrong = Json::parse(lines[2]);
  EXPECT_EQ(wrong["verdict"], "fail");
  EXPECT_EQ(wrong["gate"], "bound");
  EXPECT_EQ(wrong["plain"]["verdict"], "fail");
  EXPECT_EQ(wrong["tensors"]["out"]["over"], 1);
  EXPECT_EQ(wrong["tensors"]["out"]["worst"]["at"], Json::array({1, 0, 0}));
  const Json invalid = Json::parse(lines[3]);
  EXPECT_EQ(keys_of(invalid), keys);
  EXPECT_EQ(invalid["verdict"], "skipped");
  EXPECT_EQ(invalid["contract"], nullptr);
  EXPECT_EQ(lines[4], R"({"summary":{"cases":3,"passed":1,"failed":1,"skipped":1,"exit":1}})");
  EXPECT_EQ(shell(header["replay"], setting_).out, output.out);
}

TEST_F(CompareFolder, JudgesWhatRunWrote) {
  for (const char* id : {"H01-w1", "H03", "H10a-splits2-with", "H16-prefill-nan"}) {
    in_.add_third_party("hand_made", id);
  }
  in_.add_third_party("vllm", "quant-nvfp4-0");
  for (const char* backend : {"REFERENCE", "CPU"}) {
    ASSERT_EQ(
        attn_oracle({"run", "--cases", "in", "--backend", backend, "--out", "out"}, setting_).exit,
        0);
    const CommandOutput output = actual();
    EXPECT_EQ(output.exit, 0) << output.out;
    EXPECT_EQ(output.out, "5 passed, 0 failed\n");
    const Json first = Json::parse(lines_of(actual({"--json"}).out).at(1));
    EXPECT_EQ(first["backend"], backend);
  }
}

TEST_F(CompareFolder, FindsOneWrongBit) {
  in_.add(made("a"));
  in_.add(made("b"));
  answer("a", made("a").answer());
  PlainFile spoiled = made("b").answer();
  spoiled.tensors["out"].bytes[6] ^= 1;  // a high bit of the mantissa of out[0,0,0]
  answer("b", spoiled);
  const CommandOutput output = actual();
  EXPECT_EQ(output.exit, 1);
  EXPECT_EQ(counts(output), "1 passed, 1 failed");
  EXPECT_NE(output.out.find("b fail: out[0,0,0]"), std::string::npos) << output.out;
}

// The contract is what `compare --case` takes, not that of the row's precision: no float32 answer
// is as good as the row's f64.
TEST_F(CompareFolder, ContractFollowsTheAnswersType) {
  in_.add(made("a"));
  PlainFile y = made("a").answer();
  const auto contract = [&] {
    return Json::parse(lines_of(actual({"--json"}).out).at(1))["contract"];
  };
  y.tensors["out"] = f32_tensor({2, 1, 1}, {1.5F, 2.0F + 0x1p-22F});
  answer("a", y);
  EXPECT_EQ(actual().exit, 0);
  EXPECT_EQ(contract(), "fp32");
  y.tensors["out"] = f64_tensor({2, 1, 1}, {1.5, 2.0 + 0x1p-22});
  answer("a", y);
  EXPECT_EQ(actual().exit, 1);
  EXPECT_EQ(contract(), "f64");
  EXPECT_EQ(actual({"--contract", "fp32"}).exit, 0);
  y.metadata["backend"] = "CPU";  // which declares fp32
  answer("a", y);
  EXPECT_EQ(actual().exit, 0);
  y.tensors["out"] = f32_tensor({2, 1, 1}, {1.5F, 2.0002F});
  answer("a", y);
  EXPECT_EQ(actual().exit, 1);
  EXPECT_EQ(actual({"--contract", "bf16_flash"}).exit, 0);
}

TEST_F(CompareFolder, ContractOfStoredAnswersFollowsTheirSource) {
  struct Expected {
    const char* source;
    const char* id;
    Json contract;
    Json overrides;
  };
  const std::vector<Expected> all = {
      {"torch", "torch_flex-g7-d24", "f64", nullptr},
      {"hand_made", "H01-w1", nullptr, nullptr},          // six digits: by tolerance
      {"vllm", "vllm_triton-cache-f32", "f64", nullptr},  // precision exact
      {"vllm_cpu", "vllm_cpu-causal-decode-bf16", "bf16_flash", nullptr},
      {"vllm_cpu", "vllm_cpu-causal-decode-f16", "f16_flash", nullptr},
      {"vllm", "vllm_triton-fp8_per_token_head-decode", "f16_flash", {{"out", "f16"}}},
      {"onnx", "onnx-1_18_0-4d", "fp32", {{"out", "f32"}, {"lse", "f32"}}},
      {"onnx",
       "onnx-1_23_2-4d_causal_padded_kv_bf16",
       "bf16_unfused",
       {{"out", "bf16"}, {"lse", "f32"}}},
  };
  for (const Expected& one : all) in_.add_third_party(one.source, one.id);
  const Words lines = lines_of(stored({"--json"}).out);
  ASSERT_EQ(lines.size(), all.size() + 2);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json line = Json::parse(lines[i + 1]);
    EXPECT_EQ(line["verdict"], "pass") << all[i].id;
    EXPECT_EQ(line["contract"], all[i].contract) << all[i].id;
    EXPECT_EQ(line.value("overrides", Json()), all[i].overrides) << all[i].id;
    EXPECT_FALSE(line["tensors"].empty()) << all[i].id;
  }
}

// Six digits are no float64 answer, but what the source says it is.
TEST_F(CompareFolder, HandwrittenAnswersAreJudgedByTheirTolerance) {
  in_.add_third_party("hand_made", "H10a-splits1-with");
  EXPECT_EQ(counts(stored()), "1 passed, 0 failed");
  EXPECT_EQ(counts(stored({"--contract", "bf16_flash"})), "1 passed, 0 failed");
  EXPECT_EQ(counts(stored({"--contract", "f64"})), "0 passed, 1 failed");
}

TEST_F(CompareFolder, MistrustedAloneIsNoPass) {
  CountingCase constant = made("constant");
  constant.requests = {{1, 3}, {1, 3}};
  in_.add(constant);
  answer("constant", constant.answer());
  const CommandOutput alone = actual();
  EXPECT_EQ(alone.exit, 1);
  EXPECT_EQ(alone.out,
            "constant mistrusted: the expected answer is the same everywhere\n"
            "0 passed, 0 failed, 1 skipped\n");

  in_.add(made("a"));
  answer("a", made("a").answer());
  const CommandOutput both = actual({"--json"});
  EXPECT_EQ(both.exit, 0);
  EXPECT_EQ(lines_of(both.out).back(),
            R"({"summary":{"cases":2,"passed":1,"failed":0,"skipped":1,"mistrusted":1,"exit":0}})");
  const CommandOutput strict = actual({"--strict"});
  EXPECT_EQ(strict.exit, 1);
  EXPECT_EQ(counts(strict), "1 passed, 1 failed");

  in_.add(made("b"));  // not answered
  EXPECT_EQ(actual().exit, 3);
  EXPECT_EQ(counts(actual()), "1 passed, 0 failed, 2 skipped");
}

// Off by more than 4096 independent roundings, by less than as many to the same side.
TEST_F(CompareFolder, StrictIsAlsoTheProbableBound) {
  CountingCase long_row = made("long");
  long_row.requests = {{2, 4096}};
  in_.add(long_row);
  PlainFile y = long_row.answer();
  std::vector<double> out = long_row.expected_out();
  out[1] += 0.25;
  y.tensors["out"] = f64_tensor({2, 1, 1}, out);
  answer("long", y);
  EXPECT_EQ(counts(actual({"--contract", "fp32"})), "1 passed, 0 failed");
  EXPECT_EQ(counts(actual({"--contract", "fp32", "--strict"})), "0 passed, 1 failed");
}

TEST_F(CompareFolder, MissingAnswersAreSkippedAndUnreadableOnesFail) {
  for (const char* id : {"a", "b", "c", "d", "e"}) in_.add(made(id));
  answer("a", made("a").answer());
  folder_.write("out/b.safetensors", std::string("not a result"));
  folder_.write("out/c.safetensors", made("c").bytes());
  PlainFile shapeless = made("d").answer();
  shapeless.tensors["out"] = f64_tensor({1, 1, 1}, {1.5});
  answer("d", shapeless);
  const CommandOutput output = actual();
  EXPECT_EQ(output.exit, 1);
  EXPECT_EQ(counts(output), "1 passed, 3 failed, 1 skipped");
}

TEST_F(CompareFolder, NoAnswerAtAllIsThree) {
  in_.add(made("a"));
  EXPECT_EQ(actual().exit, 3);
  EXPECT_EQ(counts(actual()), "0 passed, 0 failed, 1 skipped");
}

TEST_F(CompareFolder, RelationsAreBitForBit) {
  CountingCase longer = made("longer");
  longer.requests = {{1, 3}, {2, 3}};
  in_.add(made("short"));
  in_.add(longer);
  in_.add_relation({{"short", 0, 2}, {"longer", 1, 2}});
  answer("short", made("short").answer());
  answer("longer", longer.answer());
  const CommandOutput same = actual();
  EXPECT_EQ(same.exit, 0) << same.out;
  EXPECT_EQ(counts(same), "3 passed, 0 failed");
  EXPECT_EQ(counts(stored()), "0 passed, 0 failed, 2 skipped") << "relations need --actual";

  PlainFile off = longer.answer();
  off.tensors["out"].bytes[2 * 8] ^= 1;  // the last bit of out[2,0,0], far below any tolerance
  answer("longer", off);
  const CommandOutput broken = actual();
  EXPECT_EQ(broken.exit, 1);
  EXPECT_EQ(counts(broken), "2 passed, 1 failed");
  EXPECT_NE(broken.out.find("relation the same rows fail: longer differs from short"),
            std::string::npos)
      << broken.out;

  off = longer.answer();
  off.tensors["out"].bytes[0] ^= 1;  // a row that the relation does not name
  answer("longer", off);
  EXPECT_EQ(actual().exit, 0);

  fs::remove(folder_.path() / "out/longer.safetensors");
  EXPECT_EQ(counts(actual()), "1 passed, 0 failed, 2 skipped");
}

TEST_F(CompareFolder, RelationOfRowsThatDoNotExistFails) {
  in_.add(made("a"));
  in_.add_relation({{"a", 0, 1}, {"a", 1, 2}});
  answer("a", made("a").answer());
  const CommandOutput output = actual();
  EXPECT_EQ(output.exit, 1);
  EXPECT_NE(output.out.find("rows [1, 3)"), std::string::npos) << output.out;
}

TEST_F(CompareFolder, BadUsageIsTwo) {
  in_.add(made("a"));
  folder_.write("file", std::string("x"));
  expect_refused(stored({"--actual", "file"}), "file: not a folder");
  expect_refused(stored({"--actual", "missing"}), "missing: not a folder");
  expect_refused(stored({"--actual", ""}), "--actual");
  expect_refused(stored({"--atol", "1"}), "--atol");
  expect_refused(stored({"--rtol", "1"}), "--rtol");
  expect_refused(stored({"--contract", "file"}), "file");
  expect_refused(stored({"--contract", "fp31", "--json"}), "--contract is 'fp31'");
  expect_refused(attn_oracle({"compare", "--cases", "missing"}, setting_), "missing/index.jsonl");
}

TEST_F(CompareFolder, WrittenCachesAreBitForBit) {
  for (const char* id : {"vllm_triton-cache-f32", "vllm_triton-cache-int8_per_token_head"}) {
    in_.add_third_party("vllm", id);
  }
  EXPECT_EQ(stored().exit, 0) << stored().out;
  ASSERT_EQ(
      attn_oracle({"run", "--cases", "in", "--backend", "REFERENCE", "--out", "out"}, setting_)
          .exit,
      0);
  EXPECT_EQ(counts(actual()), "2 passed, 0 failed");
  for (const char* id : {"vllm_triton-cache-f32", "vllm_triton-cache-int8_per_token_head"}) {
    const fs::path path = folder_.path() / "out" / (std::string(id) + ".safetensors");
    const std::string right = text_of(path);
    PlainFile wrong = PlainFile::read(path);
    wrong.tensors.at("key_cache_after").bytes.back() ^= 1;
    answer(id, wrong);
    EXPECT_EQ(counts(actual()), "1 passed, 1 failed") << id;
    folder_.write("out/" + std::string(id) + ".safetensors", right);
  }
}

TEST_F(CompareFolder, QuietLeavesTheCounts) {
  in_.add(with_stored("a", 0.5));
  EXPECT_EQ(stored({"--quiet"}).out, "0 passed, 1 failed\n");
}

}  // namespace
}  // namespace attn
