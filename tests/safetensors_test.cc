#include "golden/safetensors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "golden/input_file.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"

namespace attn::golden {
namespace {

using namespace std::string_literals;

std::string parse_error(std::span<const std::byte> bytes) {
  return error_of([&] { Safetensors::parse(bytes); });
}

std::string parse_error(const std::string& header, std::string_view data = {}) {
  return parse_error(raw_safetensors(header, data));
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape +
         ",\"data_offsets\":" + offsets + "}";
}

// One F32 tensor "x" and 8 bytes of data.
std::string x_error(const std::string& dtype, const std::string& shape,
                    const std::string& offsets) {
  return parse_error("{" + tensor("x", dtype, shape, offsets) + "}", "01234567");
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::string string_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr std::string_view kData = "0123456789abcdefghijklmnopqrstuvwxyz";

StoredTensors some_tensors() {
  const std::span<const std::byte> data = bytes_of(kData);
  return {{"b", {DType::kU8, {3}, data.first(3)}},
          {"a", {DType::kU8, {1, 2}, data.subspan(3, 2)}},
          {"z", {DType::kI64, {1}, data.subspan(5, 8)}},
          {"h", {DType::kBF16, {2, 1}, data.subspan(13, 4)}},
          {"e", {DType::kF32, {0, 7}, {}}}};
}

TEST(Safetensors, WritesTheBytesOfTheFormat) {
  const std::string header = R"({"__metadata__":{"case":"{\"a\":1}","format":"x"},)"
                             R"("z":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
                             R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[8,8]},)"
                             R"("h":{"dtype":"BF16","shape":[2,1],"data_offsets":[8,12]},)"
                             R"("a":{"dtype":"U8","shape":[1,2],"data_offsets":[12,14]},)"
                             R"("b":{"dtype":"U8","shape":[3],"data_offsets":[14,17]}})";
  EXPECT_EQ(string_of(to_safetensors({{"format", "x"}, {"case", "{\"a\":1}"}}, some_tensors())),
            string_of(raw_safetensors(header, "56789abcdefg34012")));
}

TEST(Safetensors, ReadsBackWhatItWrote) {
  const StoredTensors tensors = some_tensors();
  const Metadata metadata = {{"format", "x"}, {"note", "\xC3\xA9 \" \n"}};
  const std::vector<std::byte> bytes = to_safetensors(metadata, tensors);
  const TemporaryFolder folder;
  const Safetensors parsed = Safetensors::parse(bytes);
  const Safetensors read = Safetensors::read(folder.write("f", bytes));
  for (const Safetensors* file : {&parsed, &read}) {
    EXPECT_EQ(file->metadata(), metadata);
    ASSERT_EQ(file->tensors().size(), tensors.size());
    for (const auto& [name, tensor] : file->tensors()) {
      EXPECT_EQ(tensor.storage, tensors.at(name).storage) << name;
      EXPECT_EQ(tensor.shape, tensors.at(name).shape) << name;
      EXPECT_EQ(string_of(tensor.data), string_of(tensors.at(name).data)) << name;
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(tensor.data.data()) %
                    static_cast<std::uintptr_t>(unit_bytes(tensor.storage)),
                0u);
    }
  }
}

TEST(Safetensors, StoresSmallFloatsAsBytes) {
  EXPECT_EQ(storage_name(DType::kF64), "F64");
  EXPECT_EQ(storage_name(DType::kBF16), "BF16");
  EXPECT_EQ(storage_name(DType::kI8), "I8");
  EXPECT_EQ(storage_name(DType::kBool), "BOOL");
  for (const DType type : {DType::kU8, DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2,
                           DType::kF8E8M0, DType::kF4E2M1}) {
    EXPECT_EQ(storage_name(type), "U8");
  }
}

TEST(Safetensors, WriterRefusesWhatNoReaderTakes) {
  const auto write = [](const Metadata& metadata, const StoredTensors& tensors) {
    return error_of([&] { to_safetensors(metadata, tensors); });
  };
  EXPECT_EQ(write({}, {{"x", {DType::kU8, {2}, bytes_of("abc")}}}),
            "tensor \"x\" of U8 [2] with 3 bytes cannot be written");
  EXPECT_NE(write({}, {{"__metadata__", {DType::kU8, {1}, bytes_of("a")}}}), "");
  EXPECT_EQ(write({{"note", "\xFF"}}, {}), "a name or text for the header is not UTF-8");
}

TEST(Safetensors, TakesEmptyTensorsAndFiles) {
  EXPECT_EQ(parse_error("{}"), "");
  EXPECT_EQ(
      parse_error(
          "{" + tensor("a", "F64", "[0]", "[0,0]") + "," + tensor("b", "U8", "[8]", "[0,8]") + "," +
              tensor("c", "F64", "[3,0]", "[8,8]") + "," + tensor("d", "U8", "[]", "[8,9]") + "}",
          "012345678"),
      "");
}

