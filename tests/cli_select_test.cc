// attn-oracle select, list described, list facts
#include <fstream>
#include <set>

#include "tests/cli_expectations.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

// A request that every test varies.
Words asked(const Words& more) {
  Words words = {"select",   "--platform",      "cuda",        "--capability",
                 "9.0",      "--head-size",     "128",         "--dtype",
                 "bfloat16", "--use-mm-prefix", "--num-heads", "32"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words with_json(Words words) {
  words.push_back("--json");
  return words;
}

TEST(SelectCommand, AnswersAsVllm) {
  const Words words = with_json(asked({"--env", "fa_built=[2,3]"}));
  const CommandOutput output = attn_oracle(words);
  EXPECT_EQ(output.exit, 0) << output.err;
  const Json document = document_of(output);
  expect_document_form(document, "select", 0);
  EXPECT_EQ(document["capability"], Json({9, 0}));
  EXPECT_EQ(document["requested"], nullptr);
  EXPECT_EQ(document["env"]["fa_built"], Json({2, 3}));
  EXPECT_EQ(document["outcome"]["backend"], "TRITON_ATTN");
  EXPECT_EQ(document["logs"][0][1],
            "Using TRITON_ATTN attention backend out of potential backends: ['TRITON_ATTN', "
            "'FLEX_ATTENTION'].");
  EXPECT_EQ(document["candidates"].size(), 6U);
  expect_replays(document, {});
}

TEST(SelectCommand, TextIsTheBackendAndItsPath) {
  const CommandOutput output = attn_oracle(asked({"--env=fa_built=[2,3]"}));
  EXPECT_EQ(output.out,
            "TRITON_ATTN vllm.v1.attention.backends.triton_attn.TritonAttentionBackend\n");
  EXPECT_TRUE(output.err.starts_with("info: Using TRITON_ATTN")) << output.err;
  EXPECT_EQ(attn_oracle(asked({"--quiet"})).err, "");
}

TEST(SelectCommand, ExplainListsEveryCandidate) {
  const CommandOutput output = attn_oracle(asked({"--explain", "--backend", "FLASHMLA"}));
  EXPECT_EQ(output.exit, 1);
  EXPECT_EQ(lines_of(output.out).size(), 2U) << output.out;
  EXPECT_NE(output.out.find("  FLASHMLA: head_size not supported; partial multimodal"),
            std::string::npos)
      << output.out;
}

TEST(SelectCommand, WhatVllmRaisesIsOne) {
  const CommandOutput output = attn_oracle({"select", "--platform=cpu", "--head-size=64",
                                            "--dtype=float32", "--use-sparse=true", "--json"});
  EXPECT_EQ(output.exit, 1);
  EXPECT_EQ(document_of(output)["outcome"],
            Json::parse(R"({"error":"NotImplementedError",)"
                        R"("text":"Sparse Attention is not supported on CPU."})"));
}

TEST(SelectCommand, PerKindRequestAppliesToItsKind) {
  const Words kind = {"--backend", "FLASH_ATTN", "--backend-per-kind",
                      "sliding_window=FLEX_ATTENTION"};
  EXPECT_EQ(document_of(attn_oracle(with_json(asked(kind))))["requested"], "FLASH_ATTN");
  Words sliding = kind;
  sliding.push_back("--has-sliding-window");
  EXPECT_EQ(document_of(attn_oracle(with_json(asked(sliding))))["requested"], "FLEX_ATTENTION");
}

TEST(SelectCommand, RunMakesTheConfig) {
  const Json document = document_of(attn_oracle(
      with_json(asked({"--run", "user_specified_block_size=true", "--run", "block_size=64", "--run",
                       "dcp_size=2", "--run", "backend=TRITON_ATTN"}))));
  EXPECT_EQ(document["config"]["block_size"], 64);
  EXPECT_EQ(document["config"]["use_dcp"], true);
  EXPECT_EQ(document["requested"], "TRITON_ATTN");
}

TEST(SelectCommand, FlagsOverrideTheConfigFile) {
  const auto path = std::filesystem::temp_directory_path() / "attn_select_config.json";
  std::ofstream(path) << R"({"platform":"cuda","capability":[10,0],"num_heads":8,)"
                         R"("config":{"head_size":64,"dtype":"float16"},"env":{"fa_built":[2]}})";
  const Words words = {"select", "--config", path.string(), "--capability", "9.0", "--json"};
  const Json document = document_of(attn_oracle(words));
  EXPECT_EQ(document["capability"], Json({9, 0}));
  EXPECT_EQ(document["config"]["head_size"], 64);
  EXPECT_EQ(document["outcome"]["backend"], "FLASH_ATTN");
}

TEST(SelectCommand, MambaTypeHasItsOwnRegistry) {
  const Words words = {"select", "--mamba-type", "LINEAR", "--json"};
  EXPECT_EQ(document_of(attn_oracle(words))["outcome"]["get_name"], "LINEAR_ATTN");
  const CommandOutput invariant =
      attn_oracle({"select", "--mamba-type", "LINEAR", "--env", "batch_invariant=true"});
  EXPECT_EQ(invariant.exit, 1);
  EXPECT_EQ(invariant.out,
            "RuntimeError: VLLM batch_invariant mode is not supported for LINEAR_ATTN.\n");
  expect_refused(attn_oracle({"select", "--mamba-type", "MAMBA3"}), "Unknown attention backend");
}

TEST(SelectCommand, RefusesWhatNobodyKnows) {
  expect_refused(attn_oracle(asked({"--backend", "flash_attn"})),
                 "Unknown attention backend: 'flash_attn'. Valid options are: FLASH_ATTN,");
  expect_refused(attn_oracle(asked({"--kv-cache-dtype", "fp9"})),
                 "Invalid kv_cache_dtype: fp9. Valid values are: ['auto',");
  expect_refused(attn_oracle(asked({"--env", "fa_bilt=[2]"})), "unknown fact \"fa_bilt\"");
  expect_refused(attn_oracle(asked({"--env", "b12x=maybe"})), "maybe");
  expect_refused(attn_oracle(asked({"--env", "fa_built"})), "NAME=VALUE");
  expect_refused(attn_oracle(asked({"--run", "tp_size=2"})), "tp_size");
  expect_refused(attn_oracle(asked({"--use-dcp", "--run", "dcp_size=2"})), "use_dcp");
  expect_refused(attn_oracle(asked({"--env", "dcp_size=2", "--run", "dcp_size=2"})), "dcp_size");
  expect_refused(attn_oracle(asked({"--backend-per-kind", "full=FLASH_ATTN"})), "kind");
  expect_refused(
      attn_oracle({"select", "--platform", "tpu", "--head-size", "64", "--dtype", "float16"}),
      "tpu");
  expect_refused(
      attn_oracle({"select", "--platform", "cuda", "--head-size", "64", "--dtype", "float16"}),
      "needs a capability");
  expect_refused(attn_oracle({"select", "--platform", "cpu", "--capability", "9.0", "--head-size",
                              "64", "--dtype", "float16"}),
                 "capability");
  expect_refused(attn_oracle({"select", "--platform", "cpu", "--head-size", "64"}), "dtype");
  expect_refused(attn_oracle(asked({"--head-size", "64"})), "--head-size");
}

std::string table(const std::string& file) { return ATTN_SELECTOR_TABLES "/" + file; }

TEST(SelectCommand, ReplaysATable) {
  const CommandOutput output = attn_oracle({"select", "--table", table("mamba_select.json")});
  EXPECT_EQ(output.exit, 0) << output.err;
  EXPECT_EQ(output.out, "12 passed, 0 failed\n");
  const Json document =
      document_of(attn_oracle({"select", "--table", table("select_cpu.jsonl"), "--json"}));
  expect_document_form(document, "select", 0);
  EXPECT_EQ(document["table"], "select_cpu");
  EXPECT_EQ(document["rows"], 199);
  EXPECT_EQ(document["passed"], 199);
  EXPECT_EQ(document["first"], Json::array());
}

TEST(SelectCommand, AnswersAreOneLineARow) {
  const auto path = std::filesystem::temp_directory_path() / "attn_select_answers.jsonl";
  const CommandOutput output = attn_oracle(
      {"select", "--table", table("registry.json"), "--answers", path.string(), "--quiet"});
  EXPECT_EQ(output.out, "62 passed, 0 failed\n") << output.err;
  const std::vector<std::string> lines = lines_of(text_of(path));
  ASSERT_EQ(lines.size(), 62U);
  const Json line = Json::parse(lines[4]);
  EXPECT_EQ(keys_of(line), (Words{"line", "at", "pass", "answer"}));
  EXPECT_EQ(line["line"], 5);
  EXPECT_EQ(line["at"], "/registry/steps/0");
  EXPECT_EQ(line["pass"], true);
  EXPECT_EQ(line["answer"]["error"], "ValueError");
}

TEST(SelectCommand, AWrongRowIsOneAndAMissingTableTwo) {
  const auto path = std::filesystem::temp_directory_path() / "attn_select_table.jsonl";
  std::ofstream(path) << R"({"format":"attn-selector-table/1","vllm_version":"0.33.0",)"
                         R"("table":"spec_kind","platform":"cuda","environment":{},"rows":1})"
                      << "\n"
                      << R"({"use_mla":true,"has_sliding_window":false,"attn_type":"decoder",)"
                         R"("result":"full_attention"})"
                      << "\n";
  const CommandOutput output = attn_oracle({"select", "--table", path.string()});
  EXPECT_EQ(output.exit, 1);
  EXPECT_EQ(output.out,
            "line 2 /result: expected \"full_attention\", got \"mla_attention\"\n"
            "0 passed, 1 failed\n");
  expect_refused(attn_oracle({"select", "--table", "absent.jsonl"}), "absent.jsonl");
  expect_refused(attn_oracle({"select", "--table", path.string(), "--use-mla"}), "--use-mla");
}

TEST(ListCommand, DescribedBackendsHaveTheirPaths) {
  const Json document = document_of(attn_oracle({"list", "described", "--json"}));
  std::set<std::string> names;
  for (const Json& item : document["items"]) {
    EXPECT_EQ(keys_of(item), (Words{"name", "path", "platforms", "mla", "sparse"}));
    names.insert(item["name"]);
  }
  EXPECT_EQ(names.size(), 47U);  // all members but TORCH_SDPA, NO_ATTENTION and CUSTOM
  EXPECT_TRUE(names.contains("ROCM_OCTAVE"));
}

TEST(ListCommand, FactsHaveDefaults) {
  const Json document = document_of(attn_oracle({"list", "facts", "--json"}));
  EXPECT_EQ(document["items"].size(), 31U);
  for (const Json& item : document["items"]) {
    EXPECT_EQ(keys_of(item),
              (Words{"name", "type", "default", "detected", "platforms", "meaning"}));
    EXPECT_NE(item["meaning"], "") << item["name"];
  }
  EXPECT_EQ(document["items"][0]["name"], "fa_built");
  EXPECT_EQ(document["items"][0]["default"], Json({2, 3, 4}));
}

}  // namespace
}  // namespace attn
