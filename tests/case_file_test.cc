#include "attn/case_file.h"

#include <gtest/gtest.h>

#include <locale>

#include "tests/case_builder.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"

namespace attn {
namespace {

using nlohmann::json;

std::string parse_error(const CaseBuilder& builder) {
  return error_of([&] { builder.parse(); });
}

// A change of the varlen case and what parsing then says, without the "f: " before it.
struct Damage {
  std::function<void(CaseBuilder& b)> change;
  std::string expected;
};

void expect_errors(
    const std::vector<Damage>& damages,
    const std::function<CaseBuilder()>& make = [] { return varlen_case(); }) {
  for (const Damage& damage : damages) {
    CaseBuilder builder = make();
    damage.change(builder);
    EXPECT_EQ(parse_error(builder), "f: " + damage.expected);
  }
}

TEST(CaseFile, ReadsWhatTheCaseObjectSays) {
  CaseBuilder b = varlen_case();
  b.object["flags"] = {"poisoned", "padded_rows"};
  b.object["result"] = "acceptable";
  const TemporaryFolder folder;
  const CaseFile parsed = b.parse();
  const CaseFile read = CaseFile::read(folder.write("case", b.bytes()));
  for (const CaseFile* file : {&parsed, &read}) {
    EXPECT_EQ(file->id(), "case-1");
    EXPECT_EQ(file->op(), OpKind::kAttention);
    EXPECT_EQ(file->variant(), "test");
    EXPECT_EQ(name(file->result()), "acceptable");
    EXPECT_EQ(file->flags(), (std::vector<std::string>{"poisoned", "padded_rows"}));
    ASSERT_EQ(file->outputs().size(), 2u);
    EXPECT_EQ(file->outputs().at("out").dtype, DType::kF64);
    EXPECT_EQ(file->outputs().at("lse").shape, (std::vector<std::int64_t>{2, 3}));
    EXPECT_FALSE(file->stored_output("out").present());
    EXPECT_FALSE(file->stored_output("query").present());
  }
}

TEST(CaseFile, NamesTheFileInMessages) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "a\nb";
  EXPECT_EQ(error_of([&] { CaseFile::read(path); }),
            folder.path().string() + "/a?b: cannot open: No such file or directory");
}

TEST(CaseFile, OutputsAreAllStoredOrNone) {
  CaseBuilder b = varlen_case();
  b.add("outputs", "out", b.pool.values(DType::kBF16, {3, 2, 2}, counting(12)));
  EXPECT_EQ(parse_error(b), "f: case.outputs.lse has no tensor lse in the file");
  b.add("outputs", "lse", b.pool.values(DType::kF64, {2, 3}, counting(6)));
  const CaseFile file = b.parse();
  const TensorView out = file.stored_output("out");
  EXPECT_EQ(to_string(out), "bf16[3,2,2]");
  EXPECT_EQ(value_at(out, 2, 1, 0), 10.0);
  EXPECT_EQ(value_at(file.stored_output("lse"), 1, 2), 5.0);
  EXPECT_FALSE(file.stored_output("logits").present());
}

TEST(CaseFile, TruthAndConditioningHavePrefixes) {
  CaseBuilder b = varlen_case();
  b.add("truth", "out", b.pool.zeros(DType::kF64, {3, 2, 2}), "truth_");
  b.add("cond", "row", b.pool.zeros(DType::kF64, {3, 2, 17}), "cond_");
  EXPECT_EQ(parse_error(b), "");
  b.tensors.erase("cond_row");
  EXPECT_EQ(parse_error(b), "f: case.cond.row has no tensor cond_row in the file");
  b.object.erase("cond");
  EXPECT_EQ(parse_error(b), "");
  b.object.erase("truth");
  EXPECT_EQ(parse_error(b), "f: tensor \"truth_out\" is not described in the case object");
}

TEST(CaseFile, RejectsTensorsThatAreNotAsDescribed) {
  expect_errors({
      {[](auto& b) { b.tensors.erase("key"); }, "case.inputs.key has no tensor key in the file"},
      {[](auto& b) { b.object["inputs"].erase("query"); }, "case.inputs.query is missing"},
      {[](auto& b) { b.tensors["extra"] = b.tensors["key"]; },
       "tensor \"extra\" is not described in the case object"},
      {[](auto& b) {
         b.object["inputs"]["key"]["shape"] = {5, 4, 1};
       },
       "case.inputs.key is described as F32 [5,4,1], stored as F32 [5,1,4]"},
      {[](auto& b) {
         b.describe("inputs", "key", DType::kI32, {5, 1, 4});
       },
       "case.inputs.key is described as I32 [5,1,4], stored as F32 [5,1,4]"},
      {[](auto& b) {
         b.describe("inputs", "key", DType::kF64, {5, 1, 2});
       },
       "case.inputs.key is described as F64 [5,1,2], stored as F32 [5,1,4]"},
  });
}

TEST(CaseFile, RejectsAxesThatNoViewHas) {
  CaseBuilder b = varlen_case();
  b.object["inputs"]["sinks"] = {{"dtype", "f32"}, {"storage", "F32"}, {"shape", json::array()}};
  EXPECT_EQ(parse_error(b), "f: tensor \"sinks\" has 0 axes, expected 1 to 6");
  b.object["inputs"]["sinks"]["shape"] = {1, 1, 1, 1, 1, 1, 1};
  EXPECT_EQ(parse_error(b), "f: tensor \"sinks\" has 7 axes, expected 1 to 6");
}

TEST(CaseFile, RejectsDamagedCaseObjects) {
  expect_errors({
      {[](auto& b) { b.object["extra"] = 1; }, "case has the unknown key \"extra\""},
      {[](auto& b) { b.object.erase("scenario"); }, "case.scenario is missing"},
      {[](auto& b) { b.object["spec_version"] = 2; }, "case.spec_version is 2, expected 1"},
      {[](auto& b) { b.object["id"] = "../x"; },
       "case.id is \"../x\", expected [A-Za-z0-9][A-Za-z0-9_.-]*"},
      {[](auto& b) { b.object["id"] = ".x"; },
       "case.id is \".x\", expected [A-Za-z0-9][A-Za-z0-9_.-]*"},
      {[](auto& b) { b.object["variant"] = "2d"; },
       "case.variant is \"2d\", expected [a-z][a-z0-9_]*"},
      {[](auto& b) { b.object["variant"] = "Plain"; },
       "case.variant is \"Plain\", expected [a-z][a-z0-9_]*"},
      {[](auto& b) { b.object["op"] = "attn"; },
       "case.op is \"attn\", expected an operation of attn-case/1"},
      {[](auto& b) { b.object["name"] = 1; }, "case.name is 1, expected a string"},
      {[](auto& b) { b.object["result"] = nullptr; },
       "case.result is null, expected one of valid, invalid, acceptable"},
      {[](auto& b) { b.object["flags"] = {"odd"}; },
       "case.flags[0] is \"odd\", expected one of poisoned, padded_rows, q_len_gt_seq_len, "
       "seq_len_zero"},
      {[](auto& b) {
         b.object["flags"] = {"poisoned", "poisoned"};
       },
       "case.flags[1] is \"poisoned\", expected each flag once"},
      {[](auto& b) { b.object["axes"]["num_pages"] = 1; },
       "case.axes has the unknown key \"num_pages\""},
      {[](auto& b) { b.object["axes"]["num_reqs"] = -1; },
       "case.axes.num_reqs is -1, expected an integer >= 0"},
      {[](auto& b) { b.object["axes"].erase("head_size_v"); }, "case.axes.head_size_v is missing"},
  });
}

TEST(CaseFile, RejectsDamagedTensorTables) {
  expect_errors({
      {[](auto& b) { b.object["inputs"]["keys"] = b.object["inputs"]["key"]; },
       "case.inputs has the unknown key \"keys\""},
      {[](auto& b) { b.object["outputs"]["query"] = b.object["inputs"]["query"]; },
       "case.outputs has the unknown key \"query\""},
      {[](auto& b) { b.object["truth"]["out_codes"] = b.object["inputs"]["query"]; },
       "case.truth has the unknown key \"out_codes\""},
      {[](auto& b) { b.object["inputs"]["key"]["dtype"] = "i4"; },
       "case.inputs.key.dtype is \"i4\", expected a type of attn-case/1"},
      {[](auto& b) { b.object["inputs"]["key"]["storage"] = "U8"; },
       "case.inputs.key.storage is \"U8\", expected F32 for f32"},
      {[](auto& b) { b.object["inputs"]["key"]["dtype"] = "f8_e5m2"; },
       "case.inputs.key.storage is \"F32\", expected U8 for f8_e5m2"},
      {[](auto& b) { b.object["inputs"]["key"]["axes"] = 3; },
       "case.inputs.key has the unknown key \"axes\""},
      {[](auto& b) { b.object["inputs"]["key"]["shape"][1] = -1; },
       "case.inputs.key.shape[1] is -1, expected an integer >= 0"},
      {[](auto& b) {
         b.describe("outputs", "out", DType::kI32, {3, 2, 2});
       },
       "case.outputs.out.dtype is \"i32\", expected f64 or f32 or f16 or bf16"},
      {[](auto& b) {
         b.describe("outputs", "out_codes", DType::kF8E5M2, {3, 2, 2});
       },
       "case.outputs.out_codes.dtype is \"f8_e5m2\", expected f8_e4m3fn"},
      {[](auto& b) { b.describe("cond", "Row", DType::kF64, {1}); },
       "case.cond has the key \"Row\", expected [a-z][a-z0-9_]*"},
      {[](auto& b) { b.describe("cond", "row", DType::kF16, {1}); },
       "case.cond.row.dtype is \"f16\", expected f64 or f32"},
  });
}

TEST(CaseFile, RejectsDamagedAttributes) {
  const auto set = [](const char* key, const json& value) {
    return [=](CaseBuilder& b) { b.object["attrs"][key] = value; };
  };
  expect_errors({
      {set("sliding_window", 3), "case.attrs has the unknown key \"sliding_window\""},
      {set("window_left", -3), "case.attrs.window_left is -3, expected an integer >= 0"},
      {set("window_left", 3.5), "case.attrs.window_left is 3.5, expected an integer >= 0"},
      {set("rswa_window", 0), "case.attrs.rswa_window is 0, expected an integer >= 1"},
      {set("attention_chunk_size", 0),
       "case.attrs.attention_chunk_size is 0, expected an integer >= 1"},
      {set("causal", 1), "case.attrs.causal is 1, expected true or false"},
      {set("scale", 0.5),
       "case.attrs.scale is 0.5, expected a double as hex float string, e.g. \"0x1.8p+1\" or "
       "\"inf\""},
      {set("scale", "0.5"),
       "case.attrs.scale is \"0.5\", expected a double as hex float string, e.g. \"0x1.8p+1\" or "
       "\"inf\""},
      {set("alibi_form", "none"),
       "case.attrs.alibi_form is \"none\", expected one of row, context, zero, abs, sqrt"},
      {set("kv_cache_layout", "NDH"),
       "case.attrs.kv_cache_layout is \"NDH\", expected one of NHD, HND"},
      {set("exec", 3), "case.attrs.exec is 3, expected an object"},
      {set("exec", {{"splits", 3}}), "case.attrs.exec has the unknown key \"splits\""},
      {set("exec", {{"num_splits", 0}}),
       "case.attrs.exec.num_splits is 0, expected an integer >= 1"},
      {set("exec", {{"num_splits", 2}, {"kv_chunk", 3}}),
       "case.attrs.exec has num_splits 2 and kv_chunk 3, one excludes the other"},
      {set("exec", {{"dcp_interleave", 2}}),
       "case.attrs.exec has dcp_interleave 2 without dcp_size"},
      {[](auto& b) { b.object["attrs"].erase("causal"); }, "case.attrs.causal is missing"},
      {set("kv_layout", "paged"), "case.attrs.block_size is missing"},
  });
}

TEST(CaseFile, RswaStandsAlone) {
  const auto make = [] {
    CaseBuilder b = varlen_case();
    b.object["attrs"]["rswa_window"] = 2;
    b.input("rswa_prefix_lens", DType::kI32, {2}, {1, 0});
    return b;
  };
  EXPECT_EQ(parse_error(make()), "");
  expect_errors(
      {
          {[](auto& b) { b.remove_input("rswa_prefix_lens"); },
           "case.inputs.rswa_prefix_lens is missing"},
          {[](auto& b) { b.object["attrs"]["causal"] = false; },
           "case.attrs.causal false is excluded by case.attrs.rswa_window"},
          {[](auto& b) { b.object["attrs"]["window_right"] = 0; },
           "case.attrs.window_right is excluded by case.attrs.rswa_window"},
          {[](auto& b) { b.input("causal_per_req", DType::kBool, {2}); },
           "case.inputs.causal_per_req is excluded by case.attrs.rswa_window"},
      },
      make);
}

TEST(CaseFile, AttributesHaveTheirOperations) {
  CaseBuilder exec = varlen_case("differential");
  exec.object["attrs"].update(
      {{"diff_lambda", "0x0p+0"}, {"diff_lambda_init", "0x0p+0"}, {"exec", {{"num_splits", 2}}}});
  EXPECT_EQ(parse_error(exec), "f: case.attrs.exec does not belong to operation differential");

  CaseBuilder write("mla_cache_write");
  write.object["attrs"] = {{"block_size", 2},
                           {"kv_cache_dtype", "fp8_e5m2"},
                           {"kv_lora_rank", 6},
                           {"qk_rope_head_dim", 2}};
  for (const char* input : {"kv_c", "k_pe", "slot_mapping", "kv_cache"}) {
    write.input(input, DType::kF32, {1});
  }
  EXPECT_EQ(parse_error(write), "f: case.outputs.kv_cache_after is missing");
  write.describe("outputs", "kv_cache_after", DType::kF32, {1});
  EXPECT_EQ(parse_error(write),
            "f: case.attrs.kv_cache_dtype is \"fp8_e5m2\", expected one of auto, fp8_e4m3, "
            "fp8_ds_mla");
}

TEST(CaseFile, KnowsTheFormat) {
  const auto with_metadata = [](const golden::Metadata& metadata) {
    return error_of([&] { CaseFile::parse(golden::to_safetensors(metadata, {}), "f"); });
  };
  EXPECT_EQ(with_metadata({}),
            "f: is not a file of format attn-case/1: __metadata__.format is missing");
  EXPECT_EQ(with_metadata({{"format", "pt"}}),
            "f: is not a file of format attn-case/1: __metadata__.format is \"pt\"");
  EXPECT_EQ(with_metadata({{"format", "attn-case/1"}}), "f: __metadata__.case is missing");
  EXPECT_EQ(with_metadata({{"format", "attn-case/1"}, {"case", "{}"}, {"note", "x"}}),
            "f: __metadata__ has the unknown key \"note\"");
  EXPECT_EQ(with_metadata({{"format", "attn-case/1"}, {"case", "{\"id\":1,\"id\":2}"}}),
            "f: case has the key \"id\" twice in one object");
}

TEST(CaseFile, SurvivesEveryTruncation) {
  const std::vector<std::byte> bytes = paged_case().bytes();
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    const std::span<const std::byte> part = std::span(bytes).first(length);
    EXPECT_NE(error_of([&] { CaseFile::parse(part, "f"); }), "") << length;
  }
}

// A flipped bit gives an Error or another case: never a crash, and never more than one line.
TEST(CaseFile, SurvivesEveryFlippedBit) {
  std::vector<std::byte> bytes = paged_case().bytes();
  std::size_t rejected = 0;
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    const std::byte mask{static_cast<unsigned char>(1u << (bit % 8))};
    bytes[bit / 8] ^= mask;
    const std::string error = error_of([&] { to_string(CaseFile::parse(bytes, "f").problem()); });
    bytes[bit / 8] ^= mask;
    rejected += error.empty() ? 0u : 1u;
    ASSERT_EQ(error.find('\n'), std::string::npos) << error;
  }
  EXPECT_GT(rejected, bytes.size());
}

TEST(CaseFile, DoesNotDependOnTheLocale) {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  const CaseFile file = varlen_case().parse();
  const double scale = file.problem().attention()->scale;
  std::locale::global(before);
  EXPECT_EQ(scale, 0.5);
}

}  // namespace
}  // namespace attn