TEST(Safetensors, ChecksTheHeaderLength) {
  std::vector<std::byte> bytes = raw_safetensors("{}", "");
  const auto with_length = [&](std::uint64_t length) {
    std::memcpy(bytes.data(), &length, 8);
    return parse_error(bytes);
  };
  EXPECT_EQ(with_length(8), "");
  EXPECT_EQ(with_length(0), "header is not a JSON object padded with spaces");
  EXPECT_EQ(with_length(2), "header length is 2, not a multiple of 8");
  EXPECT_EQ(with_length(16), "header length is 16, but only 8 bytes follow");
  EXPECT_EQ(with_length(~std::uint64_t{0}),
            "header length is 18446744073709551615, but only 8 bytes follow");
  EXPECT_EQ(with_length(std::uint64_t{1} << 63),
            "header length is 9223372036854775808, but only 8 bytes follow");
  EXPECT_EQ(parse_error(std::string("{}") + std::string(kMaxHeaderBytes, ' ')),
            "header length is 16777224, at most 16777216 is allowed");
}

TEST(Safetensors, ChecksTheHeaderText) {
  EXPECT_EQ(parse_error("{}x"), "header is not a JSON object padded with spaces");
  EXPECT_EQ(parse_error(" {}"), "header is not a JSON object padded with spaces");
  EXPECT_EQ(parse_error("{}\n"), "header is not a JSON object padded with spaces");
  EXPECT_EQ(parse_error("[]"), "header is not a JSON object padded with spaces");
  EXPECT_EQ(parse_error("{\"a\":}"), "header is not JSON: at byte 5");
  EXPECT_EQ(parse_error("{\"__metadata__\":{\"a\":1}}"),
            "header.__metadata__.a is 1, expected a string");
  EXPECT_EQ(parse_error("{\"__metadata__\":3}"), "header.__metadata__ is 3, expected an object");
  const std::string x = tensor("x", "U8", "[1]", "[0,1]");
  EXPECT_EQ(parse_error("{" + x + "," + x + "}", "0"),
            "header has the key \"x\" twice in one object");
  EXPECT_EQ(
      parse_error("{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"a\":1}}", "0"),
      "header.x has the unknown key \"a\"");
  EXPECT_EQ(parse_error("{\"x\":{\"dtype\":\"U8\",\"shape\":[1]}}", "0"),
            "header.x.data_offsets is missing");
}

TEST(Safetensors, ChecksTypesAndShapes) {
  EXPECT_EQ(x_error("F32", "[2]", "[0,8]"), "");
  EXPECT_EQ(
      x_error("F99", "[2]", "[0,8]"),
      "header.x.dtype is \"F99\", expected one of F64, F32, F16, BF16, I64, I32, I8, U8, BOOL");
  EXPECT_EQ(x_error("F32", "[-2]", "[0,8]"), "header.x.shape[0] is -2, expected an integer >= 0");
  EXPECT_EQ(x_error("F32", "[2.0]", "[0,8]"), "header.x.shape[0] is 2.0, expected an integer >= 0");
  EXPECT_EQ(x_error("F32", "2", "[0,8]"), "header.x.shape is 2, expected an array");
  EXPECT_EQ(x_error("F32", "[3]", "[0,8]"),
            "header.x.data_offsets is [0,8], but F32 [3] takes 12 bytes");
  EXPECT_EQ(x_error("F32", "[1]", "[0,8]"),
            "header.x.data_offsets is [0,8], but F32 [1] takes 4 bytes");
  EXPECT_EQ(x_error("F64", "[2]", "[0,8]"),
            "header.x.data_offsets is [0,8], but F64 [2] takes 16 bytes");
}

TEST(Safetensors, ShapesDoNotOverflow) {
  // 2^40 * 2^24 * 4 = 2^66, which is 0 modulo 2^64; with a zero axis the strides would overflow.
  EXPECT_EQ(x_error("F32", "[1099511627776,16777216]", "[0,0]"),
            "header.x.shape [1099511627776,16777216] of F32 is too large to address");
  EXPECT_EQ(x_error("F32", "[0,1099511627776,16777216]", "[0,0]"),
            "header.x.shape [0,1099511627776,16777216] of F32 is too large to address");
  EXPECT_EQ(x_error("F32", "[2251799813685250,8192]", "[0,8]"),
            "header.x.shape [2251799813685250,8192] of F32 is too large to address");
}

