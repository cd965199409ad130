// attn-oracle select --backend-file
#include <fstream>

#include "tests/cli_expectations.h"

namespace attn {
namespace {

using Words = std::vector<std::string>;

constexpr const char* kExample =
    R"({"format":"attn-backend-file/1","name":"MY_ATTN","module":"my.attn","class":"MyBackend",)"
    R"("priority":0,"platforms":["cuda"],"dtypes":["bfloat16"],)"
    R"("head_rule":{"min":64,"max":256,"multiple_of":8},"kernel_block_sizes":[{"multiple_of":16}],)"
    R"("flags":{"supports_sink":true},)"
    R"("combination_rules":[{"field":"has_sink","equals":true,"reason":"no sinks yet"}]})";

std::string file_with(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::temp_directory_path() / ("attn_backend_" + name + ".json");
  std::ofstream(path) << text;
  return path.string();
}

Words asked(const std::string& file, const Words& more) {
  Words words = {"select", "--platform", "cuda",     "--capability",   "9.0", "--head-size",
                 "128",    "--dtype",    "bfloat16", "--backend-file", file};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(BackendFileFlag, ADescribedBackendJoinsSelection) {
  const std::string file = file_with("example", kExample);
  EXPECT_EQ(attn_oracle(asked(file, {})).out, "MY_ATTN my.attn.MyBackend\n");
  const Json document = document_of(attn_oracle(asked(file, {"--has-sink", "--json"})));
  expect_document_form(document, "select", 0);
  EXPECT_EQ(document["outcome"]["backend"], "FLASH_ATTN");
  EXPECT_EQ(document["candidates"][0], Json::parse(R"(["MY_ATTN",["no sinks yet"]])"));
  expect_replays(document, {});
  const CommandOutput refused = attn_oracle(asked(file, {"--has-sink", "--backend", "MY_ATTN"}));
  EXPECT_EQ(refused.exit, 1);
  EXPECT_EQ(refused.out,
            "ValueError: Selected backend AttentionBackendEnum.MY_ATTN is not valid for this "
            "configuration. Reason: ['no sinks yet']\n");
}

TEST(BackendFileFlag, MayBeRepeated) {
  const std::string first = file_with("first", kExample);
  std::string other = kExample;
  other.replace(other.find("MY_ATTN"), 7, "ANOTHER");
  const Words more = {"--backend-file", file_with("other", other), "--backend", "ANOTHER"};
  EXPECT_EQ(attn_oracle(asked(first, more)).out, "ANOTHER my.attn.MyBackend\n");
  expect_refused(attn_oracle(asked(first, {"--backend-file", first})), "already exists");
}

TEST(BackendFileFlag, RefusesWhatIsNoDescription) {
  expect_refused(attn_oracle(asked("absent.json", {})), "absent.json");
  const std::string taken =
      std::string(kExample).replace(std::string(kExample).find("MY_ATTN"), 7, "FLASHMLA");
  expect_refused(attn_oracle(asked(file_with("taken", taken), {})), "FLASHMLA already exists");
  expect_refused(attn_oracle(asked(file_with("broken", "{"), {})), "broken");
  const std::string unknown =
      std::string(kExample).replace(std::string(kExample).find("priority"), 8, "priorite");
  expect_refused(attn_oracle(asked(file_with("unknown", unknown), {})), "priorite");
  expect_refused(attn_oracle({"select", "--table", "t.jsonl", "--backend-file", "x.json"}),
                 "--backend-file");
}

}  // namespace
}  // namespace attn
