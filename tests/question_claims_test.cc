// What the drawn questions of attention claim by their family, checked with the reference's
// predicate and answers, not with the code that drew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "attn/random.h"
#include "golden/questions/draw.h"
#include "golden/questions/visible.h"
#include "tests/core_question_set.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

using questions::Question;

// The drawn ones of a family.
std::vector<const Question*> attention_of(questions::Family family) {
  std::vector<const Question*> some;
  const std::string begin = std::string(questions::name(family)) + " seed ";
  for (const Question* question : valid_attention()) {
    if (question->where.rfind(begin, 0) == 0) some.push_back(question);
  }
  return some;
}

std::uint64_t seed_of(const Question& question) {
  return std::stoull(question.where.substr(question.where.rfind(' ') + 1), nullptr, 16);
}

std::int64_t num_visible(const AttentionOp& op, std::int64_t r, std::int64_t h, std::int64_t i) {
  std::int64_t count = 0;
  for (const KeyRange& keys : visible_ranges(op, r, h, i)) count += keys.end - keys.begin;
  return count;
}

bool is_visible(const AttentionOp& op, std::int64_t r, std::int64_t h, std::int64_t i,
                std::int64_t k) {
  const std::vector<KeyRange> ranges = visible_ranges(op, r, h, i);
  return std::any_of(ranges.begin(), ranges.end(),
                     [k](const KeyRange& keys) { return keys.begin <= k && k < keys.end; });
}

TEST(QuestionClaims, EveryFamilyIsUsed) {
  for (std::uint32_t number = 1; number <= 19; ++number) {
    const auto family = static_cast<questions::Family>(number);
    EXPECT_FALSE(attention_of(family).empty()) << questions::name(family);
  }
}

TEST(QuestionClaims, NeedlesArePlacedByTheReferencesMask) {
  for (const Question* question : valid_attention()) {
    const auto& op = std::get<AttentionOp>(question->operation);
    for_each_row(op, [&](std::int64_t r, std::int64_t h, std::int64_t i) {
      for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
        ASSERT_EQ(questions::sees(op, r, h, i, k), is_visible(op, r, h, i, k))
            << question->id << " request " << r << " head " << h << " row " << i << " key " << k;
      }
    });
  }
}

TEST(QuestionClaims, RowsOfTheExactLaneSeeAPowerOfTwoOfKeys) {
  for (const Question* question : attention_of(questions::Family::kExactLane)) {
    const auto& op = std::get<AttentionOp>(question->operation);
    for_each_row(op, [&](std::int64_t r, std::int64_t h, std::int64_t i) {
      const std::int64_t count = num_visible(op, r, h, i);
      EXPECT_TRUE(count > 0 && (count & (count - 1)) == 0) << question->id << " sees " << count;
    });
  }
}

// The only key of a request whose dim 0 is not 0, in every KV head.
std::vector<std::int64_t> raised_keys(const AttentionOp& op, std::int64_t r) {
  std::vector<std::int64_t> keys;
  for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
    if (decode_key(op.kv, r, k, 0, 0) != 0.0) keys.push_back(k);
  }
  return keys;
}

TEST(QuestionClaims, HiddenNeedlesAreHiddenFromTheirProbeAndBesideWhatItSees) {
  int hidden = 0;
  for (const Question* question : attention_of(questions::Family::kNeedleHidden)) {
    const auto& op = std::get<AttentionOp>(question->operation);
    const bool shared =
        question->id.rfind("static_sink", 0) == 0 || question->id.rfind("cascade", 0) == 0;
    int here = 0;
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      const std::vector<std::int64_t> keys = raised_keys(op, r);
      if (keys.empty()) continue;
      ASSERT_TRUE(shared || keys.size() == 1) << question->id;
      const Words words =
          random_words(seed_of(*question), random_index(r, 0, 0, 0), RandomTensor::kNeedle, 0);
      const std::int64_t probe = below(words, static_cast<std::uint32_t>(op.query_len(r)));
      for (const std::int64_t key : keys) {
        if (is_visible(op, r, 0, probe, key)) continue;
        EXPECT_TRUE((key > 0 && is_visible(op, r, 0, probe, key - 1)) ||
                    (key + 1 < op.seq_len(r) && is_visible(op, r, 0, probe, key + 1)))
            << question->id << " key " << key;
        ++here;
      }
    }
    EXPECT_GE(here, 1) << question->id << " hides no needle";
    hidden += here;
  }
  EXPECT_GE(hidden, 20);
}

