// Operations as case files: what is written is read back as the same operation.
#include "attn/case_writer.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "attn/backend.h"
#include "attn/random.h"
#include "attn/reference.h"
#include "core/hex_float.h"
#include "golden/safetensors.h"
#include "property_tests/draw_problem.h"
#include "property_tests/generators.h"
#include "property_tests/problem_data.h"
#include "tests/case_builder.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

const CaseLabels kLabels = {"id-1", "test", "a name", "a scenario", {}, CaseResult::kValid};

json case_of(const golden::Safetensors& file) { return json::parse(file.metadata().at("case")); }
json case_of(const std::vector<std::byte>& bytes) {
  return case_of(golden::Safetensors::parse(bytes));
}

std::string bytes_of(const golden::StoredTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data.data()), tensor.data.size()};
}

// Codes of all outputs of REFERENCE, in C order of the operation's axes.
std::map<std::string, std::vector<std::uint64_t>> reference_bits(const Operation& operation) {
  const OperationAnswer answer(operation);
  std::map<std::string, std::vector<std::uint64_t>> bits;
  for (const OutputSpec& spec : output_specs(AttentionProblem(operation), DType::kF64)) {
    bits[std::string(spec.name)] = answer.codes(std::string(spec.name));
  }
  return bits;
}

std::vector<NamedTensor> stored_outputs_in_logical_order(const CaseFile& file, bool heads_first) {
  std::vector<NamedTensor> outputs;
  for (const auto& [name, description] : file.outputs()) {
    TensorView view = file.stored_output(name);
    if (!view.present()) return {};
    const bool cache = name == "key_cache_after" || name == "value_cache_after";
    if (heads_first && cache) view = swap_axes(view, 1, 2);
    outputs.push_back({name, view});
  }
  return outputs;
}

// Attributes that say what is so without them.
json without_defaults(json attrs, const json& inputs, const std::string& op) {
  const auto drop = [&](const char* key, const json& value) {
    if (attrs.contains(key) && attrs[key] == value) attrs.erase(key);
  };
  if (!op.ends_with("cache_write")) drop("kv_cache_dtype", "auto");
  if (!inputs.contains("mm_prefix_ranges")) drop("mm_prefix_clamp", false);
  drop("mm_prefix_clamp", false);
  drop("lse_includes_sink", true);
  drop("kv_layout", "paged");
  if (op == "cache_write") drop("kv_cache_layout", "NHD");
  return attrs;
}

// The file that is written from a stored case says what that case says.
void expect_same_case(const golden::Safetensors& before, const std::vector<std::byte>& bytes) {
  const golden::Safetensors after = golden::Safetensors::parse(bytes);
  const json expected = case_of(before);
  const json actual = case_of(after);
  for (const char* key : {"id", "op", "variant", "name", "scenario", "flags", "result", "inputs",
                          "outputs", "spec_version"}) {
    EXPECT_EQ(actual.at(key), expected.at(key)) << key;
  }
  EXPECT_EQ(without_defaults(actual.at("attrs"), actual.at("inputs"), actual.at("op")),
            without_defaults(expected.at("attrs"), expected.at("inputs"), expected.at("op")));
  for (const auto& [axis, size] : expected.at("axes").items()) {
    EXPECT_EQ(actual.at("axes").at(axis), size) << axis;
  }
  for (const auto& [name, tensor] : before.tensors()) {
    if (name.starts_with("truth_")) continue;
    ASSERT_TRUE(after.tensors().contains(name)) << name;
    EXPECT_EQ(after.tensors().at(name).shape, tensor.shape) << name;
    EXPECT_EQ(after.tensors().at(name).storage, tensor.storage) << name;
    EXPECT_TRUE(bytes_of(after.tensors().at(name)) == bytes_of(tensor)) << name;
  }
}

TEST(CaseWriter, EveryThirdPartyCaseComesBackAsItIs) {
  int cases = 0;
  const fs::path root = fs::path(ATTN_TEST_DATA) / "third_party";
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (entry.path().extension() != ".safetensors") continue;
    SCOPED_TRACE(entry.path().filename().string());
    const golden::Safetensors before = golden::Safetensors::read(entry.path());
    const json object = case_of(before);
    const CaseFile file = CaseFile::read(entry.path());
    if (file.result() != CaseResult::kValid) continue;
    const AttentionProblem problem = file.problem();
    const CaseLabels labels = {file.id(),         file.variant(),
                               object.at("name"), object.at("scenario"),
                               file.flags(),      file.result()};
    const bool heads_first = object["attrs"].value("kv_cache_layout", "NHD") == "HND";
    const std::vector<std::byte> bytes = to_case_file(
        labels, problem.operation(), stored_outputs_in_logical_order(file, heads_first));
    expect_same_case(before, bytes);
    const CaseFile again = CaseFile::parse(bytes, "again");
    EXPECT_EQ(to_string(again.problem()), to_string(problem));
    EXPECT_EQ(reference_bits(again.problem().operation()), reference_bits(problem.operation()));
    ++cases;
  }
  EXPECT_EQ(cases, 251);
}

