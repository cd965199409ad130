// Contracts by name, as JSON and resolved. What they are is spelled out here by hand.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "attn/arithmetic.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"

namespace attn {
namespace {

using F = NumberFormat;
constexpr RoundingMode kTruncate = RoundingMode::kTruncate;

Arithmetic fp32() {
  Arithmetic a;
  a.name = "fp32";
  a.vector = F::kF32;
  a.flush = false;
  a.query = a.key = a.value = a.logit = a.p =
      a.merge_part = {F::kExact, RoundingMode::kNearest, 1.0, false};
  a.dot = a.sum = a.pv = {F::kF32, RoundingMode::kNearest, 1, 0, 0, true, std::nullopt};
  a.sum_rounded_p = false;
  a.scale_roundings = 4;
  a.cap_rel = 0x1p-21;
  a.cap_abs = 0.0;
  a.bias_rel = 0x1p-22;
  a.logit_roundings = 0;
  a.exp_rel = 0x1p-21;
  a.exp_abs = 0x1p-126;
  a.exp_arg_roundings = 3;
  a.exp_shift_roundings = 2;
  a.tile = 64;
  a.max_lag = 0.0;
  a.p_roundings = 0;
  a.p_normalized = false;
  a.splits = 1;
  a.merge_kind = MergeKind::kAccumulators;
  a.merge_depth = 1;
  a.merge_lse = F::kF32;
  a.normalize_roundings = 2;
  a.log_abs = 0x1p-22;
  a.log_roundings = 3;
  a.project.reset();
  a.out = a.lse = {F::kStored, RoundingMode::kNearest, 1.0, false};
  return a;
}

Arithmetic fp32_lanes() {
  Arithmetic a = fp32();
  a.dot.lanes = a.sum.lanes = 16;
  a.sum.block = a.pv.block = a.tile = 256;
  return a;
}

Arithmetic fp32_split() {
  Arithmetic a = fp32();
  a.dot.lanes = a.sum.lanes = 16;
  a.sum.block = a.pv.block = 64;
  a.splits = 16;
  a.merge_kind = MergeKind::kLse;
  return a;
}

Arithmetic bf16_flash() {
  Arithmetic a = fp32();
  a.flush = true;
  a.query = a.key = a.value = a.p = {F::kBF16, RoundingMode::kNearest, 1.0, true};
  a.dot.fused = a.pv.fused = false;
  return a;
}

Arithmetic bf16_vdp() {
  Arithmetic a = bf16_flash();
  a.dot.lanes = a.sum.lanes = 16;
  a.dot.fused = a.pv.fused = true;
  a.sum.block = a.pv.block = a.tile = 256;
  return a;
}

Arithmetic bf16_mma() {
  Arithmetic a = bf16_flash();
  a.flush = false;
  a.dot.mode = a.pv.mode = kTruncate;
  a.dot.mma_k = a.pv.mma_k = 16;
  a.dot.fused = a.pv.fused = true;
  return a;
}

Arithmetic f16_flash() {
  Arithmetic a = fp32();
  a.query.type = a.key.type = a.value.type = a.p.type = F::kF16;
  return a;
}

Arithmetic fp8_flash() {
  Arithmetic a = fp32();
  a.query.type = a.p.type = F::kF8E4M3FN;
  a.scale_roundings = 6;
  a.p.scale = 256.0;
  a.p_roundings = 2;
  a.normalize_roundings = 3;
  return a;
}

Arithmetic tf32() {
  Arithmetic a = fp32();
  a.query = a.key = a.value = a.p = {F::kTF32, kTruncate, 1.0, false};
  a.dot.mode = a.pv.mode = kTruncate;
  a.dot.mma_k = a.pv.mma_k = 8;
  return a;
}

Arithmetic bf16_unfused() {
  Arithmetic a = bf16_flash();
  a.logit.type = F::kBF16;
  a.logit_roundings = 1;
  a.tile = 0;
  a.p_normalized = true;
  return a;
}

Arithmetic f64() {
  Arithmetic a = fp32();
  a.vector = a.dot.type = a.sum.type = a.pv.type = a.merge_lse = F::kF64;
  a.dot.fused = a.pv.fused = false;
  a.scale_roundings = 1;
  a.cap_rel = 0x1p-51;
  a.bias_rel = a.exp_rel = a.log_abs = 0x1p-52;
  a.exp_abs = 0x1p-1022;
  a.exp_arg_roundings = 1;
  a.exp_shift_roundings = 0;
  a.tile = 0;
  return a;
}

Arithmetic f64_flash() {
  Arithmetic a = f64();
  a.scale_roundings = 4;
  a.exp_arg_roundings = 3;
  a.exp_shift_roundings = 2;
  a.tile = 64;
  a.splits = 16;
  a.merge_kind = MergeKind::kLse;
  return a;
}

Arithmetic reference() {
  Arithmetic a = f64();
  a.dot.lanes = 8;
  a.sum.block = a.pv.block = 64;
  return a;
}

// Every field away from its default.
Arithmetic with_everything() {
  const Summation sum = {F::kF16, kTruncate, 3, 5, 7, false, 0x1p-13};
  const Rounding rounding = {F::kF8E5M2, kTruncate, 0x1.8p+3, true};
  Arithmetic a;
  a.name = "fp32";
  a.vector = F::kBF16;
  a.flush = true;
  a.query = a.key = a.value = a.logit = a.p = a.merge_part = a.out = a.lse = rounding;
  a.dot = a.sum = a.pv = sum;
  a.sum_rounded_p = a.p_normalized = true;
  a.cap_rel = 0x1.23p-9;
  a.cap_abs = 0x1p-1074;
  a.bias_rel = 0.1;
  a.exp_rel = 0x1.fffffffffffffp+1023;
  a.exp_abs = 3.0;
  a.max_lag = 5.5;
  a.log_abs = 16.0;
  a.scale_roundings = 11;
  a.logit_roundings = 12;
  a.exp_arg_roundings = 13;
  a.exp_shift_roundings = 14;
  a.tile = 15;
  a.p_roundings = 16;
  a.splits = 17;
  a.merge_kind = MergeKind::kLse;
  a.merge_depth = 18;
  a.merge_lse = F::kTF32;
  a.normalize_roundings = 19;
  a.log_roundings = 1 << 30;
  a.project = {sum, rounding};
  return a;
}

Arithmetic parsed(const std::string& text) { return resolve(parse_contract(text, "contract")); }

void expect_equal(const Arithmetic& actual, const Arithmetic& expected) {
  EXPECT_TRUE(actual == expected) << actual.name << " " << to_json(actual) << "\n"
                                  << expected.name << " " << to_json(expected);
}

struct Named {
  std::string name;
  Arithmetic (*arithmetic)();
};

const Named kNamed[] = {{"fp32", fp32},
                        {"fp32_lanes", fp32_lanes},
                        {"fp32_split", fp32_split},
                        {"bf16_flash", bf16_flash},
                        {"bf16_vdp", bf16_vdp},
                        {"bf16_mma", bf16_mma},
                        {"f16_flash", f16_flash},
                        {"fp8_flash", fp8_flash},
                        {"tf32", tf32},
                        {"bf16_unfused", bf16_unfused},
                        {"f64", f64},
                        {"f64_flash", f64_flash},
                        {"reference", reference}};

TEST(Contracts, HaveTheirNamesInOrder) {
  std::vector<std::string_view> names;
  for (const Named& named : kNamed) names.push_back(named.name);
  EXPECT_EQ(contract_names(), names);
}

TEST(Contracts, AreWhatTheirNamesSay) {
  for (const Named& named : kNamed) {
    Arithmetic expected = named.arithmetic();
    expected.name = named.name;
    expect_equal(resolve({named.name}), expected);
  }
}

TEST(Contracts, EveryFieldIsWritten) {
  EXPECT_EQ(
      to_json(resolve({"fp32"})),
      R"({"vector":"f32","flush":false,"query":"exact","key":"exact","value":"exact",)"
      R"("dot":{"type":"f32","mode":"nearest","lanes":1,"block":0,"mma_k":0,"fused":true,"inner":null},)"
      R"("scale_roundings":4,"cap":{"rel":"0x1p-21","abs":"0x0p+0"},"bias_rel":"0x1p-22",)"
      R"("logit":"exact","logit_roundings":0,)"
      R"("exp":{"rel":"0x1p-21","abs":"0x1p-126","arg_roundings":3,"shift_roundings":2},)"
      R"("tile":64,"max_lag":"0x0p+0",)"
      R"("p":{"type":"exact","mode":"nearest","scale":"0x1p+0","flush":false,"roundings":0,)"
      R"("normalized":false},)"
      R"("sum":{"type":"f32","mode":"nearest","lanes":1,"block":0,"mma_k":0,"fused":true,)"
      R"("inner":null,"rounded_p":false},)"
      R"("pv":{"type":"f32","mode":"nearest","lanes":1,"block":0,"mma_k":0,"fused":true,"inner":null},)"
      R"("splits":1,"merge":{"kind":"acc","depth":1,"part":"exact","lse":"f32"},)"
      R"("normalize_roundings":2,"log":{"abs":"0x1p-22","roundings":3},"project":null,)"
      R"("out":"stored","lse":"stored"})");
}

TEST(Contracts, WhatIsWrittenReadsBackEqual) {
  for (const Named& named : kNamed) {
    Arithmetic expected = named.arithmetic();
    expected.name = "fp32";
    expect_equal(parsed(to_json(resolve({named.name}))), expected);
  }
  expect_equal(parsed(to_json(with_everything())), with_everything());
}

TEST(Contracts, AParsedDeclarationIsABaseAndItsOverrides) {
  EXPECT_EQ(parse_contract("{}", "c"), (PrecisionContract{"fp32", "{}"}));
  EXPECT_EQ(parse_contract(R"( {"tile": 0, "extends": "tf32"} )", "c"),
            (PrecisionContract{"tf32", R"({"tile":0})"}));
}

TEST(Contracts, ObjectsMergeAtEveryDepth) {
  Arithmetic expected = bf16_mma();
  expected.name = "bf16_mma";
  expected.query.flush = false;
  expected.dot.inner = 0x1p-13;
  expected.merge_part = {F::kBF16, RoundingMode::kNearest, 1.0, true};
  expected.project = {{F::kF32, RoundingMode::kNearest, 1, 0, 16, true, std::nullopt}, {F::kBF16}};
  expect_equal(
      resolve({"bf16_mma", R"({"query": {"flush": false}, "dot": {"inner": {"unit": "0x1p-13"}},
        "merge": {"part": {"type": "bf16", "flush": true}},
        "project": {"sum": {"mma_k": 16}, "round": "bf16"}})"}),
      expected);
}

TEST(Contracts, ABareNameReplacesAWholeRounding) {
  Arithmetic expected = bf16_flash();
  expected.name = "bf16_flash";
  expected.query = {F::kBF16};  // no flush
  expect_equal(resolve({"bf16_flash", R"({"query": "bf16"})"}), expected);

  expected = fp8_flash();
  expected.name = "fp8_flash";
  expected.p = {F::kF8E4M3FN};  // no scale
  expected.p_roundings = 0;
  expect_equal(resolve({"fp8_flash", R"({"p": "f8_e4m3fn"})"}), expected);
}

TEST(Contracts, NullTakesInnerAndProjectAway) {
  const std::string both = R"({"dot": {"inner": {"unit": "0x1p-9"}}, "project": {}})";
  EXPECT_EQ(resolve({"fp32", both}).dot.inner, 0x1p-9);
  EXPECT_EQ(resolve({"fp32", both}).project, Arithmetic::Projection());
  const Arithmetic neither = resolve({"fp32", R"({"dot": {"inner": null}, "project": null})"});
  EXPECT_EQ(neither.dot.inner, std::nullopt);
  EXPECT_EQ(neither.project, std::nullopt);
}

TEST(Contracts, AnswersMayBeOfAnyFormatAndScale) {
  const Arithmetic a =
      resolve({"fp32", R"({"out": {"type": "f8_e4m3fn", "scale": "0x1.8p-2"}, "lse": "f32"})"});
  EXPECT_EQ(a.out, (Rounding{F::kF8E4M3FN, RoundingMode::kNearest, 0.375, false}));
  EXPECT_EQ(with_stored_type(a, DType::kBF16).lse.type, F::kF32);
  EXPECT_EQ(with_stored_type(resolve({"fp32"}), DType::kBF16).out.type, F::kBF16);
  EXPECT_EQ(error_of([&] { with_stored_type(a, DType::kI32); }),
            "answers are of a floating type, not i32");
}

// Text of a declaration, and what is said of it.
const std::map<std::string, std::string> kBadContracts = {
    {"", "c is not JSON: at byte 0"},
    {"[]", "c is an array, expected an object"},
    {R"("fp32")", "c is \"fp32\", expected an object"},
    {R"({"tile":1,"tile":1})", "c has the key \"tile\" twice in one object"},
    {R"({"name":"fp32"})", "c has the unknown key \"name\""},
    {R"({"extends":"fp33"})",
     "c.extends is \"fp33\", expected one of fp32, fp32_lanes, fp32_split, bf16_flash, bf16_vdp, "
     "bf16_mma, f16_flash, fp8_flash, tf32, bf16_unfused, f64, f64_flash, reference"},
    {R"({"dot":{"lane":16}})", "c.dot has the unknown key \"lane\""},
    {R"({"dot":{"extends":"fp32"}})", "c.dot has the unknown key \"extends\""},
    {R"({"dot":{"rounded_p":true}})", "c.dot has the unknown key \"rounded_p\""},
    {R"({"query":{"roundings":1}})", "c.query has the unknown key \"roundings\""},
    {R"({"exp":{"rel":"0x1p-9","abs_":"0x0p+0"}})", "c.exp has the unknown key \"abs_\""},
    {R"({"project":{"sum":{},"out":"f32"}})", "c.project has the unknown key \"out\""},
    {R"({"dot":{"inner":{"unit":"0x1p-9","u":1}}})", "c.dot.inner has the unknown key \"u\""},
    {R"({"dot":{"inner":{}}})", "c.dot.inner.unit is missing"},
    {R"({"dot":"f32"})", "c.dot is \"f32\", expected an object"},
    {R"({"dot":null})", "c.dot is null, expected an object"},
    {R"({"query":null})", "c.query is null, expected an object"},
    {R"({"vector":"f128"})",
     "c.vector is \"f128\", expected one of exact, f64, f32, tf32, f16, bf16, f8_e4m3fn, f8_e5m2"},
    {R"({"vector":"stored"})",
     "c.vector is \"stored\", expected one of exact, f64, f32, tf32, f16, bf16, f8_e4m3fn, "
     "f8_e5m2"},
    {R"({"p":"stored"})",
     "c.p is \"stored\", expected one of exact, f64, f32, tf32, f16, bf16, f8_e4m3fn, f8_e5m2"},
    {R"({"merge":{"part":{"type":"stored"}}})",
     "c.merge.part.type is \"stored\", expected one of exact, f64, f32, tf32, f16, bf16, "
     "f8_e4m3fn, f8_e5m2"},
    {R"({"out":"half"})",
     "c.out is \"half\", expected one of exact, f64, f32, tf32, f16, bf16, f8_e4m3fn, f8_e5m2, "
     "stored"},
    {R"({"pv":{"mode":"up"}})", "c.pv.mode is \"up\", expected one of nearest, truncate"},
    {R"({"merge":{"kind":"tree"}})", "c.merge.kind is \"tree\", expected one of acc, lse"},
    {R"({"flush":1})", "c.flush is 1, expected true or false"},
    {R"({"sum":{"rounded_p":"no"}})", "c.sum.rounded_p is \"no\", expected true or false"},
    {R"({"tile":-1})", "c.tile is -1, expected an integer >= 0"},
    {R"({"tile":1.0})", "c.tile is 1.0, expected an integer >= 0"},
    {R"({"tile":1073741825})", "c.tile is 1073741825, expected an integer <= 1073741824"},
    {R"({"normalize_roundings":2147483648})",
     "c.normalize_roundings is 2147483648, expected an integer <= 1073741824"},
    {R"({"dot":{"lanes":0}})", "c.dot.lanes is 0, expected an integer >= 1"},
    {R"({"sum":{"block":-64}})", "c.sum.block is -64, expected an integer >= 0"},
    {R"({"splits":0})", "c.splits is 0, expected an integer >= 1"},
    {R"({"merge":{"depth":0}})", "c.merge.depth is 0, expected an integer >= 1"},
    {R"({"max_lag":0.5})",
     "c.max_lag is 0.5, expected a double as hex float string, e.g. \"0x1.8p+1\" or \"inf\""},
    {R"({"max_lag":"inf"})", "c.max_lag is \"inf\", expected a finite real >= 0"},
    {R"({"cap":{"abs":"nan"}})", "c.cap.abs is \"nan\", expected a finite real >= 0"},
    {R"({"exp":{"rel":"-0x1p-30"}})", "c.exp.rel is \"-0x1p-30\", expected a finite real >= 0"},
    {R"({"pv":{"inner":{"unit":"-inf"}}})",
     "c.pv.inner.unit is \"-inf\", expected a finite real >= 0"},
    {R"({"out":{"scale":"0x0p+0"}})", "c.out.scale is \"0x0p+0\", expected a finite real > 0"},
    {R"({"p":{"scale":"-0x1p+8"}})", "c.p.scale is \"-0x1p+8\", expected a finite real > 0"},
    {R"({"p":{"scale":"inf"}})", "c.p.scale is \"inf\", expected a finite real > 0"},
};

TEST(Contracts, BadDeclarationsAreErrorsThatNamePathAndValue) {
  for (const auto& [text, said] : kBadContracts) {
    EXPECT_EQ(error_of([&] { parse_contract(text, "c"); }), said) << text;
  }
}

TEST(Contracts, ResolvingRejectsTheSame) {
  EXPECT_EQ(error_of([] { resolve({"fp33"}); }),
            "contract is \"fp33\", expected one of fp32, fp32_lanes, fp32_split, bf16_flash, "
            "bf16_vdp, bf16_mma, f16_flash, fp8_flash, tf32, bf16_unfused, f64, f64_flash, "
            "reference");
  EXPECT_EQ(error_of([] {
              resolve({"fp32", R"({"dot":{"lanes":0}})"});
            }),
            "contract.dot.lanes is 0, expected an integer >= 1");
  EXPECT_EQ(error_of([] {
              resolve({"fp32", R"({"extends":"tf32"})"});
            }),
            "contract has the unknown key \"extends\"");
  EXPECT_EQ(error_of([] { resolve({"fp32", ""}); }), "contract is not JSON: at byte 0");
}

}  // namespace
}  // namespace attn