TEST(QuestionClaims, NeedlesTakeNearlyAllTheWeightOfARowThatSeesThem) {
  for (const questions::Family family :
       {questions::Family::kNeedleVisible, questions::Family::kNeedleHidden}) {
    for (const Question* question : attention_of(family)) {
      const auto& op = std::get<AttentionOp>(question->operation);
      const OperationAnswer answer(question->operation);
      for_each_row(op, [&](std::int64_t r, std::int64_t h, std::int64_t i) {
        const std::vector<std::int64_t> keys = raised_keys(op, r);
        if (keys.size() != 1 || !is_visible(op, r, h, i, keys[0])) return;
        const std::int64_t kv_head = h / op.num_queries_per_kv();
        const double wanted = decode_value(op.kv, r, keys[0], kv_head, 0);
        EXPECT_NEAR(value_at(answer.view("out"), op.query_start(r) + i, h, 0), wanted, 1e-4)
            << question->id;
      });
    }
  }
}

TEST(QuestionClaims, MembershipListsTheKeysThatTheReferenceSees) {
  for (const Question* question : attention_of(questions::Family::kMembership)) {
    const auto& op = std::get<AttentionOp>(question->operation);
    const OperationAnswer answer(question->operation);
    for_each_row(op, [&](std::int64_t r, std::int64_t h, std::int64_t i) {
      const std::int64_t count = num_visible(op, r, h, i);
      for (std::int64_t d = 0; d < op.head_size_v(); ++d) {
        double listed = 0.0;
        for (std::int64_t k = 8 * d; k < std::min(8 * (d + 1), op.seq_len(r)); ++k) {
          if (is_visible(op, r, h, i, k)) listed += std::ldexp(1.0, static_cast<int>(k % 8));
        }
        const double out = value_at(answer.view("out"), op.query_start(r) + i, h, d);
        EXPECT_NEAR(out * static_cast<double>(std::max<std::int64_t>(count, 1)), listed, 1e-10)
            << question->id;
      }
    });
  }
}

TEST(QuestionClaims, ASeenPhantomKeyWouldTakeAllTheWeightOfNegativeLogits) {
  for (const Question* question : attention_of(questions::Family::kNegativeLogits)) {
    const auto& op = std::get<AttentionOp>(question->operation);
    const OperationAnswer answer(question->operation);
    for_each_row(op, [&](std::int64_t r, std::int64_t h, std::int64_t i) {
      const double lse = value_at(answer.view("lse"), h, op.query_start(r) + i);
      EXPECT_LT(lse, -100.0) << question->id;  // of a key of zeros alone: 0
    });
  }
}

TEST(QuestionClaims, ConstantValuesAreTheOutputButForTheSinksShare) {
  for (const Question* question : attention_of(questions::Family::kConstantValues)) {
    const auto& op = std::get<AttentionOp>(question->operation);
    const OperationAnswer answer(question->operation);
    for_each_row(op, [&](std::int64_t r, std::int64_t h, std::int64_t i) {
      if (num_visible(op, r, h, i) == 0 || !op.lse_includes_sink) return;
      const std::int64_t token = op.query_start(r) + i;
      const double sink = value_at(op.sinks, h);
      const double share = std::exp(sink - value_at(answer.view("lse"), h, token));
      const double value = decode_value(op.kv, r, 0, h / op.num_queries_per_kv(), 0);
      EXPECT_NEAR(value_at(answer.view("out"), token, h, 0), value * (1.0 - share), 1e-12)
          << question->id;
    });
  }
}

TEST(QuestionClaims, AllCodesHoldMostCodesOfTheirTypeAndNoNaN) {
  for (const Question* question : attention_of(questions::Family::kAllCodes)) {
    const auto& op = std::get<AttentionOp>(question->operation);
    if (bits(op.kv.key.dtype) != 8) continue;
    std::set<std::uint64_t> codes;
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      for (std::int64_t k = 0; k < op.seq_len(r); ++k) {
        const KvSlot at = kv_slot(op.kv, r, k);
        for (std::int64_t h = 0; h < op.num_kv_heads(); ++h) {
          for (std::int64_t d = 0; d < op.head_size(); ++d) {
            const std::uint64_t code =
                op.kv.paged() ? load_code(op.kv.key.dtype, op.kv.key.at(at.block, at.slot, h, d))
                              : load_code(op.kv.key.dtype, op.kv.key.at(at.block, h, d));
            EXPECT_TRUE(std::isfinite(decode(op.kv.key.dtype, code))) << question->id;
            codes.insert(code);
          }
        }
      }
    }
    EXPECT_GE(codes.size(), 220U) << question->id;
  }
}

}  // namespace
}  // namespace attn
