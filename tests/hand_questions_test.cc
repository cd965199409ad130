// The questions written down by hand ask what the stored cases of the same names ask
// (tests/data/third_party/hand_made).
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "attn/case_file.h"
#include "golden/questions/hand_questions.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using questions::Question;

// Stored cases that are not asked again: each repeats another one.
const std::set<std::string> kLeftOut = {"H01-w3-varlen",
                                        "H02-varlen",
                                        "H10a-splits2-without",
                                        "H10a-splits4-with",
                                        "H12-plain",
                                        "H13-three-e",
                                        "H16-prefill-nank",
                                        "H16-prefill-nanv",
                                        "H16-prefill-ninf",
                                        "H16-prefill-pinf",
                                        "H20b-d64",
                                        "H20b-d96",
                                        "H20b-d112",
                                        "H20b-d128",
                                        "H20b-d256",
                                        "format-invalid-block",
                                        "format-invalid-heads"};

fs::path folder() { return fs::path(ATTN_TEST_DATA) / "third_party" / "hand_made"; }

std::map<std::string, nlohmann::json> stored_rows() {
  std::map<std::string, nlohmann::json> rows;
  std::ifstream index(folder() / "index.jsonl");
  for (std::string line; std::getline(index, line);) {
    nlohmann::json row = nlohmann::json::parse(line);
    rows[row.at("id")] = row;
  }
  return rows;
}

std::vector<std::int64_t> shape_of(const TensorView& view) {
  return {view.shape, view.shape + view.rank};
}

// Calls `visit` with the index of every unit; four axes, those that are missing stay 0.
template <class Visit>
void for_each_unit(const TensorView& view, const Visit& visit) {
  std::int64_t shape[4] = {1, 1, 1, 1};
  std::copy(view.shape, view.shape + view.rank, shape);
  for (std::int64_t a = 0; a < shape[0]; ++a)
    for (std::int64_t b = 0; b < shape[1]; ++b)
      for (std::int64_t c = 0; c < shape[2]; ++c)
        for (std::int64_t d = 0; d < shape[3]; ++d) visit(a, b, c, d);
}

std::uint64_t code_at(const TensorView& view, std::int64_t a, std::int64_t b, std::int64_t c,
                      std::int64_t d) {
  return load_code(view.dtype, view.at(a, b, c, d));
}

void expect_same_form(const TensorView& asked, const TensorView& stored, const std::string& what) {
  ASSERT_EQ(asked.present(), stored.present()) << what;
  ASSERT_EQ(asked.dtype, stored.dtype) << what;
  ASSERT_EQ(shape_of(asked), shape_of(stored)) << what;
}

void expect_same_units(const TensorView& asked, const TensorView& stored, const std::string& what) {
  ASSERT_NO_FATAL_FAILURE(expect_same_form(asked, stored, what));
  if (!asked.present()) return;
  for_each_unit(asked, [&](auto... index) {
    EXPECT_EQ(code_at(asked, index...), code_at(stored, index...))
        << what << "[" << testing::PrintToString(std::array{index...}) << "]";
  });
}

bool all_zero(const TensorView& view) {
  bool zero = true;
  for_each_unit(view, [&](auto... index) { zero = zero && code_at(view, index...) == 0; });
  return zero;
}

// Keys do not matter to a query of zeros: they were drawn anew where a request addresses them.
void expect_same_keys(const AttentionOp& asked, const AttentionOp& stored,
                      const std::string& what) {
  if (!all_zero(stored.query)) return expect_same_units(asked.kv.key, stored.kv.key, what);
  ASSERT_NO_FATAL_FAILURE(expect_same_form(asked.kv.key, stored.kv.key, what));
  std::set<std::pair<std::int64_t, std::int64_t>> addressed;
  for (std::int64_t r = 0; r < stored.num_reqs(); ++r) {
    for (std::int64_t k = 0; k < stored.seq_len(r); ++k) {
      const KvSlot slot = kv_slot(stored.kv, r, k);
      addressed.insert({slot.block, slot.slot});
    }
  }
  for_each_unit(asked.kv.key, [&](std::int64_t block, std::int64_t slot, auto... rest) {
    if (addressed.contains({block, slot})) {
      EXPECT_TRUE(std::isfinite(value_at(asked.kv.key, block, slot, rest...))) << what;
    } else {
      EXPECT_EQ(code_at(asked.kv.key, block, slot, rest...),
                code_at(stored.kv.key, block, slot, rest...))
          << what << " block " << block << " slot " << slot;
    }
  });
}