// The spoiled cases of third parties cannot be had as operations; these break rules by hand.
TEST(CaseWriter, WritesInvalidCasesThatTheFormatCanExpress) {
  CaseLabels labels = kLabels;
  labels.result = CaseResult::kInvalid;
  const CaseFile valid = paged_case().parse();
  const AttentionProblem problem = valid.problem();
  const auto error_of_change = [&](const std::function<void(AttentionOp & op)>& change) {
    AttentionOp op = *problem.attention();
    change(op);
    const CaseFile written = CaseFile::parse(to_case_file(labels, op), "f");
    EXPECT_TRUE(written.outputs().empty());
    EXPECT_EQ(written.result(), CaseResult::kInvalid);
    EXPECT_NE(error_of([&] { validate(op); }), "");
    return error_of([&] { written.problem(); });
  };
  TensorPool pool;
  EXPECT_EQ(error_of_change([](AttentionOp& op) { op.scale = std::nan(""); }),
            "scale is nan, must be finite");
  EXPECT_EQ(error_of_change([&](AttentionOp& op) {
              op.kv.block_table = pool.values(DType::kI32, {2, 3}, {3, -1, 0, 1, 0, 0});
            }),
            "block_table[0,1] is -1, outside [0, 4)");
  EXPECT_EQ(error_of_change([&](AttentionOp& op) {
              op.query_start_loc = pool.values(DType::kI32, {3}, {0, 2, 1});
            }),
            "query_start_loc[2] is 1, less than the 2 before it");
  EXPECT_EQ(error_of_change([&](AttentionOp& op) {
              op.query = pool.zeros(DType::kF32, {3, 3, 4});
            }),
            "num_heads 3 is not a multiple of num_kv_heads 2");
  EXPECT_NE(error_of_change([&](AttentionOp& op) {
              op.query = pool.zeros(DType::kF32, {3, 8});  // an axis is missing
            }),
            "");
  EXPECT_NE(error_of_change([&](AttentionOp& op) { op.seq_lens = pool.zeros(DType::kI32, {0}); }),
            "");
  EXPECT_NE(
      error_of_change([&](AttentionOp& op) { op.query_start_loc = pool.zeros(DType::kI32, {0}); }),
      "");
  EXPECT_NE(error_of_change([&](AttentionOp& op) {
              op.mask.rswa_window = 0;
              op.mask.rswa_prefix_lens = pool.zeros(DType::kI32, {2});
            }),
            "");
}

TEST(CaseWriter, RefusesWhatTheFormatCannotExpress) {
  CaseLabels labels = kLabels;
  labels.result = CaseResult::kInvalid;
  const CaseFile valid = paged_case().parse();
  const AttentionProblem problem = valid.problem();
  TensorPool pool;
  const auto refusal = [&](const std::function<void(AttentionOp & op)>& change) {
    AttentionOp op = *problem.attention();
    change(op);
    return error_of([&] { to_case_file(labels, op); });
  };
  EXPECT_EQ(
      refusal([](AttentionOp& op) { op.mask.window_left = -5; }),
      "the case as it would be written: case.attrs.window_left is -5, expected an integer >= 0");
  EXPECT_EQ(refusal([](AttentionOp& op) { op.query = {}; }),
            "the case as it would be written: case.inputs.query is missing");
  EXPECT_EQ(refusal([](AttentionOp& op) { op.kv.encoding = KvEncoding::kPerTokenHead; }),
            "no kv_cache_dtype says per-token-head of f32[4,2,2,4] and f32[4,2,2,2]");
  EXPECT_EQ(refusal([](AttentionOp& op) { op.query.space = MemorySpace::kDevice; }),
            "query lies on a device");
  EXPECT_EQ(refusal([](AttentionOp& op) { op.query.data = nullptr; }), "query has no memory");
  EXPECT_EQ(refusal([](AttentionOp& op) { op.query.shape[0] = -1; }),
            "query is f32[-1,2,4], not a tensor");
  EXPECT_EQ(refusal([](AttentionOp& op) { op.query.rank = 7; }),
            "query has 7 axes, expected 1 to 6");
  EXPECT_EQ(refusal([](AttentionOp& op) {
              op.kv.layout = KvLayout::kPacked;
              op.kv.value.shape[0] = 3;
            }),
            "kv_cache cannot hold f32[4,2,2,4] and f32[3,2,2,2] in one row");
  const auto refusal_of_labels = [&](const CaseLabels& changed) {
    return error_of([&] { to_case_file(changed, problem.operation()); });
  };
  labels = kLabels;
  labels.id = "-x";
  EXPECT_NE(refusal_of_labels(labels), "");
  labels = kLabels;
  labels.flags = {"unheard_of"};
  EXPECT_NE(refusal_of_labels(labels), "");
  labels = kLabels;
  labels.name = "\xFF";
  EXPECT_EQ(refusal_of_labels(labels), "a text of the case is not UTF-8");
}

