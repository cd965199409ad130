// The questions of pack `extended`: which there are, and that a backend can answer them. The pack
// itself is made on demand; here REFERENCE answers a sample of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "attn/problem.h"
#include "attn/reference.h"
#include "attn/variant.h"
#include "golden/pack_limits.h"
#include "golden/questions/question.h"
#include "tests/operation_answer.h"
#include "tests/stored_bytes.h"

namespace attn {
namespace {

using questions::Question;
using questions::QuestionSet;
using Names = std::set<std::string>;

const QuestionSet& extended() {
  static const QuestionSet set = questions::extended_questions();
  return set;
}

std::string family_of(const Question& question) {
  return question.where.substr(0, question.where.find(' '));
}

std::map<std::string, Names> families_by_variant() {
  std::map<std::string, Names> seen;
  for (const Question& question : extended().questions) {
    seen[question.variant].insert(family_of(question));
  }
  return seen;
}

Names without(Names names, const Names& some) {
  for (const std::string& name : some) names.erase(name);
  return names;
}

const Names kAll = {"uniform",           "bell",
                    "needle_visible",    "needle_hidden",
                    "negative_logits",   "large_logits",
                    "exact_lane",        "membership",
                    "weights",           "repeated_keys",
                    "cancelling_values", "denormal_values",
                    "extreme_values",    "channel_outliers",
                    "all_codes",         "half_ulp_weights",
                    "constant_values",   "poisoned",
                    "permuted_blocks"};
const Names kWide = without(kAll, {"all_codes"});                     // no cache of 8 bits or less
const Names kFlat = without(kWide, {"poisoned", "permuted_blocks"});  // and none in pages
const Names kNoValues = without(kAll, {"needle_visible", "needle_hidden", "membership",
                                       "denormal_values", "extreme_values", "constant_values"});

// Variants whose families are not kWide.
const std::map<std::string, Names>& exceptions() {
  static const std::map<std::string, Names> table = {
      {"full", kFlat},
      {"encoder", kFlat},
      {"cross", kFlat},
      {"quantised", kAll},
      {"quantised_query", kAll},
      {"nvfp4", {"uniform", "bell", "exact_lane", "all_codes", "poisoned", "permuted_blocks"}},
      {"mla", kNoValues},
      {"mla_sparse", without(kNoValues, {"all_codes"})},
      {"indexer", without(kNoValues, {"poisoned", "permuted_blocks"})},
      {"mla_cache_write", without(kNoValues, {"poisoned", "permuted_blocks"})},
      {"cache_write",
       without(kAll, {"needle_visible", "needle_hidden", "poisoned", "permuted_blocks"})},
      {"differential", kFlat},
      {"output_quantised", without(kWide, {"exact_lane", "membership"})},
      {"merge", {"bell"}},
      {"invalid", {}}};
  return table;
}

TEST(ExtendedQuestions, EveryVariantMeetsEveryFamilyThatApplies) {
  std::map<std::string, Names> seen = families_by_variant();
  for (const Variant& variant : all_variants()) {
    if (!variant.has_cases()) continue;
    const auto exception = exceptions().find(std::string(variant.name));
    EXPECT_EQ(seen[std::string(variant.name)],
              exception == exceptions().end() ? kWide : exception->second)
        << variant.name;
    seen.erase(std::string(variant.name));
  }
  EXPECT_TRUE(seen.empty()) << seen.begin()->first << " is no variant";
}

TEST(ExtendedQuestions, IdsAreInOrderUniqueAndSayVariantAndFamily) {
  const std::regex form("([a-z0-9_]+)-x-[a-z0-9_-]+-([a-z_]+)");
  std::string last;
  for (const Question& question : extended().questions) {
    EXPECT_LT(last, question.id);
    last = question.id;
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(question.id, parts, form)) << question.id;
    EXPECT_EQ(parts[1], question.variant);
    EXPECT_EQ(parts[2], family_of(question));
    EXPECT_FALSE(question.name.empty()) << question.id;
    EXPECT_FALSE(question.scenario.empty()) << question.id;
  }
  EXPECT_GE(extended().questions.size(), 600U);
  EXPECT_LE(extended().questions.size(), 2000U);
}

TEST(ExtendedQuestions, SeedsDifferUnlessRowsAreRelated) {
  Names related;
  for (const CaseRelation& relation : extended().relations) {
    for (const CaseRelation::Rows& rows : relation.rows) related.insert(rows.id);
  }
  Names where;
  for (const Question& question : extended().questions) {
    const std::string seed = question.where.substr(question.where.find(" seed "));
    if (related.contains(question.id)) continue;
    EXPECT_TRUE(where.insert(seed).second) << question.id;
  }
}

TEST(ExtendedQuestions, FitTheTier) {
  std::size_t total = 0;
  for (const Question& question : extended().questions) {
    const std::size_t bytes = stored_bytes(question);
    EXPECT_NO_THROW(
        golden::expect_case_within("extended", static_cast<std::int64_t>(bytes),
                                   golden::multiply_adds(AttentionProblem(question.operation))))
        << question.id;
    total += bytes;
  }
  RecordProperty("bytes", std::to_string(total));
  EXPECT_LE(total, std::size_t{250'000'000}) << "256 MB less index, manifest, sums and texts";
}

TEST(ExtendedQuestions, CoverHeadSizesAndLongContexts) {
  std::set<std::int64_t> head_sizes;
  std::int64_t longest = 0;
  for (const Question& question : extended().questions) {
    const auto* op = std::get_if<AttentionOp>(&question.operation);
    if (op == nullptr) continue;
    head_sizes.insert(op->head_size());
    for (std::int64_t r = 0; r < op->num_reqs(); ++r) longest = std::max(longest, op->seq_len(r));
  }
  for (const std::int64_t size : {16, 64, 80, 128, 192, 256, 512}) {
    EXPECT_TRUE(head_sizes.contains(size)) << size;
  }
  EXPECT_GE(longest, 6000);
}

TEST(ExtendedQuestions, ReferenceSupportsAll) {
  const auto reference = make_reference_backend();
  for (const Question& question : extended().questions) {
    const AttentionProblem problem(question.operation);
    EXPECT_EQ(reference->supports(problem), std::vector<std::string>()) << question.id;
  }
}

TEST(ExtendedQuestions, AnswersOfASampleAreFinite) {
  constexpr std::size_t kSample = 40;
  const std::vector<Question>& all = extended().questions;
  for (std::size_t i = 0; i < kSample; ++i) {
    const Question& question = all[i * all.size() / kSample];
    const OperationAnswer answer(question.operation);
    const AttentionProblem problem(question.operation);
    for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
      if (spec.name != "out" && spec.name != "logits") continue;
      for (const double x : answer.values(std::string(spec.name))) {
        const bool hidden = spec.name == "logits" && x == -HUGE_VAL;
        ASSERT_TRUE(std::isfinite(x) || hidden) << question.id << " " << spec.name;
      }
    }
  }
}

TEST(ExtendedQuestions, RelatedRowsExist) {
  std::map<std::string, const Question*> by_id;
  for (const Question& question : extended().questions) by_id[question.id] = &question;
  EXPECT_EQ(extended().relations.size(), 4 * kWide.size());
  for (const CaseRelation& relation : extended().relations) {
    for (const CaseRelation::Rows& rows : relation.rows) {
      ASSERT_TRUE(by_id.contains(rows.id)) << rows.id;
      const auto& op = std::get<AttentionOp>(by_id[rows.id]->operation);
      EXPECT_LE(rows.first_token + rows.count, op.num_tokens()) << rows.id;
    }
  }
}

}  // namespace
}  // namespace attn
