// attn-oracle route --table
#include <filesystem>
#include <fstream>
#include <utility>

#include "tests/cli_expectations.h"

namespace attn {
namespace {

std::string composite_table(const std::string& file) { return ATTN_COMPOSITE_TABLES "/" + file; }

TEST(RouteTable, EveryTablePasses) {
  const struct {
    const char* file;
    const char* line;
  } tables[] = {{"capabilities.jsonl", "152 passed, 0 failed\n"},
                {"routing.jsonl", "1129 passed, 0 failed\n"},
                {"metadata.jsonl", "1909 passed, 0 failed\n"}};
  for (const auto& one : tables) {
    const CommandOutput output = attn_oracle({"route", "--table", composite_table(one.file)});
    EXPECT_EQ(output.exit, 0);
    EXPECT_EQ(output.out, one.line);
  }
}

TEST(RouteTable, TheDocumentHasTheCounts) {
  const Json document = document_of(
      attn_oracle({"route", "--table", composite_table("capabilities.jsonl"), "--json"}));
  expect_document_form(document, "route", 0);
  EXPECT_EQ(document["table"], "capabilities");
  EXPECT_EQ(document["rows"], 152);
  EXPECT_EQ(document["passed"], 152);
  EXPECT_EQ(document["first"], Json::array());
  expect_replays(document, {});
}

class RouteOneRow : public testing::Test {
 protected:
  // A table with this `select` row; the answer to its batch is child 1.
  std::string select_row(const std::string& expect) {
    const auto path = folder_.path() / "one.jsonl";
    std::ofstream(path)
        << R"({"format":"attn-composite-table/1","table":"routing","vllm_version":"0.33.0","rows":1,)"
        << R"("spec":{"block_size":64,"num_kv_heads":8,"head_size":128,"dtype":"float16"}})"
        << "\n"
        << R"({"id":"r1","kind":"select","layers":{},"layer_names":[],)"
        << R"("batch":{"query_start_loc":[0,4],"seq_lens":[9]})" << expect << "}\n";
    return path.string();
  }
  TemporaryFolder folder_;
};

TEST_F(RouteOneRow, AnswersStandBesideTheirIds) {
  const auto answers = folder_.path() / "answers.jsonl";
  const CommandOutput output =
      attn_oracle({"route", "--table", select_row(""), "--answers", answers.string(), "--quiet"});
  EXPECT_EQ(output.exit, 0) << output.err;
  EXPECT_EQ(output.out, "0 passed, 0 failed, 1 skipped\n");
  std::ifstream file(answers);
  std::string line;
  std::getline(file, line);
  EXPECT_EQ(line,
            R"({"line":2,"id":"r1","pass":null,"answer":{"expect":{"policy_cudagraph_support":)"
            R"("UNIFORM_SINGLE_TOKEN_DECODE","unclamped_window":false,"variant":1}}})");
  EXPECT_EQ(attn_oracle({"route", "--table", select_row("")}).exit, 3);
}

TEST_F(RouteOneRow, ADifferenceIsNamed) {
  const std::string path = select_row(
      R"(,"expect":{"policy_cudagraph_support":"UNIFORM_SINGLE_TOKEN_DECODE","unclamped_window":false,"variant":0})");
  const CommandOutput output = attn_oracle({"route", "--table", path});
  EXPECT_EQ(output.exit, 1);
  EXPECT_EQ(output.out, "line 2 (r1) /expect/variant: expected 0, got 1\n0 passed, 1 failed\n");
  const Json document = document_of(attn_oracle({"route", "--table", path, "--json"}));
  EXPECT_EQ(document["first"][0]["id"], "r1");
}

TEST_F(RouteOneRow, RefusesWhatIsNotSuchATable) {
  expect_refused(attn_oracle({"route", "--table", "absent.jsonl"}), "absent.jsonl");
  expect_refused(attn_oracle({"route", "--table", select_row(R"(,"extra":1)")}), "extra");
  expect_refused(attn_oracle({"route", "--table", ATTN_SELECTOR_TABLES "/select.jsonl"}),
                 "attn-composite-table/1");
  expect_refused(attn_oracle({"route"}), "--table");
}

// Whoever refuses: the reader of a row, or the function that the row asks.
TEST_F(RouteOneRow, ErrorsOfARowNameItsLine) {
  const auto table_with = [&](const std::string& row) {
    const auto path = folder_.path() / "two.jsonl";
    std::ofstream(path)
        << R"({"format":"attn-composite-table/1","table":"metadata","vllm_version":"0.33.0","seed":1,"rows":2})"
        << "\n"
        << R"({"id":"a","kind":"split_prefill_chunks","seq_lens":[1],"workspace_size":1,"request_offset":0})"
        << "\n"
        << row << "\n";
    return attn_oracle({"route", "--table", path.string()});
  };
  const std::pair<const char*, const char*> rows[] = {
      {R"({"id":"b","kind":"nope"})", "line 3.kind"},
      {R"({"id":"b","kind":"split_prefill_chunks","seq_lens":[1.5],"workspace_size":1,"request_offset":0})",
       "line 3.seq_lens[0]"},
      {R"({"id":"b","kind":"unpadded","batch":{"query_start_loc":[0,1],"seq_lens":[1]},"num_actual_tokens":1,"num_actual_reqs":2})",
       "line 3: num_reqs is 2"},
      {R"({"id":"b","kind":)", "line 3"},
      {R"({"id":"a","kind":"layout_properties"})", "line 3.id"}};
  for (const auto& [row, says] : rows) expect_refused(table_with(row), says);
}

}  // namespace
}  // namespace attn
