// attn-oracle select --platform own, described names as --backend, and what a machine is found to
// be
#include "tests/cli_expectations.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

Words own(const Words& more) {
  Words words = {"select", "--platform", "own", "--head-size", "128", "--dtype", "bfloat16"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(SelectOwn, ChoosesAmongWhatRunsHere) {
  const Json document = document_of(attn_oracle(own({"--json"})));
  expect_document_form(document, "select", 0);
  EXPECT_EQ(document["platform"], "own");
  EXPECT_EQ(document["outcome"]["path"], "attn_oracle.CPU");
  EXPECT_EQ(document["outcome"]["backend"], "CPU");
  EXPECT_EQ(document["candidates"].front(), (Json{"CPU", Json::array()}));
  EXPECT_EQ(document["candidates"].back(), (Json{"REFERENCE", Json::array()}));
  EXPECT_TRUE(document["env"].contains("cpu_arch"));
  expect_replays(document, {});
  EXPECT_EQ(attn_oracle(own({})).out, "CPU attn_oracle.CPU\n");
}

TEST(SelectOwn, GoesOnToTheNextWithReasons) {
  const CommandOutput output = attn_oracle(own({"--use-dcp", "--explain"}));
  EXPECT_EQ(output.exit, 0) << output.err;
  EXPECT_EQ(output.out,
            "REFERENCE attn_oracle.REFERENCE\n"
            "  CPU: DCP not supported\n"
            "  REFERENCE: valid\n");
}

TEST(SelectOwn, NobodyIsOneAndNamesEveryReason) {
  const CommandOutput output = attn_oracle(own({"--use-pcp", "--use-dcp"}));
  EXPECT_EQ(output.exit, 1);
  EXPECT_NE(output.out.find("Reasons: {CPU: [PCP not supported, DCP not supported], REFERENCE: "
                            "[PCP not supported]}."),
            std::string::npos)
      << output.out;
}

TEST(SelectOwn, ARequestIsNotReplaced) {
  EXPECT_EQ(attn_oracle(own({"--backend", "REFERENCE"})).out, "REFERENCE attn_oracle.REFERENCE\n");
  const CommandOutput absent = attn_oracle(own({"--backend", "CUBLAS"}));
  EXPECT_EQ(absent.exit, 1);
  EXPECT_EQ(absent.out.substr(0, absent.out.find('.')),
            "ValueError: Selected backend CUBLAS is not valid for this configuration");
}

TEST(SelectOwn, RefusesWhatItDetectsAndWhatOnlyDescribes) {
  expect_refused(attn_oracle(own({"--capability", "9.0"})), "capability");
  expect_refused(attn_oracle(own({"--backend", "FLASH_ATTN"})),
                 "FLASH_ATTN only describes; it cannot run");
  expect_refused(attn_oracle(own({"--backend", "NOBODY"})), "NOBODY");
  expect_refused(attn_oracle(own({"--backend-file", "absent.json"})), "own");
  expect_refused(attn_oracle(own({"--env", "fa_bilt=[2]"})), "fa_bilt");
}

TEST(DescribedBackend, CannotRun) {
  const std::string out = std::filesystem::temp_directory_path() / "attn_described.safetensors";
  for (const char* name : {"FLASH_ATTN", "TRITON_MLA", "CPU_ATTN"}) {
    expect_refused(attn_oracle({"run", "--case", third_party("hand_made/H01-w1.safetensors"),
                                "--backend", name, "--out", out}),
                   std::string(name) + " only describes; it cannot run");
  }
}

TEST(ListCommand, FactsSayWhatThisMachineHas) {
  const Json document = document_of(attn_oracle({"list", "facts", "--json"}));
  expect_document_form(document, "list", 0);
  EXPECT_EQ(keys_of(document), (Words{"format", "version", "replay", "topic", "platform",
                                      "capability", "items", "exit"}));
  EXPECT_EQ(document["capability"].is_null(), document["platform"] == "cpu");
  Words detected;
  for (const Json& item : document["items"]) {
    if (!item["detected"].is_null()) detected.push_back(item["name"]);
  }
  EXPECT_EQ(detected, (Words{"cpu_arch", "cpu_amx_tile", "cpu_avx512"}));
  const std::string text = attn_oracle({"list", "facts"}).out;
  EXPECT_TRUE(text.starts_with("platform ")) << text;
  EXPECT_NE(text.find("  here "), std::string::npos) << text;
}

}  // namespace
}  // namespace attn
