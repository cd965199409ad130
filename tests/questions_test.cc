// The questions of pack `core`: what every one must be, whatever it asks.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "golden/questions/fill.h"
#include "tests/core_question_set.h"
#include "tests/operation_answer.h"
#include "tests/stored_bytes.h"

namespace attn {
namespace {

using questions::Question;

// The floors of the table of variants.
const std::map<std::string, int>& floors() {
  static const std::map<std::string, int> table = {{"full", 2},
                                                   {"encoder", 2},
                                                   {"cross", 2},
                                                   {"causal", 12},
                                                   {"non_causal_paged", 2},
                                                   {"causal_per_req", 2},
                                                   {"sliding_window", 10},
                                                   {"sink_tokens", 2},
                                                   {"chunked_local", 4},
                                                   {"rswa", 3},
                                                   {"mm_prefix", 10},
                                                   {"tree", 3},
                                                   {"masked", 4},
                                                   {"sinks", 8},
                                                   {"static_sink", 2},
                                                   {"softcap", 4},
                                                   {"alibi", 6},
                                                   {"diffkv", 3},
                                                   {"heads", 6},
                                                   {"quantised", 6},
                                                   {"quantised_per_token_head", 3},
                                                   {"nvfp4", 2},
                                                   {"quantised_query", 2},
                                                   {"output_quantised", 2},
                                                   {"mixed_dtype", 2},
                                                   {"empty", 6},
                                                   {"padding", 2},
                                                   {"poisoned", 4},
                                                   {"kernel_blocks", 2},
                                                   {"batch_invariance", 2},
                                                   {"split_kv", 4},
                                                   {"cascade", 2},
                                                   {"dcp", 3},
                                                   {"invalid", 8},
                                                   {"differential", 2},
                                                   {"mla", 9},
                                                   {"mla_sparse", 4},
                                                   {"indexer", 2},
                                                   {"merge", 6},
                                                   {"cache_write", 7},
                                                   {"mla_cache_write", 3}};
  return table;
}

TEST(Questions, EveryVariantHasItsFloorAndNoOtherName) {
  std::map<std::string, int> counts;
  for (const Question& question : core().questions) {
    EXPECT_TRUE(floors().contains(question.variant)) << question.id << " " << question.variant;
    ++counts[question.variant];
  }
  for (const auto& [variant, floor] : floors()) EXPECT_GE(counts[variant], floor) << variant;
  EXPECT_LE(core().questions.size(), 200U);
}

TEST(Questions, IdsAreInOrderUniqueAndOfTheRightForm) {
  const std::regex fault("H[0-9]{2}[a-c]?(-[a-z0-9_]+)*");
  const std::regex drawn("[a-z0-9_]+(-[a-zA-Z0-9_]+)+");
  std::string last;
  for (const Question& question : core().questions) {
    EXPECT_LT(last, question.id);
    last = question.id;
    const bool is_fault = std::regex_match(question.id, fault);
    EXPECT_TRUE(is_fault || std::regex_match(question.id, drawn)) << question.id;
    if (!is_fault && question.result == CaseResult::kValid) {
      EXPECT_EQ(question.id.substr(0, question.id.find('-')), question.variant) << question.id;
    }
  }
}

TEST(Questions, SayInOneLineWhatTheyAreAbout) {
  const std::regex words("[ -~]+");
  for (const Question& question : core().questions) {
    EXPECT_TRUE(std::regex_match(question.name, words)) << question.id;
    EXPECT_TRUE(std::regex_match(question.scenario, words)) << question.id;
    EXPECT_FALSE(question.where.empty()) << question.id;
    EXPECT_TRUE(std::is_sorted(question.flags.begin(), question.flags.end())) << question.id;
  }
}

TEST(Questions, OnlyInvalidOnesAreRejected) {
  for (const Question& question : core().questions) {
    if (question.result == CaseResult::kValid) {
      EXPECT_NO_THROW(AttentionProblem(question.operation)) << question.id;
    } else {
      EXPECT_THROW(AttentionProblem(question.operation), Error) << question.id;
    }
  }
}

TEST(Questions, FitTheTier) {
  std::size_t total = 0;
  for (const Question& question : core().questions) {
    const std::size_t bytes = stored_bytes(question);
    EXPECT_LE(bytes, 64U * 1024U) << question.id;
    total += bytes;
  }
  RecordProperty("bytes", std::to_string(total));
  EXPECT_LE(total, std::size_t{3800} * 1024) << "4 MB less index, manifest, sums and texts";
}

TEST(Questions, CostAtMostAMillionMultiplyAdds) {
  for (const Question* question : valid_attention()) {
    const auto& op = std::get<AttentionOp>(question->operation);
    std::int64_t scores = 0;
    for_each_row(op, [&](std::int64_t r, std::int64_t, std::int64_t) { scores += op.seq_len(r); });
    EXPECT_LE(scores * (op.head_size() + op.head_size_v()), 1 << 20) << question->id;
  }
}

TEST(Questions, AttributesAreExactInBinary32) {
  for (const Question* question : valid_attention()) {
    const auto& op = std::get<AttentionOp>(question->operation);
    EXPECT_EQ(op.scale, static_cast<float>(op.scale)) << question->id;
    EXPECT_EQ(op.logits_soft_cap, static_cast<float>(op.logits_soft_cap)) << question->id;
  }
}

TEST(Questions, AnswersAreFinite) {
  for (const Question* question : valid_ones()) {
    const OperationAnswer answer(question->operation);
    const AttentionProblem problem(question->operation);
    for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
      const bool is_computed = spec.name == "out" || spec.name == "lse" || spec.name == "logits";
      if (!is_computed) continue;
      for (const double x : answer.values(std::string(spec.name))) {
        EXPECT_FALSE(std::isnan(x)) << question->id << " " << spec.name;
        EXPECT_TRUE(spec.name != "out" || std::isfinite(x)) << question->id;
      }
    }
  }
}

TEST(Questions, RelatedRowsAreTheSameBits) {
  ASSERT_GE(core().relations.size(), 4U);
  for (const CaseRelation& relation : core().relations) {
    ASSERT_GE(relation.rows.size(), 2U) << relation.about;
    std::vector<std::uint64_t> first;
    for (const CaseRelation::Rows& rows : relation.rows) {
      const OperationAnswer answer(named(rows.id).operation);
      const std::vector<std::uint64_t> out = answer.codes("out");
      const TensorView lse = answer.view("lse");
      const auto row = static_cast<std::int64_t>(out.size()) / lse.shape[1];
      std::vector<std::uint64_t> bits(out.begin() + rows.first_token * row,
                                      out.begin() + (rows.first_token + rows.count) * row);
      for (std::int64_t h = 0; h < lse.shape[0]; ++h) {
        for (std::int64_t t = 0; t < rows.count; ++t) {
          bits.push_back(load_code(DType::kF64, lse.at(h, rows.first_token + t)));
        }
      }
      if (first.empty()) first = bits;
      EXPECT_EQ(bits, first) << relation.about << ": " << rows.id;
    }
  }
}

TEST(Questions, FlagsSayWhatTheLengthsAre) {
  for (const Question* question : valid_attention()) {
    const auto& op = std::get<AttentionOp>(question->operation);
    bool longer_query = false;
    bool no_keys = false;
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      longer_query |= op.query_len(r) > op.seq_len(r) && op.seq_len(r) > 0;
      no_keys |= op.seq_len(r) == 0;
    }
    EXPECT_EQ(has_flag(*question, "q_len_gt_seq_len"), longer_query) << question->id;
    EXPECT_EQ(has_flag(*question, "seq_len_zero"), no_keys) << question->id;
    EXPECT_EQ(has_flag(*question, "padded_rows"), op.query.shape[0] > op.num_tokens())
        << question->id;
  }
}

