// Every row of the decision tables that vLLM 0.33.0 produced.
#include "selector/replay.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "attn/error.h"

namespace attn {
namespace {

struct Table {
  const char* file;
  std::int64_t rows;
};

constexpr Table kTables[] = {
    {"attention_config.json", 18}, {"block_sizes.jsonl", 703},   {"build_config.jsonl", 146},
    {"cache_dtypes.json", 1},      {"capabilities.json", 58},    {"helpers.jsonl", 450},
    {"kv_quant_mode.json", 44},    {"layouts.jsonl", 179},       {"mamba_select.json", 12},
    {"priorities.json", 1620},     {"registry.json", 62},        {"repr.jsonl", 83},
    {"select.jsonl", 899},         {"select_cpu.jsonl", 199},    {"select_rocm.jsonl", 211},
    {"select_xpu.jsonl", 202},     {"spec_kind.jsonl", 20},      {"validate.jsonl", 1895},
    {"validate_cpu.jsonl", 109},   {"validate_rocm.jsonl", 479}, {"validate_xpu.jsonl", 100}};

std::string path_of(const std::string& file) { return ATTN_SELECTOR_TABLES "/" + file; }

void ignore(const ReplayedRow&) {}

class SelectorTables : public testing::TestWithParam<Table> {};

// A row of a table of lines: the question that was answered wrongly.
std::string row_at(const std::string& path, std::int64_t line) {
  std::ifstream file(path);
  std::string text;
  for (std::int64_t number = 0; number < line; ++number) std::getline(file, text);
  return text;
}

TEST_P(SelectorTables, AnswersEveryRowAsVllm) {
  const std::string path = path_of(GetParam().file);
  // Of a whole file, where its rows are: "/capabilities/cuda/B12X".
  std::map<std::int64_t, std::string> places;
  const ReplayReport report = replay_table_file(path, [&](const ReplayedRow& row) {
    if (row.pass == false && row.at) places[row.line] = *row.at;
  });
  for (const ReplayDifference& one : report.first) {
    const bool whole_file = places.contains(one.line);
    ADD_FAILURE() << GetParam().file << " at " << places[one.line] << one.at << "\n  expected "
                  << one.expected << "\n  actual   " << one.actual
                  << (whole_file ? "" : "\n  row      " + row_at(path, one.line));
  }
  EXPECT_EQ(report.passed, GetParam().rows);
  EXPECT_EQ(report.rows, GetParam().rows);
  EXPECT_EQ(report.skipped, 0);
  EXPECT_EQ(report.vllm_version, "0.33.0");
}

INSTANTIATE_TEST_SUITE_P(Vllm, SelectorTables, testing::ValuesIn(kTables),
                         [](const auto& instance) {
                           std::string name = instance.param.file;
                           return name.substr(0, name.find('.'));
                         });

// A table of lines with this one row; its header says that there are `rows`.
std::string table_of(const std::string& kind, const std::string& row, int rows = 1) {
  nlohmann::json header = {{"format", "attn-selector-table/1"},
                           {"vllm_version", "0.33.0"},
                           {"platform", "cuda"},
                           {"environment", nlohmann::json::object()}};
  header["table"] = kind;
  header["rows"] = rows;
  std::string text = header.dump();
  text += '\n';
  text += row;
  text += '\n';
  return text;
}

ReplayReport replay_row(const std::string& kind, const std::string& row) {
  return replay_table(table_of(kind, row), true, ignore);
}

constexpr const char* kValidateRow =
    R"({"backend":"FLASH_ATTN","capability":[8,0],"config":{"head_size":64,"dtype":"float32",)"
    R"("kv_cache_dtype":null,"block_size":null,"use_sparse":true},"env":{})";

// The row with `reasons` as JSON; "" = without.
std::string validate_row(const std::string& reasons) {
  return fmt::format("{}{}{}}}", kValidateRow, reasons.empty() ? "" : ",\"reasons\":", reasons);
}

TEST(TableReplay, NamesTheFirstDifferenceOfAFailedRow) {
  const ReplayReport report =
      replay_row("validate", validate_row(R"(["dtype not supported","x"])"));
  EXPECT_EQ(report.failed, 1);
  ASSERT_EQ(report.first.size(), 1U);
  EXPECT_EQ(report.first[0].line, 2);
  EXPECT_EQ(report.first[0].at, "/reasons/1");
  EXPECT_EQ(report.first[0].expected, "x");
  EXPECT_EQ(report.first[0].actual, "sparse not supported");
}

TEST(TableReplay, MissingReasonsAndReasonsTooManyAreDifferences) {
  for (const char* reasons :
       {R"(["dtype not supported"])", R"(["sparse not supported","dtype not supported"])",
        R"(["dtype not supported","sparse not supported","dtype not supported"])", "[]", "null"}) {
    const ReplayReport report = replay_row("validate", validate_row(reasons));
    EXPECT_EQ(report.failed, 1) << reasons;
  }
}

TEST(TableReplay, RowWithoutComparedMembersIsAnsweredButSkipped) {
  nlohmann::json answer;
  const ReplayReport report =
      replay_table(table_of("validate", validate_row("")), true, [&](const ReplayedRow& row) {
        EXPECT_FALSE(row.pass.has_value());
        answer = row.answer;
      });
  EXPECT_EQ(report.skipped, 1);
  EXPECT_EQ(answer,
            nlohmann::json::parse(R"({"reasons":["dtype not supported","sparse not supported"]})"));
}

TEST(TableReplay, AnIntegerIsNotABoolean) {
  const ReplayReport report =
      replay_row("block_sizes", R"({"op":"supports","sizes":[16],"block_size":32,"result":1})");
  EXPECT_EQ(report.failed, 1);
}

TEST(TableReplay, RefusesMalformedTables) {
  const char* bad_rows[] = {
      R"({"backend":"NOPE","capability":[8,0],"config":{"head_size":64,"dtype":"float32","kv_cache_dtype":null,"block_size":null},"env":{}})",
      R"({"backend":"FLASH_ATTN","capability":[8],"config":{"head_size":64,"dtype":"float32","kv_cache_dtype":null,"block_size":null},"env":{}})",
      R"({"backend":"FLASH_ATTN","capability":[8,0],"config":{"head_size":64,"dtype":"f32","kv_cache_dtype":null,"block_size":null},"env":{}})",
      R"({"backend":"FLASH_ATTN","capability":[8,0],"config":{"head_size":64,"dtype":"float32","kv_cache_dtype":"fp9","block_size":null},"env":{}})",
      R"({"backend":"FLASH_ATTN","capability":[8,0],"config":{"head_size":64,"dtype":"float32","kv_cache_dtype":null},"env":{}})",
      R"({"backend":"FLASH_ATTN","capability":[8,0],"config":{"head_size":64,"dtype":"float32","kv_cache_dtype":null,"block_size":null},"env":{"fa_bilt":[2]}})",
      R"({"backend":"FLASH_ATTN","capability":[8,0],"config":{"head_size":64,"head_size":64,"dtype":"float32","kv_cache_dtype":null,"block_size":null},"env":{}})",
      R"({"backend":"FLASH_ATTN","capability":[8,0],"config":{"head_size":true,"dtype":"float32","kv_cache_dtype":null,"block_size":null},"env":{}})",
      "[]",
      ""};
  for (const char* bad : bad_rows) EXPECT_THROW(replay_row("validate", bad), Error) << bad;
  EXPECT_THROW(replay_row("validated", validate_row("")), Error);
  EXPECT_THROW(replay_row("block_sizes", R"({"op":"support","sizes":[16],"block_size":32})"),
               Error);
  EXPECT_THROW(replay_table("", true, ignore), Error);
  EXPECT_THROW(replay_table(R"({"format":"attn-composite-table/1"})", true, ignore), Error);
  EXPECT_THROW(replay_table(R"({"format":"attn-selector-table/1","vllm_version":"1","nope":[]})",
                            false, ignore),
               Error);
}

TEST(TableReplay, RowsMustBeTheNumberOfTheHeader) {
  const std::string row = validate_row("");
  EXPECT_NO_THROW(replay_table(table_of("validate", row, 1), true, ignore));
  EXPECT_THROW(replay_table(table_of("validate", row, 0), true, ignore), Error);
  EXPECT_THROW(replay_table(table_of("validate", row, 2), true, ignore), Error);
}

// Values that no backend has: the test holds whatever the rows say.
TEST(TableReplay, AChangedCapabilityIsNoticed) {
  std::ifstream file(path_of("capabilities.json"));
  nlohmann::json table = nlohmann::json::parse(file);
  table["capabilities"]["cuda"]["B12X"]["base"]["get_name"] = "planted";
  table["capabilities"]["cuda"]["FLASHINFER"]["differences"][0]["differs"]["get_name"] = "planted";
  std::set<std::string> noticed;
  for (const ReplayDifference& one : replay_table(table.dump(), false, ignore).first) {
    if (one.expected == "planted") noticed.insert(one.at);
  }
  EXPECT_EQ(noticed, (std::set<std::string>{"/base/get_name", "/differences/0/differs/get_name"}));
}

}  // namespace
}  // namespace attn
