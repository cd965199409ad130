// The bound of softmax rows against numpy's, which was written apart, and against values by hand.
#include "judge/softmax_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "core/special_values.h"
#include "judge/summation_depth.h"

namespace attn::judge {
namespace {

using nlohmann::json;

double real(const json& node) {
  return node.is_string() ? std::strtod(node.get<std::string>().c_str(), nullptr)
                          : node.get<double>();
}

std::optional<DType> type_at(const json& terms, const char* name) {
  if (!terms.contains(name)) return std::nullopt;
  return dtype_from_name(terms.at(name).get<std::string>()).value();
}

double real_at(const json& terms, const char* name, double otherwise) {
  return terms.contains(name) ? real(terms.at(name)) : otherwise;
}

SoftmaxTerms terms_of(const json& from) {
  SoftmaxTerms terms;
  terms.dot_length = from.at("dot_length");
  terms.num_biases = from.value("num_biases", 0);
  terms.soft_cap = real_at(from, "soft_cap", 0.0);
  terms.abs_scale = real(from.at("abs_scale"));
  terms.sink = from.value("sink", false);
  terms.lse_includes_sink = from.value("lse_includes_sink", true);
  terms.query = type_at(from, "query");
  terms.key = type_at(from, "key");
  terms.value = type_at(from, "value");
  terms.query_scale = real_at(from, "query_scale", 1.0);
  terms.key_scale = real_at(from, "key_scale", 1.0);
  terms.value_scale = real_at(from, "value_scale", 1.0);
  terms.key_scale_in_cache = from.value("key_scale_in_cache", false);
  terms.value_scale_in_cache = from.value("value_scale_in_cache", false);
  terms.projected = from.value("projected", 0);
  terms.w_uk = type_at(from, "w_uk");
  terms.w_uv = type_at(from, "w_uv");
  return terms;
}

RowSums sums_of(const json& row) {
  RowSums sums;
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] = real(row.at(i));
  return sums;
}

void expect_close(double actual, const json& expected, const char* what) {
  const double value = real(expected);
  if (std::isinf(value)) {
    EXPECT_EQ(actual, value) << what;
  } else {
    EXPECT_NEAR(actual, value, 1e-12 * std::fabs(value)) << what;
  }
}

void expect_case(const RowBound& bound, const json& expected) {
  EXPECT_EQ(!bound.vacuous.empty(), expected.at("vacuous").get<bool>()) << bound.vacuous;
  if (!bound.vacuous.empty()) {
    EXPECT_EQ(bound.lse, kInf);
    return;
  }
  const json& out = expected.at("out");
  expect_close(bound.pv, out.at(0), "pv");
  expect_close(bound.pav, out.at(1), "pav");
  expect_close(bound.puv, out.at(2), "puv");
  expect_close(bound.v, out.at(3), "v");
  expect_close(bound.out, out.at(4), "out");
  expect_close(bound.constant, out.at(5), "constant");
  expect_close(bound.lse, expected.at("lse"), "lse");
  expect_close(bound.value_limit, expected.at("value_limit"), "value_limit");
  EXPECT_EQ(bound.root_pv, 0.0);
}

TEST(SoftmaxBounds, AreThoseOfNumpy) {
  std::ifstream file(ATTN_TEST_DATA "/row_bounds.json");
  const json data = json::parse(file);
  ASSERT_GE(data.at("cases").size(), 130u);
  for (const json& c : data.at("cases")) {
    const std::string contract = c.at("contract").dump();
    SCOPED_TRACE(c.at("about").get<std::string>() + ", row " + c.at("row").dump() + ": " +
                 contract);
    const DType stored = dtype_from_name(c.at("stored").get<std::string>()).value();
    const SoftmaxBound bound(with_stored_type(resolve(parse_contract(contract, "case")), stored),
                             terms_of(c.at("terms")));
    const json& row = data.at("rows").at(c.at("row").get<std::size_t>());
    expect_case(bound.row(sums_of(row)), c);
  }
}

// ---- depth of sums, roundings counted by hand; the unit is 1

double depth(Summation sum, double n, double span, bool contiguous = false) {
  return summation_depth(sum, n, span, contiguous) / unit_roundoff(sum.type);
}

TEST(SummationDepth, OfAChainIsItsNumberOfProducts) {
  EXPECT_EQ(depth({}, 1, 1), 1.0);
  EXPECT_EQ(depth({}, 100, 100), 100.0);
  EXPECT_EQ(depth({}, 3, 100), 3.0);                 // masked keys add zeros
  EXPECT_EQ(depth({.fused = false}, 10, 10), 11.0);  // and the product itself
  EXPECT_EQ(depth({.mode = RoundingMode::kTruncate}, 10, 10), 20.0);
  EXPECT_EQ(depth({.type = NumberFormat::kBF16}, 10, 10), 10.0);
}

TEST(SummationDepth, OfLanesIsTheLongestAndTheirTree) {
  EXPECT_EQ(depth({.lanes = 16}, 128, 128), 12.0);  // 8 in a lane, 4 levels
  EXPECT_EQ(depth({.lanes = 16}, 129, 129), 13.0);
  EXPECT_EQ(depth({.lanes = 6}, 12, 12), 5.0);  // 2, and a tree of 6 is 3 deep
  EXPECT_EQ(depth({.lanes = 8}, 3, 80), 6.0);   // all 3 may share a lane
  EXPECT_EQ(depth({.lanes = 8}, 1, 1), 4.0);
}

TEST(SummationDepth, OfBlocksIsOneOfThemAndTheirNumber) {
  EXPECT_EQ(depth({.block = 64}, 1000, 1000), 81.0);  // 64, and 1000 in a row touch 17 blocks
  EXPECT_EQ(depth({.block = 64}, 10, 10), 12.0);      // 10 in a row may lie in 2 blocks
  EXPECT_EQ(depth({.block = 64}, 5, 640), 10.0);      // 5 apart may lie in 5, or all in one
  EXPECT_EQ(depth({.lanes = 4, .block = 64}, 1000, 1000), 35.0);  // 16 in a lane, 17, 2 levels
}

TEST(SummationDepth, OfMatrixInstructionsIsTheirNumberTimesTheirAddends) {
  EXPECT_EQ(depth({.mma_k = 16}, 128, 128, true), 144.0);   // 8 of 16 products, sum and result
  EXPECT_EQ(depth({.mma_k = 16}, 128, 128, false), 162.0);  // begun in the midst of one
  EXPECT_EQ(depth({.mma_k = 16}, 2, 1000), 36.0);           // 2 products are in 2 at most
  EXPECT_EQ(depth({.mode = RoundingMode::kTruncate, .mma_k = 8}, 16, 16, true), 40.0);
  // Two instructions a block whose accumulator is coarse, and 4 blocks (5 touched) added finely.
  const Summation promoted{.block = 32, .mma_k = 16, .inner = 0x1p-13};
  EXPECT_EQ(summation_depth(promoted, 128, 128, true), 36 * 0x1p-13 + 5 * 0x1p-24);
}

TEST(SummationDepth, GammaEndsAtOneHalf) {
  EXPECT_EQ(gamma_factor(0.0), 0.0);
  EXPECT_EQ(gamma_factor(0.2), 0.25);
  EXPECT_EQ(gamma_factor(0.5), kInf);
  EXPECT_EQ(gamma_factor(NAN), kInf);
}

// ---- rows by hand

Arithmetic exact_arithmetic() {
  return resolve({"fp32", R"({
    "vector": "exact", "dot": {"type": "exact"}, "sum": {"type": "exact"}, "pv": {"type": "exact"},
    "scale_roundings": 0, "cap": {"rel": "0x0p+0"}, "bias_rel": "0x0p+0",
    "exp": {"rel": "0x0p+0", "abs": "0x0p+0"}, "merge": {"lse": "exact"}, "log": {"abs": "0x0p+0"},
    "out": "exact", "lse": "exact"})"});
}

SoftmaxTerms f32_terms() {
  SoftmaxTerms terms;
  terms.dot_length = 64;
  terms.abs_scale = 0.125;
  terms.query = terms.key = terms.value = DType::kF32;
  return terms;
}

// Two keys of equal logit 1, a = 2.
RowSums two_keys() {
  RowSums sums{};
  sums[kRowMax] = sums[kRowKeysMax] = 1.0;
  sums[kRowLse] = 1.0 + std::log(2.0);
  sums[kRowVisible] = sums[kRowSpan] = 2.0;
  sums[kRowMass] = 1.0;
  sums[kRowPa] = sums[kRowAMax] = 2.0;
  sums[kRowQueryL1] = sums[kRowKeyL1] = 3.0;
  sums[kRowQueryMax] = sums[kRowKeyMax] = sums[kRowValueMax] = 1.0;
  return sums;
}

// Of an element with all sums 1.
double bound_of(const RowBound& b) {
  return b.vacuous.empty() ? b.pv + b.pav + b.puv + b.v + b.out + b.constant : kInf;
}

TEST(SoftmaxBounds, OfExactArithmeticAreZero) {
  SoftmaxTerms terms = f32_terms();
  terms.num_biases = 3;
  terms.soft_cap = 20.0;
  terms.sink = true;
  terms.key = terms.value = std::nullopt;
  RowSums sums = two_keys();
  sums[kRowBiasMax] = 100.0;
  const RowBound bound = SoftmaxBound(exact_arithmetic(), terms).row(sums);
  EXPECT_EQ(bound.vacuous, "");
  EXPECT_EQ(bound_of(bound), 0.0);
  EXPECT_EQ(bound.lse, 0.0);
  EXPECT_EQ(bound.value_limit, kInf);
}

TEST(SoftmaxBounds, OfOneRoundingAreThatRounding) {
  Arithmetic arithmetic = exact_arithmetic();
  arithmetic.out = {NumberFormat::kF16};
  arithmetic.lse = {NumberFormat::kBF16};
  RowBound bound = SoftmaxBound(arithmetic, f32_terms()).row(two_keys());
  EXPECT_EQ(bound.out, 0x1p-11);
  EXPECT_EQ(bound.constant, 0x1p-25);
  EXPECT_EQ(bound.pv + bound.pav + bound.puv + bound.v, 0.0);
  EXPECT_DOUBLE_EQ(bound.lse, 0x1p-8 * (1.0 + std::log(2.0)) + 0x1p-134);

  // Values rounded: sum p |v| counts.
  arithmetic = exact_arithmetic();
  arithmetic.value = {NumberFormat::kBF16};
  bound = SoftmaxBound(arithmetic, f32_terms()).row(two_keys());
  EXPECT_DOUBLE_EQ(bound.pv, 0x1p-8 / (1.0 - 0x1p-8));
  EXPECT_DOUBLE_EQ(bound.constant, (1.0 + bound.pv) * 0x1p-134);
  EXPECT_EQ(bound.out, 0.0);
  EXPECT_EQ(bound.lse, 0.0);

  // Scores off by g a: weights by expm1(2g)/(2g) g a, of which sum p a = 2 in the row sum.
  arithmetic = exact_arithmetic();
  arithmetic.query = {NumberFormat::kBF16, RoundingMode::kNearest, 0x1p+2};
  SoftmaxTerms terms = f32_terms();
  terms.query = DType::kBF16;  // scaled: rounded for all that
  bound = SoftmaxBound(arithmetic, terms).row(two_keys());
  const double g = 0x1p-8 / (1.0 - 0x1p-8);
  const double quantum = (1.0 + g) * 0x1p-136 * 3.0;
  EXPECT_NEAR(bound.pav, g * std::expm1(2 * g) / (2 * g) / (1.0 - std::expm1(2 * g)), 1e-15);
  EXPECT_NEAR(bound.pv / quantum, bound.pav / g, 1e-12);
  EXPECT_NEAR(bound.out, std::expm1(2 * g) / (1.0 - std::expm1(2 * g)), 1e-15);
  EXPECT_NEAR(bound.lse, -std::log1p(-std::expm1(2 * g)), 1e-15);
}

// Whatever grows in a row, its bound does not fall.
TEST(SoftmaxBounds, GrowWithEverySum) {
  constexpr RowField kSums[] = {kRowVisible, kRowSpan, kRowPa,      kRowPd,      kRowSinkDistance,
                                kRowAMax,    kRowDMax, kRowBiasMax, kRowQueryL1, kRowKeyL1};
  for (const std::string_view name : contract_names()) {
    Arithmetic arithmetic = with_stored_type(resolve({std::string(name)}), DType::kF32);
    arithmetic.query = arithmetic.key = {NumberFormat::kF16};  // their quanta do not drown
    SoftmaxTerms terms = f32_terms();
    terms.num_biases = 2;
    terms.sink = true;
    const SoftmaxBound bound(arithmetic, terms);
    RowSums sums = two_keys();
    sums[kRowVisible] = 300.0;
    sums[kRowSpan] = 600.0;
    sums[kRowPd] = sums[kRowDMax] = sums[kRowBiasMax] = 1.5;
    const RowBound before = bound.row(sums);
    ASSERT_EQ(before.vacuous, "") << name;
    for (const RowField field : kSums) {
      RowSums more = sums;
      more[field] += field == kRowVisible || field == kRowSpan ? 250.0 : 0.5;
      const RowBound after = bound.row(more);
      EXPECT_GE(after.pv, before.pv) << name << ", field " << field;
      EXPECT_GE(after.out, before.out) << name << ", field " << field;
      EXPECT_GE(bound_of(after), bound_of(before)) << name << ", field " << field;
      EXPECT_GE(after.lse, before.lse) << name << ", field " << field;
      if (name != "fp32") continue;  // blocks and coarser terms hide some
      EXPECT_GT(bound_of(after), bound_of(before)) << "field " << field;
      EXPECT_GT(after.lse, before.lse) << "field " << field;
    }
  }
}

TEST(SoftmaxBounds, EndWhereSomethingMayOverflowOrAWeightIsUnknown) {
  const auto vacuous = [](const std::string& overrides, RowField field, double value) {
    RowSums sums = two_keys();
    sums[field] = value;
    return SoftmaxBound(with_stored_type(resolve({"fp32", overrides}), DType::kF32), f32_terms())
        .row(sums)
        .vacuous;
  };
  EXPECT_EQ(vacuous("{}", kRowPa, 2.0), "");
  EXPECT_EQ(vacuous("{}", kRowPa, kInf), "a conditioning sum is infinite");
  EXPECT_EQ(vacuous("{}", kRowAMax, 1e6), "scores may be off by more than 1");
  EXPECT_EQ(vacuous("{}", kRowAMax, 0x1p123), "a score may overflow");  // 2^126 before the scale
  EXPECT_EQ(vacuous(R"({"query": "f16"})", kRowQueryMax, 65504.0), "");
  EXPECT_EQ(vacuous(R"({"query": "f16"})", kRowQueryMax, 65505.0),
            "a query is beyond the operand type");
  EXPECT_EQ(vacuous(R"({"key": {"type": "f16", "scale": "0x1p+1"}})", kRowKeyMax, 32753.0),
            "a key is beyond the operand type");
  EXPECT_EQ(vacuous(R"({"value": "f8_e5m2"})", kRowValueMax, 57345.0),
            "a value is beyond the operand type");
  EXPECT_EQ(vacuous(R"({"p": {"type": "f8_e4m3fn", "scale": "0x1p+9"}})", kRowPa, 2.0),
            "weights may overflow");
  EXPECT_EQ(vacuous(R"({"exp": {"rel": "0x1p-3"}})", kRowPa, 2.0),
            "a sum may be off by half of itself");
}

}  // namespace
}  // namespace attn::judge
