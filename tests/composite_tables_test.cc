// Every row of the tables that vLLM 0.33.0's composite backend and batch utilities produced.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "attn/error.h"
#include "cli/vllm_composites.h"
#include "composite/replay.h"

namespace attn {
namespace {

struct Table {
  const char* file;
  std::int64_t rows;
};

constexpr Table kTables[] = {
    {"capabilities.jsonl", 152}, {"metadata.jsonl", 1909}, {"routing.jsonl", 1129}};

void ignore(const ReplayedRow&) {}

class CompositeTables : public testing::TestWithParam<Table> {};

TEST_P(CompositeTables, AnswersEveryRowAsVllm) {
  const std::string path = fmt::format("{}/{}", ATTN_COMPOSITE_TABLES, GetParam().file);
  const ReplayReport report = replay_composite_table_file(path, cli::vllm_backend_of_table, ignore);
  for (const ReplayDifference& one : report.first) {
    ADD_FAILURE() << one.id.value_or("?") << " at " << one.at << "\n  expected " << one.expected
                  << "\n  actual   " << one.actual;
  }
  EXPECT_EQ(report.passed, GetParam().rows);
  EXPECT_EQ(report.rows, GetParam().rows);
  EXPECT_EQ(report.skipped, 0);
  EXPECT_EQ(report.vllm_version, "0.33.0");
}

INSTANTIATE_TEST_SUITE_P(Vllm, CompositeTables, testing::ValuesIn(kTables),
                         [](const auto& instance) {
                           const std::string name = instance.param.file;
                           return name.substr(0, name.find('.'));
                         });

// A table `metadata` with this one row.
std::string table_of(const std::string& row, int rows = 1) {
  return fmt::format(
      R"({{"format":"attn-composite-table/1","table":"metadata","vllm_version":"0.33.0","seed":1,"rows":{}}})"
      "\n{}\n",
      rows, row);
}

ReplayReport replay_row(const std::string& row) {
  return replay_composite_table(table_of(row), {}, ignore);
}

std::string chunks_row(const std::string& lengths, const std::string& expect) {
  return fmt::format(
      R"({{"id":"a","kind":"split_prefill_chunks","seq_lens":{},"workspace_size":12,"request_offset":0{}}})",
      lengths, expect.empty() ? "" : ",\"expect\":" + expect);
}

TEST(CompositeReplay, NamesTheRowAndThePlaceOfADifference) {
  const ReplayReport report = replay_row(chunks_row("[9,10]", "[[0,1],[1,3]]"));
  EXPECT_EQ(report.failed, 1);
  ASSERT_EQ(report.first.size(), 1U);
  EXPECT_EQ(report.first[0].line, 2);
  EXPECT_EQ(report.first[0].id, "a");
  EXPECT_EQ(report.first[0].at, "/expect/1/1");
  EXPECT_EQ(report.first[0].expected, 3);
  EXPECT_EQ(report.first[0].actual, 2);
}

TEST(CompositeReplay, ARowWithoutExpectIsAnsweredButSkipped) {
  nlohmann::json answer;
  std::string id;
  const ReplayReport report =
      replay_composite_table(table_of(chunks_row("[9,10]", "")), {}, [&](const ReplayedRow& row) {
        EXPECT_FALSE(row.pass.has_value());
        answer = row.answer;
        id = row.id.value_or("");
      });
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(id, "a");
  EXPECT_EQ(answer, nlohmann::json::parse(R"({"expect":[[0,1],[1,2]]})"));
}

TEST(CompositeReplay, OfAnAssertionWithoutTextOnlyTheTypeCounts) {
  EXPECT_EQ(
      replay_row(chunks_row("[13]", R"({"error":{"type":"AssertionError","text":""}})")).passed, 1);
  EXPECT_EQ(replay_row(chunks_row("[13]", R"({"error":{"type":"ValueError","text":""}})")).failed,
            1);
  EXPECT_EQ(
      replay_row(chunks_row("[13]", R"({"error":{"type":"AssertionError","text":"x"}})")).failed,
      1);
  EXPECT_EQ(replay_row(chunks_row("[13]", R"([[0,1]])")).failed, 1);
  EXPECT_EQ(
      replay_row(chunks_row("[1]", R"({"error":{"type":"AssertionError","text":""}})")).failed, 1);
}

std::string block_size_row(const std::string& expect) {
  return R"({"id":"a","kind":"common_block_size","backends":[["B0",[24]]],"kv_manager_block_size":64,"expect":)" +
         expect + "}";
}

TEST(CompositeReplay, OfAValueErrorTypeAndTextCount) {
  EXPECT_EQ(
      replay_row(
          block_size_row(
              R"({"error":{"type":"ValueError","text":"No common block size for 64 (B0: [24])."}})"))
          .passed,
      1);
  EXPECT_EQ(replay_row(block_size_row(R"({"error":{"type":"ValueError","text":""}})")).failed, 1);
  // Only the type counts of a KeyError, but it is another type.
  EXPECT_EQ(replay_row(block_size_row(R"({"error":{"type":"KeyError","text":""}})")).failed, 1);
}

TEST(CompositeReplay, AnIntegerIsNotABoolean) {
  const char* row =
      R"({"id":"a","kind":"uniform_decode","num_reqs":1,"num_tokens":1,"max_query_len":1,"decode_graph_eligible":true,"expect":{"uniform":1,"token_count":1}})";
  EXPECT_EQ(replay_row(row).failed, 1);
}

TEST(CompositeReplay, RefusesWhatIsNoTable) {
  const char* bad_rows[] = {
      "",
      "[]",
      R"({"kind":"split_prefill_chunks","seq_lens":[1],"workspace_size":1,"request_offset":0})",
      R"({"id":"a","kind":"nope"})",
      R"({"id":1,"kind":"layout_properties"})",
      R"({"id":"a","kind":"layout_properties","more":1})",
      R"({"id":"a","kind":"split_prefill_chunks","seq_lens":[2147483648],"workspace_size":1,"request_offset":0})",
      R"({"id":"a","kind":"split_prefill_chunks","seq_lens":[1.5],"workspace_size":1,"request_offset":0})",
      R"({"id":"a","kind":"unpadded","batch":{"query_start_loc":[0,1],"seq_lens":[1]},"num_actual_tokens":1,"num_actual_reqs":2})",
      R"({"id":"a","kind":"unpadded","batch":{"query_start_loc":[0,1],"seq_lens":[1,2]},"num_actual_tokens":1,"num_actual_reqs":1})",
      R"({"id":"a","kind":"unpadded","batch":{"query_start_loc":[1,1],"seq_lens":[1]},"num_actual_tokens":1,"num_actual_reqs":1})",
      R"({"id":"a","kind":"unpadded","batch":{"query_start_loc":[0,2147483647],"seq_lens":[1]},"num_actual_tokens":1,"num_actual_reqs":1})",
      R"({"id":"a","kind":"unpadded","batch":{"query_start_loc":[0,1],"seq_lens":[1],"causal":[]},"num_actual_tokens":1,"num_actual_reqs":1})",
      R"({"id":"a","kind":"kernel_block_table","block_size":16,"kernel_block_size":0,"kernel_block_stride":0,"block_table":[[1]]})",
      R"({"id":"a","kind":"kernel_block_table","block_size":16,"kernel_block_size":8,"kernel_block_stride":0,"block_table":[[1],[1,2]]})",
      R"({"id":"a","kind":"local_virtual_batches","attn_chunk_size":1073741824,"block_size":1,"batch":{"query_start_loc":[0,1],"seq_lens":[1]}})",
      R"({"id":"a","kind":"ubatch","num_tokens_padded":1,"num_reqs_padded":1,"num_ubatches":2147483647,"split_point":null,"batch":{"query_start_loc":[0,1],"seq_lens":[1]}})",
      R"({"id":"a","kind":"graph_mode","mode":"HALF","min_support":"ALWAYS","min_backend":"B","uniform_decode_query_len":1,"attention_is_split":true,"compiled":true,"graph_partition":true,"piecewise_capture_available":true})"};
  for (const char* bad : bad_rows) EXPECT_THROW(replay_row(bad), Error) << bad;
  EXPECT_THROW(replay_composite_table("", {}, ignore), Error);
  EXPECT_THROW(replay_composite_table(R"({"format":"attn-selector-table/1"})", {}, ignore), Error);
  EXPECT_THROW(replay_composite_table(table_of(chunks_row("[1]", ""), 2), {}, ignore), Error);
  EXPECT_THROW(replay_composite_table_file("/no/such/table.jsonl", {}, ignore), Error);
}

TEST(CompositeReplay, IdsAreUnique) {
  const std::string row = chunks_row("[1]", "");
  EXPECT_THROW(replay_composite_table(table_of(row + "\n" + row, 2), {}, ignore), Error);
}

}  // namespace
}  // namespace attn