// Slots of the cache that a request addresses.
std::set<std::pair<std::int64_t, std::int64_t>> addressed_slots(const AttentionOp& op) {
  std::set<std::pair<std::int64_t, std::int64_t>> slots;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
      const KvSlot at = kv_slot(op.kv, r, k);
      slots.insert({at.block, at.slot});
    }
  }
  return slots;
}

TEST(Questions, PoisonedOnesHaveUnusedEntriesAndNoZerosInUnaddressedSlots) {
  for (const Question* question : valid_attention()) {
    const auto& op = std::get<AttentionOp>(question->operation);
    const bool drawn = question->where.find(" seed ") != std::string::npos;
    if (!drawn || !has_flag(*question, "poisoned")) continue;
    ASSERT_TRUE(op.kv.paged()) << question->id;
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      const std::int64_t bs = op.kv.block_size();
      for (std::int64_t j = (op.seq_len(r) + bs - 1) / bs; j < op.kv.block_table.shape[1]; ++j) {
        EXPECT_EQ(int_at(op.kv.block_table, r, j), questions::kUnusedBlock) << question->id;
      }
    }
    const auto slots = addressed_slots(op);
    for (std::int64_t block = 0; block < op.kv.key.shape[0]; ++block) {
      for (std::int64_t slot = 0; slot < op.kv.block_size(); ++slot) {
        if (slots.contains({block, slot})) continue;
        EXPECT_NE(load_code(op.kv.key.dtype, op.kv.key.at(block, slot, 0, 0)), 0U) << question->id;
        EXPECT_NE(load_code(op.kv.value.dtype, op.kv.value.at(block, slot, 0, 0)), 0U)
            << question->id;
      }
    }
  }
}

}  // namespace
}  // namespace attn