void expect_same(const AttentionOp& asked, const AttentionOp& stored) {
  expect_same_units(asked.query, stored.query, "query");
  expect_same_units(asked.query_start_loc, stored.query_start_loc, "query_start_loc");
  expect_same_units(asked.seq_lens, stored.seq_lens, "seq_lens");
  EXPECT_EQ(asked.kv.layout, stored.kv.layout);
  EXPECT_EQ(asked.kv.encoding, stored.kv.encoding);
  expect_same_units(asked.kv.block_table, stored.kv.block_table, "block_table");
  expect_same_units(asked.kv.kv_start_loc, stored.kv.kv_start_loc, "kv_start_loc");
  expect_same_keys(asked, stored, "key");
  expect_same_units(asked.kv.value, stored.kv.value, "value");
  expect_same_units(asked.kv.k_scale, stored.kv.k_scale, "k_scale");
  expect_same_units(asked.kv.v_scale, stored.kv.v_scale, "v_scale");
  expect_same_units(asked.mask.mm_prefix_ranges, stored.mask.mm_prefix_ranges, "mm_prefix_ranges");
  expect_same_units(asked.sinks, stored.sinks, "sinks");
  EXPECT_EQ(asked.scale, stored.scale);
  EXPECT_EQ(asked.logits_soft_cap, stored.logits_soft_cap);
  EXPECT_EQ(asked.mask.causal, stored.mask.causal);
  EXPECT_EQ(asked.mask.window_left, stored.mask.window_left);
  EXPECT_EQ(asked.mask.window_right, stored.mask.window_right);
  EXPECT_EQ(asked.mask.mm_prefix_clamp, stored.mask.mm_prefix_clamp);
  EXPECT_EQ(asked.lse_includes_sink, stored.lse_includes_sink);
  EXPECT_EQ(asked.exec, stored.exec);
  // What no hand case has; one that had it would need a line above.
  for (const AttentionOp* op : {&asked, &stored}) {
    EXPECT_FALSE(op->mask.causal_per_req.present() || op->mask.rswa_prefix_lens.present() ||
                 op->mask.attn_mask.present() || op->bias.attn_bias.present() ||
                 op->bias.qq_bias.present() || op->bias.alibi_slopes.present() ||
                 op->q_scale.present() || op->output_scale.present());
    EXPECT_EQ(op->mask.attention_chunk_size + op->mask.sink_token_length, 0);
  }
}

void expect_same(const MergeStatesOp& asked, const MergeStatesOp& stored) {
  expect_same_units(asked.out_parts, stored.out_parts, "out_parts");
  expect_same_units(asked.lse_parts, stored.lse_parts, "lse_parts");
  EXPECT_EQ(asked.lse_base_2, stored.lse_base_2);
}

void expect_same_operation(const Operation& asked, const Operation& stored) {
  ASSERT_EQ(asked.index(), stored.index());
  if (const auto* attention = std::get_if<AttentionOp>(&stored)) {
    return expect_same(std::get<AttentionOp>(asked), *attention);
  }
  expect_same(std::get<MergeStatesOp>(asked), std::get<MergeStatesOp>(stored));
}