TEST(CaseWriter, AnInvalidOperationIsNoValidCase) {
  const CaseFile valid = varlen_case().parse();
  const AttentionProblem problem = valid.problem();
  AttentionOp op = *problem.attention();
  op.logits_soft_cap = -1.0;
  EXPECT_EQ(error_of([&] { to_case_file(kLabels, op); }),
            "logits_soft_cap is -1, must not be negative");
  CaseLabels labels = kLabels;
  labels.result = CaseResult::kAcceptable;  // whoever takes it may answer
  EXPECT_TRUE(CaseFile::parse(to_case_file(labels, op), "f").outputs().empty());
}

TEST(CaseWriter, AQuestionDescribesWhatTheOperationAnswers) {
  const CaseFile valid = varlen_case().parse();
  const AttentionProblem problem = valid.problem();
  const CaseFile question = CaseFile::parse(to_case_file(kLabels, problem.operation()), "f");
  ASSERT_EQ(question.outputs().size(), 2U);
  EXPECT_EQ(question.outputs().at("out").dtype, DType::kF64);
  EXPECT_EQ(question.outputs().at("out").shape, (std::vector<std::int64_t>{3, 2, 2}));
  EXPECT_EQ(question.outputs().at("lse").shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_FALSE(question.stored_output("out").present());
}

TEST(CaseWriter, ConditioningGoesIntoItsTable) {
  const CaseFile valid = varlen_case().parse();
  const AttentionProblem problem = valid.problem();
  TensorPool pool;
  const std::vector<NamedTensor> outputs = {{"out", pool.zeros(DType::kF64, {3, 2, 2})}};
  const std::vector<NamedTensor> sums = {
      {"cond_pv", pool.values(DType::kF32, {3, 2, 2}, counting(12))}};
  const golden::Safetensors file =
      golden::Safetensors::parse(to_case_file(kLabels, problem.operation(), outputs, sums));
  EXPECT_EQ(case_of(file)["cond"]["pv"]["dtype"], "f32");
  EXPECT_EQ(value_at(file.tensors().at("cond_pv").view(DType::kF32), 2, 1, 1), 11.0);
  EXPECT_EQ(error_of([&] {
              to_case_file(kLabels, problem.operation(), outputs, {{"pv", sums[0].view}});
            }),
            "\"pv\" is no name of a conditioning sum");
  EXPECT_EQ(error_of([&] {
              to_case_file(kLabels, problem.operation(), {outputs[0], outputs[0]});
            }),
            "tensor \"out\" is given twice");
}

// A cache in another order, and its rows after a write, come back in the order of the file.
TEST(CaseWriter, CachesAfterAWriteLieAsThoseBefore) {
  TensorPool pool;
  const auto counted = [&](std::initializer_list<std::int64_t> shape, std::int64_t n) {
    return TensorView(pool.values(DType::kF32, shape, counting(n)));
  };
  CacheWriteOp op;
  op.key = counted({1, 2, 4}, 8);
  op.value = counted({1, 2, 3}, 6);
  op.slot_mapping = pool.values(DType::kI64, {1}, {4});
  op.cache.layout = KvLayout::kPaged;
  op.cache.key = swap_axes(counted({2, 2, 3, 4}, 48), 1, 2);  // HND: 2 heads before 3 slots
  op.cache.value = swap_axes(counted({2, 2, 3, 3}, 36), 1, 2);
  const OperationAnswer answer(op);
  const std::vector<std::byte> bytes =
      to_case_file(kLabels, op,
                   {{"key_cache_after", answer.view("key_cache_after")},
                    {"value_cache_after", answer.view("value_cache_after")}});
  const golden::Safetensors file = golden::Safetensors::parse(bytes);
  EXPECT_EQ(case_of(file)["attrs"]["kv_cache_layout"], "HND");
  const TensorView after = file.tensors().at("key_cache_after").view(DType::kF32);
  EXPECT_EQ(to_string(after), "f32[2,2,3,4]");
  // Slot 4 is block 1, place 1: head 0 holds 0 1 2 3, head 1 holds 4 5 6 7; the rest is untouched.
  for (std::int64_t head = 0; head < 2; ++head) {
    for (std::int64_t slot = 0; slot < 3; ++slot) {
      const double untouched = static_cast<double>(24 + head * 12 + slot * 4);
      EXPECT_EQ(value_at(after, 1, head, slot, 0), slot == 1 ? head * 4.0 : untouched);
    }
  }
  const CaseFile question = CaseFile::parse(to_case_file(kLabels, op), "f");
  EXPECT_EQ(question.outputs().at("key_cache_after").shape,
            (std::vector<std::int64_t>{2, 2, 3, 4}));
  EXPECT_EQ(reference_bits(question.problem().operation()), reference_bits(op));
}

TEST(CaseWriter, MlaCacheWritesComeBack) {
  TensorPool pool;
  MlaCacheWriteOp op;
  op.kv_c = pool.values(DType::kF32, {2, 3}, counting(6));
  op.k_pe = pool.values(DType::kF32, {2, 2}, counting(4));
  op.slot_mapping = pool.values(DType::kI64, {2}, {3, -1});
  op.kv_cache = pool.zeros(DType::kF8E4M3FN, {2, 2, 5});
  op.k_scale = pool.values(DType::kF32, {1}, {0.5});
  const std::vector<std::byte> bytes = to_case_file(kLabels, op);
  EXPECT_EQ(case_of(bytes)["attrs"], (json{{"block_size", 2},
                                           {"kv_cache_dtype", "fp8_e4m3"},
                                           {"kv_lora_rank", 3},
                                           {"qk_rope_head_dim", 2}}));
  const CaseFile file = CaseFile::parse(bytes, "f");
  EXPECT_EQ(reference_bits(file.problem().operation()), reference_bits(op));
  CaseLabels invalid = kLabels;
  invalid.result = CaseResult::kInvalid;
  op.slot_mapping = pool.values(DType::kI64, {2}, {3, -2});
  const CaseFile rejected = CaseFile::parse(to_case_file(invalid, op), "f");
  EXPECT_EQ(rejected.outputs().size(), 1U);  // the schema demands it
  EXPECT_EQ(error_of([&] { rejected.problem(); }), error_of([&] { validate(op); }));
}

void expect_comes_back(const AttentionOp& op) {
  const std::vector<std::byte> bytes = to_case_file(kLabels, op);
  const CaseFile file = CaseFile::parse(bytes, "f");
  const AttentionProblem problem = file.problem();
  const AttentionOp& back = *problem.attention();
  RC_ASSERT(to_string(problem) == to_string(AttentionProblem(op)));
  RC_ASSERT(reference_bits(back) == reference_bits(op));
  // The same file whatever the strides were, and from what was read.
  RC_ASSERT(to_case_file(kLabels, back) == bytes);
}

TEST(CaseWriter, RandomProblemsComeBack) {
  property_tests::ConfigSpace space;
  space.exec = true;
  space.output_codes = true;
  EXPECT_TRUE(rc::check([&] {
    const auto config = *property_tests::problem_configs(space);
    const property_tests::ProblemData data(property_tests::draw_problem(config), config.memory);
    expect_comes_back(data.op());
  }));
}

TEST(HexFloat, IsWrittenAsPythonDoes) {
  // Made with Python 3.11: (x).hex().
  const std::pair<double, const char*> kPairs[] = {
      {0.0, "0x0.0p+0"},
      {-0.0, "-0x0.0p+0"},
      {1.0, "0x1.0000000000000p+0"},
      {-2.5, "-0x1.4000000000000p+1"},
      {0.1, "0x1.999999999999ap-4"},
      {std::numeric_limits<double>::max(), "0x1.fffffffffffffp+1023"},
      {std::numeric_limits<double>::min(), "0x1.0000000000000p-1022"},
      {std::numeric_limits<double>::denorm_min(), "0x0.0000000000001p-1022"},
      {std::numeric_limits<double>::infinity(), "inf"},
      {-std::numeric_limits<double>::infinity(), "-inf"},
      {std::numeric_limits<double>::quiet_NaN(), "nan"}};
  for (const auto& [value, text] : kPairs) {
    EXPECT_EQ(to_hex_float(value), text);
  }
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const Words w = random_words(1, i, RandomTensor::kQuery, 0);
    const double value = std::bit_cast<double>((std::uint64_t{w[0]} << 32) | w[1]);
    const double back = *parse_hex_float(to_hex_float(value));
    EXPECT_TRUE(std::isnan(value)
                    ? std::isnan(back)
                    : std::bit_cast<std::uint64_t>(back) == std::bit_cast<std::uint64_t>(value));
  }
}

}  // namespace
}  // namespace attn
