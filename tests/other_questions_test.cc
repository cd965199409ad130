// The questions of the operations beside `attention`: they validate, are answered, and hold what
// they are about; expected values come from the definitions.
#include <gtest/gtest.h>

#include <algorithm>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "attn/case_writer.h"
#include "attn/error.h"
#include "core/special_values.h"
#include "golden/questions/latent_setup.h"
#include "golden/questions/other_questions.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

using questions::Question;

const std::vector<Question>& all() {
  static const std::vector<Question> questions = questions::other_questions();
  return questions;
}

const Question& named(const std::string& id) {
  for (const Question& question : all()) {
    if (question.id == id) return question;
  }
  throw Error("no question " + id);
}

template <class Op>
const Op& operation(const std::string& id) {
  return std::get<Op>(named(id).operation);
}

std::string error_of(const Operation& operation) {
  try {
    const AttentionProblem problem(operation);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// Values of a rank 3 output [a, b, c].
double at(const OperationAnswer& answer, const std::string& name, std::int64_t a, std::int64_t b,
          std::int64_t c) {
  return value_at(answer.view(name), a, b, c);
}

TEST(OtherQuestions, AreOrderedAndCoverTheTableOfVariants) {
  const std::map<std::string, int> expected = {
      {"differential", 2}, {"mla", 9},         {"mla_sparse", 4},      {"indexer", 2},
      {"merge", 6},        {"cache_write", 7}, {"mla_cache_write", 3}, {"invalid", 8}};
  std::map<std::string, int> counts;
  std::string last;
  for (const Question& question : all()) {
    EXPECT_LT(last, question.id);
    last = question.id;
    EXPECT_TRUE(question.id.starts_with(question.variant + "-")) << question.id;
    EXPECT_FALSE(question.name.empty() || question.scenario.empty() || question.rulings.empty())
        << question.id;
    ++counts[question.variant];
  }
  EXPECT_EQ(counts, expected);
}

TEST(OtherQuestions, ValidOnesAreAnswered) {
  int answered = 0;
  for (const Question& question : all()) {
    if (question.result != CaseResult::kValid) continue;
    SCOPED_TRACE(question.id);
    ASSERT_EQ(error_of(question.operation), "");
    const OperationAnswer answer(question.operation);
    ++answered;
    for (const char* name : {"out", "logits"}) {
      if (std::holds_alternative<IndexerOp>(question.operation) != (name[0] == 'l')) continue;
      if (question.variant.ends_with("cache_write")) continue;
      for (const double value : answer.values(name)) {
        EXPECT_FALSE(std::isnan(value) || value == kInf) << name;
      }
    }
  }
  EXPECT_EQ(answered, 33);
}

// invalid-<field> or invalid-<field>-<what>: the text begins with the field.
TEST(OtherQuestions, InvalidOnesAreRejectedForTheirField) {
  int rejected = 0;
  for (const Question& question : all()) {
    if (question.result == CaseResult::kValid) continue;
    const std::string rest = question.id.substr(std::string("invalid-").size());
    const std::string field = rest.substr(0, rest.find('-'));
    EXPECT_TRUE(error_of(question.operation).starts_with(field))
        << question.id << ": " << error_of(question.operation);
    ++rejected;
  }
  EXPECT_EQ(rejected, 8);
}

// Interfaces with float32 attributes can pose the same problem.
TEST(OtherQuestions, AttributesAreExactInBinary32) {
  const auto exact = [](double x) { return static_cast<double>(static_cast<float>(x)) == x; };
  for (const Question& question : all()) {
    if (const auto* op = std::get_if<MlaOp>(&question.operation)) {
      EXPECT_TRUE(exact(op->scale));
    }
    if (const auto* op = std::get_if<MlaSparseOp>(&question.operation)) {
      EXPECT_TRUE(exact(op->mla.scale));
    }
    if (const auto* op = std::get_if<DifferentialOp>(&question.operation)) {
      EXPECT_TRUE(exact(op->attention.scale) && exact(op->lambda) && exact(op->lambda_init) &&
                  exact(op->eps));
    }
  }
}

std::vector<std::byte> case_file(const Question& question) {
  return to_case_file({question.id, question.variant, question.name, question.scenario,
                       question.flags, question.result},
                      question.operation);
}

// A case file can say them, and says nothing that makes an invalid one valid.
TEST(OtherQuestions, SurviveTheirCaseFile) {
  for (const Question& question : all()) {
    SCOPED_TRACE(question.id);
    const CaseFile file = CaseFile::parse(case_file(question), question.id);
    EXPECT_EQ(file.flags(), question.flags);
    if (question.result == CaseResult::kInvalid) {
      EXPECT_THROW(file.problem(), Error);
      continue;
    }
    const Operation read = file.problem().operation();
    const OperationAnswer expected(question.operation);
    const OperationAnswer actual(read);
    for (const auto& [name, description] : file.outputs()) {
      EXPECT_EQ(actual.codes(name), expected.codes(name)) << name;
    }
  }
}

// The question, answers of 8 bytes, and conditioning sums: four floats an element (differential
// eight, and two doubles), 17 doubles a row.
TEST(OtherQuestions, FitIntoACaseOf64Kilobytes) {
  for (const Question& question : all()) {
    std::size_t bytes = case_file(question).size() + 1024;
    const std::size_t sums_of_an_element = question.variant == "differential" ? 48 : 16;
    if (question.result == CaseResult::kValid) {
      for (const OutputSpec& spec :
           output_specs(AttentionProblem(question.operation), DType::kF64)) {
        std::int64_t units = 1;
        for (const std::int64_t size : spec.shape) units *= size;
        bytes += static_cast<std::size_t>(units * unit_bytes(spec.dtype));
        if (spec.name == "out") bytes += static_cast<std::size_t>(units) * sums_of_an_element;
        if (spec.name == "lse") bytes += static_cast<std::size_t>(units) * 136;
      }
    }
    EXPECT_LE(bytes, 64'000U) << question.id;
  }
}

TEST(OtherQuestions, EmptyRowsOfLatentAttentionAreZero) {
  const OperationAnswer answer(named("mla-absorbed-empty").operation);
  for (std::int64_t token : {0, 1, 3}) {  // positions -2, -1 of one key; a request without keys
    for (std::int64_t head = 0; head < 2; ++head) {
      EXPECT_EQ(value_at(answer.view("lse"), head, token), -kInf);
      for (std::int64_t d = 0; d < 32; ++d) EXPECT_EQ(at(answer, "out", token, head, d), 0.0);
    }
  }
  // The third row sees one key: the answer is its latent part.
  const auto& op = operation<MlaOp>("mla-absorbed-empty");
  for (std::int64_t d = 0; d < 32; ++d) {
    EXPECT_EQ(at(answer, "out", 2, 1, d),
              value_at(op.kv_cache, int_at(op.block_table, 0, 0), 0, d));
  }
}

// Whoever takes codes for values, or a scale for another group's, is off by more than half a step.
TEST(OtherQuestions, RowsWithScalesOfTheirOwnDecodeToWhatWasWritten) {
  std::vector<float> row(576);
  for (std::size_t d = 0; d < row.size(); ++d) {
    row[d] = std::ldexp(static_cast<float>(static_cast<int>(d % 9) - 4), static_cast<int>(d / 128));
  }
  const auto bytes = questions::ds_mla_row(row);
  for (std::size_t d = 0; d < 512; ++d) {
    float scale = 0.0F;
    std::memcpy(&scale, bytes.data() + 512 + d / 128 * 4, 4);
    EXPECT_FLOAT_EQ(scale, 4.0F * static_cast<float>(1 << d / 128) / 448.0F);
    const double decoded = decode(DType::kF8E4M3FN, bytes[d]) * scale;
    EXPECT_NEAR(decoded, row[d], std::fabs(row[d]) / 16.0 + 1e-9) << d;
  }
  for (std::size_t d = 0; d < 64; ++d) {
    EXPECT_EQ(decode(DType::kBF16, load_code(DType::kBF16, bytes.data() + 528 + 2 * d)),
              row[512 + d]);
  }
}

TEST(OtherQuestions, ListsHaveDuplicatesAndGaps) {
  for (const char* id : {"mla_sparse-request", "mla_sparse-slot"}) {
    const auto& op = operation<MlaSparseOp>(id);
    int gaps = 0;
    int duplicates = 0;
    for (std::int64_t t = 0; t < op.topk_indices.shape[0]; ++t) {
      std::set<std::int64_t> seen;
      for (std::int64_t i = 0; i < op.topk_indices.shape[1]; ++i) {
        const std::int64_t index = int_at(op.topk_indices, t, i);
        if (index < 0) {
          ++gaps;
        } else if (!seen.insert(index).second) {
          ++duplicates;
        }
      }
    }
    EXPECT_GT(gaps, 0) << id;
    EXPECT_GT(duplicates, 0) << id;
  }
}

TEST(OtherQuestions, SinksOfRowsWithoutKeysAreTheirLse) {
  const auto& op = operation<MlaSparseOp>("mla_sparse-sinks");
  const OperationAnswer answer(named("mla_sparse-sinks").operation);
  EXPECT_EQ(value_at(answer.view("lse"), 0, 1), value_at(op.sinks, 0));
  EXPECT_EQ(value_at(answer.view("lse"), 1, 1), -kInf);
  EXPECT_TRUE(std::isfinite(value_at(answer.view("lse"), 1, 0)));
}

TEST(OtherQuestions, CutListsOfLengthZeroSeeNothing) {
  const OperationAnswer answer(named("mla_sparse-topk_lens").operation);
  for (std::int64_t token = 0; token < 4; ++token) {
    EXPECT_EQ(value_at(answer.view("lse"), 0, token) == -kInf, token == 1) << token;
  }
}

TEST(OtherQuestions, LogitsAreFiniteInsideTheirRangeOnly) {
  for (const char* id : {"indexer-ranges", "indexer-fp8"}) {
    const auto& op = operation<IndexerOp>(id);
    const OperationAnswer answer(named(id).operation);
    for (std::int64_t t = 0; t < op.query.shape[0]; ++t) {
      for (std::int64_t n = 0; n < op.key.shape[0]; ++n) {
        double expected = -kInf;
        if (n >= int_at(op.k_start, t) && n < int_at(op.k_end, t)) {
          expected = 0.0;
          for (std::int64_t h = 0; h < op.query.shape[1]; ++h) {
            double product = 0.0;
            for (std::int64_t d = 0; d < op.query.shape[2]; ++d) {
              product += value_at(op.query, t, h, d) * value_at(op.key, n, d);
            }
            if (op.k_scale.present()) product *= value_at(op.k_scale, n, 0);
            expected += value_at(op.weights, t, h) * std::max(product, 0.0);
          }
        }
        const double actual = value_at(answer.view("logits"), t, n);
        if (std::isinf(expected)) {
          EXPECT_EQ(actual, expected) << id;
        } else {
          EXPECT_NEAR(actual, expected, 1e-10 * (1.0 + std::fabs(expected))) << id;
        }
      }
    }
  }
}

// By the definition, in long double, one element at a time.
TEST(OtherQuestions, MergesAreWeightedMeansOfTheLiveParts) {
  int empty_states = 0;
  int empty_unions = 0;
  for (const Question& question : all()) {
    if (question.variant != "merge") continue;
    SCOPED_TRACE(question.id);
    const auto& op = std::get<MergeStatesOp>(question.operation);
    const OperationAnswer answer(question.operation);
    const std::int64_t* shape = op.out_parts.shape;
    for (std::int64_t t = 0; t < shape[1]; ++t) {
      for (std::int64_t h = 0; h < shape[2]; ++h) {
        std::vector<std::pair<std::int64_t, long double>> live;  // part, natural lse
        for (std::int64_t p = 0; p < shape[0]; ++p) {
          const double lse = value_at(op.lse_parts, p, h, t);
          if (std::isinf(lse)) {
            ++empty_states;
            EXPECT_TRUE(std::isnan(value_at(op.out_parts, p, t, h, 0)));
          } else {
            live.emplace_back(p, op.lse_base_2 ? lse * std::log(2.0L) : lse);
          }
        }
        long double largest = -std::numeric_limits<long double>::infinity();
        for (const auto& [part, lse] : live) largest = std::max(largest, lse);
        long double sum = 0.0L;
        for (const auto& [part, lse] : live) sum += std::exp(lse - largest);
        empty_unions += live.empty() ? 1 : 0;
        const double lse = value_at(answer.view("lse"), h, t);
        if (live.empty()) {
          EXPECT_EQ(lse, -kInf);
        } else {
          EXPECT_NEAR(lse, static_cast<double>(largest + std::log(sum)), 1e-11);
        }
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          long double out = 0.0L;
          for (const auto& [part, part_lse] : live) {
            out += std::exp(part_lse - largest) / sum * value_at(op.out_parts, part, t, h, d);
          }
          EXPECT_NEAR(at(answer, "out", t, h, d), static_cast<double>(out), 1e-13);
        }
      }
    }
  }
  EXPECT_GT(empty_states, 20);
  EXPECT_EQ(empty_unions, 1);
}

// Slots that are written; fails unless that of token 0, which holds the special values, is one.
std::set<std::int64_t> written_slots(const Question& question, const TensorView& slot_mapping) {
  std::set<std::int64_t> written;
  bool skips = false;
  for (std::int64_t i = 0; i < slot_mapping.shape[0]; ++i) {
    const std::int64_t slot = int_at(slot_mapping, i);
    skips = skips || slot == -1;
    if (slot >= 0) {
      EXPECT_TRUE(written.insert(slot).second) << slot;
    }
  }
  EXPECT_GE(int_at(slot_mapping, 0), 0);
  EXPECT_GE(written.size(), 3U);
  const auto& rulings = question.rulings;
  if (std::count(rulings.begin(), rulings.end(), "slot_minus_one_skipped") > 0) {
    EXPECT_TRUE(skips);
  }
  return written;
}

// Slots [num_blocks, block_size, ...] whose bits differ.
std::set<std::int64_t> changed_slots(const TensorView& before, const TensorView& after) {
  std::set<std::int64_t> changed;
  const auto inner = [&](int axis) { return before.rank > axis ? before.shape[axis] : 1; };
  for (std::int64_t block = 0; block < before.shape[0]; ++block)
    for (std::int64_t slot = 0; slot < before.shape[1]; ++slot)
      for (std::int64_t h = 0; h < inner(2); ++h)
        for (std::int64_t d = 0; d < inner(3); ++d)
          if (load_code(before.dtype, before.at(block, slot, h, d)) !=
              load_code(after.dtype, after.at(block, slot, h, d)))
            changed.insert(block * before.shape[1] + slot);
  return changed;
}

TEST(OtherQuestions, WritesChangeTheirSlotsAndNoOther) {
  int compared = 0;
  for (const Question& question : all()) {
    if (!question.variant.ends_with("cache_write")) continue;
    SCOPED_TRACE(question.id);
    const OperationAnswer answer(question.operation);
    if (const auto* op = std::get_if<CacheWriteOp>(&question.operation)) {
      const std::set<std::int64_t> written = written_slots(question, op->slot_mapping);
      EXPECT_EQ(changed_slots(op->cache.key, answer.view("key_cache_after")), written);
      EXPECT_EQ(changed_slots(op->cache.value, answer.view("value_cache_after")), written);
    } else {
      const auto& latent = std::get<MlaCacheWriteOp>(question.operation);
      const std::set<std::int64_t> written = written_slots(question, latent.slot_mapping);
      EXPECT_EQ(changed_slots(latent.kv_cache, answer.view("kv_cache_after")), written);
    }
    ++compared;
  }
  EXPECT_EQ(compared, 10);
}

// Codes of token 0, head 0, worked out by hand.
void expect_codes(const std::string& id, const char* output,
                  const std::vector<std::uint64_t>& expected) {
  const auto& op = operation<CacheWriteOp>(id);
  const OperationAnswer answer(named(id).operation);
  const TensorView after = answer.view(output);
  const std::int64_t slot = int_at(op.slot_mapping, 0);
  for (std::size_t d = 0; d < expected.size(); ++d) {
    EXPECT_EQ(load_code(after.dtype, after.at(slot / 4, slot % 4, 0, d)), expected[d])
        << id << " " << output << " dim " << d;
  }
}

TEST(OtherQuestions, WritesCopyBits) {
  expect_codes("cache_write-auto", "key_cache_after", {0x8000, 0x7F80, 0xFF80, 0x7FC0, 0x0001});
  expect_codes("cache_write-auto", "value_cache_after", {0x7FC0, 0x8000});
}

TEST(OtherQuestions, WritesConvertTiesToEven) {
  expect_codes("cache_write-auto-converting", "key_cache_after",
               {0x3F80, 0x3F82, 0xBF80, 0xBF82, 0x0000, 0x0002, 0x8000, 0x7F80, 0x7FC0});
  expect_codes("cache_write-auto-converting", "value_cache_after",
               {0x3C00, 0x3C02, 0x6800, 0x0000, 0x0002, 0x7BFF, 0xFC00, 0x8000});
}

TEST(OtherQuestions, WritesSaturateBelow16Bits) {
  expect_codes("cache_write-fp8_e4m3", "key_cache_after",
               {0x7E, 0xFE, 0x7F, 0x7E, 0xFE, 0x00, 0x80});
  expect_codes("cache_write-fp8_e4m3", "value_cache_after", {0xFE, 0x00, 0x7F});
  expect_codes("cache_write-fp8_e5m2-per_head", "key_cache_after", {0x7B, 0xFB, 0x7E, 0x7B});
  expect_codes("cache_write-fp8_e5m2-per_head", "value_cache_after", {0xFB, 0x7B});
  expect_codes("cache_write-fp8_e4m3fnuz", "key_cache_after",
               {0x00, 0x40, 0x42, 0xC0, 0x7F, 0x7F, 0xFF, 0x7F, 0x80, 0x01, 0x00, 0x02, 0x00});
  expect_codes("cache_write-fp8_e4m3fnuz", "value_cache_after", {0x00, 0x00});
}

TEST(OtherQuestions, WritesComputeTheScaleOfATokenAndHead) {
  const auto i8 = [](int value) { return static_cast<std::uint64_t>(value) & 0xFF; };
  const std::string int8 = "cache_write-int8_per_token_head";
  expect_codes(int8, "key_cache_after",
               {i8(127), i8(1), i8(-1), i8(2), i8(-2), i8(3), i8(-3), i8(127), i8(-127), i8(0),
                i8(-1), i8(0), i8(100), i8(-127), i8(65), i8(-65)});
  expect_codes(int8, "value_cache_after", std::vector<std::uint64_t>(8, 0));
  const std::string fp8 = "cache_write-fp8_per_token_head";
  expect_codes(fp8, "key_cache_after",
               {0xFE, 0x38, 0x3A, 0xB8, 0x00, 0x02, 0x7E, 0x80, 0x00, 0x58, 0x5A, 0xD8, 0x60, 0x00,
                0x7D, 0xFE});
  for (const std::string& id : {int8, fp8}) {
    const OperationAnswer answer(named(id).operation);
    const std::int64_t slot = int_at(operation<CacheWriteOp>(id).slot_mapping, 0);
    EXPECT_EQ(value_at(answer.view("k_scale_cache_after"), slot / 4, slot % 4, 0), 1.0);
    EXPECT_EQ(value_at(answer.view("v_scale_cache_after"), slot / 4, slot % 4, 0),
              static_cast<double>(1e-6F));
  }
}

TEST(OtherQuestions, LatentWritesPutRopeBehindLatent) {
  for (const char* id : {"mla_cache_write-auto", "mla_cache_write-fp8_ds_mla"}) {
    const auto& op = operation<MlaCacheWriteOp>(id);
    const OperationAnswer answer(named(id).operation);
    const TensorView after = answer.view("kv_cache_after");
    const std::int64_t slot = int_at(op.slot_mapping, 0);
    ASSERT_GE(slot, 0) << id;
    const auto* row = static_cast<const std::byte*>(
        static_cast<const void*>(after.at(slot / 4, slot % 4, std::int64_t{0})));
    const std::int64_t rope = std::string(id).ends_with("auto") ? 2 * 32 : 528;
    for (std::int64_t d = 0; d < op.k_pe.shape[1]; ++d) {
      EXPECT_EQ(load_code(DType::kBF16, row + rope + 2 * d),
                load_code(DType::kBF16, op.k_pe.at(0, d)))
          << id;
    }
  }
}

TEST(OtherQuestions, AGroupOfZerosHasTheSmallestScale) {
  const auto& op = operation<MlaCacheWriteOp>("mla_cache_write-fp8_ds_mla");
  const OperationAnswer answer(named("mla_cache_write-fp8_ds_mla").operation);
  const TensorView after = answer.view("kv_cache_after");
  const std::int64_t slot = int_at(op.slot_mapping, 0);
  const std::byte* row = after.at(slot / 4, slot % 4, std::int64_t{0});
  const auto scale = [&](std::int64_t group) {
    return decode(DType::kF32, load_code(DType::kF32, row + 512 + 4 * group));
  };
  EXPECT_EQ(scale(1), 0x1p-126);
  for (std::int64_t d = 128; d < 256; ++d) EXPECT_EQ(row[d], std::byte{0}) << d;
  double largest = 0.0;
  for (std::int64_t d = 0; d < 128; ++d) {
    largest = std::max(largest, std::fabs(value_at(op.kv_c, 0, d)));
  }
  EXPECT_NEAR(scale(0), largest / 448.0, 1e-6);
  EXPECT_GT(largest, 8.0);  // the outliers of the channels
}

}  // namespace
}  // namespace attn