// The stored answer is a fraction or a logarithm, worked out apart from this project.
void expect_stored_answers(const Question& question, const CaseFile& stored,
                           const nlohmann::json& row) {
  const OperationAnswer answer(question.operation);
  EXPECT_TRUE(stored.outputs().contains("out"));  // some reports say nothing of lse
  for (const auto& [name, description] : stored.outputs()) {
    const TensorView expected = stored.stored_output(name);
    const std::vector<double> actual = answer.values(name);
    ASSERT_EQ(static_cast<std::int64_t>(actual.size()), expected.num_units()) << name;
    const auto& tolerance = row.at("tolerance").at(name);
    std::size_t i = 0;
    for_each_unit(expected, [&](auto... index) {
      const double e = value_at(expected, index...);
      const double allowed = tolerance[0].get<double>() + tolerance[1].get<double>() * std::fabs(e);
      EXPECT_TRUE(actual[i] == e || std::fabs(actual[i] - e) <= allowed)
          << name << "[" << i << "] is " << actual[i] << ", expected " << e;
      ++i;
    });
  }
}

TEST(HandQuestions, AskWhatTheStoredCasesAsk) {
  const auto rows = stored_rows();
  std::set<std::string> asked;
  for (const Question& question : questions::hand_questions()) {
    SCOPED_TRACE(question.id);
    ASSERT_TRUE(rows.contains(question.id));
    const nlohmann::json& row = rows.at(question.id);
    const CaseFile stored = CaseFile::read(folder() / row.at("file").get<std::string>());
    expect_same_operation(question.operation, stored.problem().operation());
    expect_stored_answers(question, stored, row);
    EXPECT_EQ(question.flags, stored.flags());
    EXPECT_EQ(question.rulings, row.at("rulings").get<std::vector<std::string>>());
    EXPECT_EQ(question.result, stored.result());
    EXPECT_EQ(question.where, row.at("provenance").at("op").get<std::string>().substr(0, 3));
    EXPECT_TRUE(asked.insert(question.id).second);
  }
  EXPECT_EQ(asked.size(), 48U);
  for (const auto& [id, row] : rows) {
    EXPECT_NE(asked.contains(id), kLeftOut.contains(id)) << id;
  }
}

TEST(HandQuestions, AreOrderedAndSayWhatTheyAreAbout) {
  const std::set<std::string> variants = {"sliding_window", "mm_prefix", "sinks",  "empty",
                                          "poisoned",       "merge",     "causal", "split_kv",
                                          "quantised",      "softcap",   "heads",  "cascade"};
  std::set<std::string> used;
  std::string last;
  for (const Question& question : questions::hand_questions()) {
    EXPECT_LT(last, question.id);
    last = question.id;
    used.insert(question.variant);
    EXPECT_FALSE(question.name.empty() || question.scenario.empty()) << question.id;
  }
  EXPECT_EQ(used, variants);
}

// Bits of `count` rows of out and, in every head, of lse.
std::vector<std::uint64_t> bits_of_rows(const Question& question, const CaseRelation::Rows& rows) {
  const OperationAnswer answer(question.operation);
  std::vector<std::uint64_t> bits;
  const TensorView out = slice(answer.view("out"), 0, rows.first_token, rows.count);
  for_each_unit(out, [&](auto... index) { bits.push_back(code_at(out, index...)); });
  const TensorView lse = slice(answer.view("lse"), 1, rows.first_token, rows.count);
  for_each_unit(lse, [&](auto... index) { bits.push_back(code_at(lse, index...)); });
  return bits;
}

TEST(HandQuestions, RelationsHold) {
  std::map<std::string, const Question*> by_id;
  const std::vector<Question> all = questions::hand_questions();
  for (const Question& question : all) by_id[question.id] = &question;
  std::size_t rows_compared = 0;
  for (const CaseRelation& relation : questions::hand_relations()) {
    const auto first = bits_of_rows(*by_id.at(relation.rows.at(0).id), relation.rows[0]);
    EXPECT_FALSE(first.empty());
    for (const CaseRelation::Rows& rows : relation.rows) {
      EXPECT_EQ(bits_of_rows(*by_id.at(rows.id), rows), first) << rows.id;
      ++rows_compared;
    }
  }
  EXPECT_EQ(rows_compared, 8U);
}

}  // namespace
}  // namespace attn
