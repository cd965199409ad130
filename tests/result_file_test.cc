#include <gtest/gtest.h>

#include "attn/case_file.h"
#include "golden/safetensors.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"
#include "tests/tensor_pool.h"

namespace attn {
namespace {

std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(ResultFile, WritesTheBytesOfTheFormat) {
  TensorPool pool;
  ExecSpec exec;
  exec.num_splits = 2;
  const std::vector<NamedTensor> tensors = {
      {"out_codes", pool.codes(DType::kF8E4M3FN, {1, 2}, std::vector<std::uint64_t>{0x30, 0x31})},
      {"out", pool.codes(DType::kBF16, {2, 1}, std::vector<std::uint64_t>{0x4241, 0x4443})}};
  const TemporaryFolder folder;
  write_result(folder.path() / "y", "CPU", exec, tensors);
  EXPECT_EQ(
      text_of(folder.path() / "y"),
      string_of(raw_safetensors(R"({"__metadata__":{"backend":"CPU","exec":"{\"num_splits\":2}",)"
                                R"("format":"attn-result/1"},)"
                                R"("out":{"dtype":"BF16","shape":[2,1],"data_offsets":[0,4]},)"
                                R"("out_codes":{"dtype":"U8","shape":[1,2],"data_offsets":[4,6]}})",
                                "ABCD01")));
  EXPECT_EQ(folder.names(), std::vector<std::string>{"y"});
}

TEST(ResultFile, ReadsBackWhatItWrote) {
  TensorPool pool;
  const std::vector<NamedTensor> tensors = {
      {"lse", pool.values(DType::kF64, {1, 2}, {0.5, -1.0})},
      {"out_codes", pool.codes(DType::kF8E4M3FN, {1}, std::vector<std::uint64_t>{0x38})},
      {"kv_cache_after", pool.codes(DType::kU8, {1}, std::vector<std::uint64_t>{0x38})}};
  const TemporaryFolder folder;
  write_result(folder.path() / "y", "REFERENCE", {}, tensors);
  const ResultFile file = ResultFile::read(folder.path() / "y");
  EXPECT_EQ(file.backend(), "REFERENCE");
  EXPECT_EQ(to_string(file.tensor("lse")), "f64[1,2]");
  EXPECT_EQ(value_at(file.tensor("lse"), 0, 1), -1.0);
  EXPECT_EQ(to_string(file.tensor("out_codes")), "f8_e4m3fn[1]");
  EXPECT_EQ(to_string(file.tensor("kv_cache_after")), "u8[1]");
  EXPECT_FALSE(file.tensor("out").present());
}

TEST(ResultFile, ExecIsWhatIsSet) {
  ExecSpec exec;
  EXPECT_EQ(to_json(exec), "{}");
  exec.has_common_prefix = true;
  EXPECT_EQ(to_json(exec), "{\"common_prefix_len\":0}");
  exec = {.kv_chunk = 3, .dcp_size = 2, .dcp_interleave = 4};
  EXPECT_EQ(to_json(exec), "{\"dcp_interleave\":4,\"dcp_size\":2,\"kv_chunk\":3}");
}

TEST(ResultFile, RefusesTensorsThatAreNotDense) {
  TensorPool pool;
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "y";
  const auto write_error = [&](const std::vector<NamedTensor>& tensors) {
    return error_of([&] { write_result(path, "CPU", {}, tensors); });
  };
  const TensorView view = pool.zeros(DType::kF32, {2, 3});
  EXPECT_EQ(write_error({{"out", swap_axes(view, 0, 1)}}),
            path.string() + ": tensor \"out\" is f32[3,2], must be contiguous");
  EXPECT_EQ(write_error({{"out", {}}}),
            path.string() + ": tensor \"out\" is absent, must be contiguous");
  EXPECT_EQ(write_error({{"out", view}, {"out", view}}),
            path.string() + ": tensor \"out\" is given twice");
  EXPECT_TRUE(folder.names().empty());
  EXPECT_EQ(write_error({{"out", slice(view, 0, 1, 1)}}), "");
}

TEST(ResultFile, RejectsDamage) {
  const TemporaryFolder folder;
  const auto read_error = [&](const golden::Metadata& metadata) {
    const std::filesystem::path path =
        folder.write("y", golden::to_safetensors(metadata, golden::StoredTensors()));
    const std::string error = error_of([&] { ResultFile::read(path); });
    return error.empty() ? error : error.substr(path.string().size() + 2);
  };
  EXPECT_EQ(read_error({{"format", "attn-result/1"}, {"backend", "CPU"}, {"exec", "{}"}}), "");
  EXPECT_EQ(read_error({{"format", "attn-case/1"}, {"backend", "CPU"}, {"exec", "{}"}}),
            "is not a file of format attn-result/1: __metadata__.format is \"attn-case/1\"");
  EXPECT_EQ(read_error({{"format", "attn-result/1"}, {"backend", "CPU"}}),
            "__metadata__.exec is missing");
  EXPECT_EQ(read_error({{"format", "attn-result/1"}, {"backend", "CPU"}, {"exec", "{"}}),
            "exec is not JSON: at byte 1");
  EXPECT_EQ(read_error({{"format", "attn-result/1"}, {"backend", "CPU"}, {"exec", "{\"n\":1}"}}),
            "exec has the unknown key \"n\"");
  EXPECT_EQ(error_of([&] { ResultFile::read(folder.path()); }),
            folder.path().string() + ": is not a regular file");
}

}  // namespace
}  // namespace attn