TEST(Safetensors, ChecksOffsets) {
  EXPECT_EQ(x_error("F32", "[2]", "[0]"),
            "header.x.data_offsets is an array, expected two offsets");
  EXPECT_EQ(x_error("F32", "[2]", "[-8,0]"),
            "header.x.data_offsets[0] is -8, expected an integer >= 0");
  EXPECT_EQ(x_error("F32", "[2]", "[8,0]"),
            "header.x.data_offsets is [8,0], not within the 8 bytes of data");
  EXPECT_EQ(x_error("F32", "[2]", "[0,12]"),
            "header.x.data_offsets is [0,12], not within the 8 bytes of data");
  EXPECT_EQ(x_error("F32", "[2]", "[9007199254740984,9007199254740992]"),
            "header.x.data_offsets is [9007199254740984,9007199254740992], not within the 8 bytes "
            "of data");
}

TEST(Safetensors, TensorsCoverTheDataOnce) {
  const auto two = [](const std::string& a, const std::string& b, std::string_view data) {
    return parse_error("{" + a + "," + b + "}", data);
  };
  const std::string a = tensor("a", "U8", "[2]", "[0,2]");
  EXPECT_EQ(two(a, tensor("b", "U8", "[2]", "[2,4]"), "0123"), "");
  EXPECT_EQ(two(a, tensor("b", "U8", "[2]", "[2,4]"), "01234"), "1 bytes follow the last tensor");
  EXPECT_EQ(two(a, tensor("b", "U8", "[2]", "[3,5]"), "01234"),
            "tensor \"b\" begins at 3, leaving a gap after 2");
  EXPECT_EQ(two(a, tensor("b", "U8", "[2]", "[1,3]"), "012"),
            "tensor \"b\" begins at 1, inside the tensor that ends at 2");
  EXPECT_EQ(two(a, tensor("b", "U8", "[2]", "[0,2]"), "01"),
            "tensor \"b\" begins at 0, inside the tensor that ends at 2");
  EXPECT_EQ(two(a, tensor("b", "U8", "[0]", "[1,1]"), "01"),
            "tensor \"b\" begins at 1, inside the tensor that ends at 2");
  EXPECT_EQ(two(tensor("a", "U8", "[2]", "[0,2]"), tensor("b", "F32", "[1]", "[2,6]"), "012345"),
            "header.b.data_offsets begins at 2, not aligned for F32");
  EXPECT_EQ(parse_error("{}", "0"), "1 bytes follow the last tensor");
}

TEST(Safetensors, RejectsEveryTruncation) {
  const std::vector<std::byte> bytes = to_safetensors({{"format", "x"}}, some_tensors());
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_NE(parse_error(std::span(bytes).first(length)), "") << length;
  }
  EXPECT_EQ(parse_error(std::span(bytes).first(7)), "has 7 bytes, too few for a safetensors file");
  std::vector<std::byte> longer = bytes;
  longer.push_back(std::byte{0});
  EXPECT_EQ(parse_error(longer), "1 bytes follow the last tensor");
}

TEST(Safetensors, ReadsRegularFilesOnly) {
  const TemporaryFolder folder;
  const auto read_error = [](const std::filesystem::path& path) {
    return error_of([&] { Safetensors::read(path); });
  };
  EXPECT_EQ(read_error(folder.path()), "is not a regular file");
  EXPECT_EQ(read_error("/dev/zero"), "is not a regular file");
  EXPECT_EQ(read_error(folder.path() / "none"), "cannot open: No such file or directory");
  const std::filesystem::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(read_error(pipe), "is not a regular file");
  const std::vector<std::byte> bytes = raw_safetensors("{}", "");
  folder.write("file", bytes);
  std::filesystem::create_symlink("file", folder.path() / "link");
  EXPECT_EQ(read_error(folder.path() / "link"), "");
}

TEST(Safetensors, TakesNoMemoryThatTheHeaderDoesNotExplain) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("huge", raw_safetensors("{}", ""));
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  EXPECT_EQ(error_of([&] { Safetensors::read(path); }),
            "1099511627760 bytes follow the last tensor");
}

TEST(InputFile, NoticesAFileThatShrinks) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.write("file", std::string_view("0123456789"));
  InputFile file(path);
  std::byte bytes[5];
  file.read(bytes);
  EXPECT_EQ(string_of(bytes), "01234");
  std::filesystem::resize_file(path, 7);
  EXPECT_EQ(error_of([&] { file.read(bytes); }), "became shorter while it was read");
}

// FIPS 180-2, appendix B, and NIST's example of a million times "a".
TEST(InputFile, ComputesSha256) {
  const TemporaryFolder folder;
  EXPECT_EQ(sha256_of_file(folder.write("empty", std::string_view())),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_of_file(folder.write("abc", std::string_view("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_of_file(folder.write("million", std::string(1000000, 'a'))),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

}  // namespace
}  // namespace attn::golden
