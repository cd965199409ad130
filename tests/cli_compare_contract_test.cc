// Contracts of attn-oracle compare --case.
#include "core/special_values.h"
#include "tests/compare_fixture.h"

namespace attn {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

class CompareContract : public CompareFixture {};

// f64 allows some 2^-52 of an element, f32 some 2^-24, bf16 2^-8 and more.
TEST_F(CompareContract, ContractFollowsTheStoredTypeUnlessNamed) {
  set("out", 1, 2.0 + 1e-9);
  EXPECT_EQ(failed("bound", "out[1,0,0]")["contract"], "f64");
  EXPECT_EQ(passed({"--contract", "fp32"})["contract"], "fp32");
  answer_.tensors["out"] = f32_tensor({3, 1, 1}, {1.5F, 2.0F, 0.0F});
  answer_.tensors["cond_out"] = f64_tensor({7}, std::vector<double>(7, kNaN));
  EXPECT_EQ(passed()["contract"], "fp32");
  answer_.tensors["out"] = f32_tensor({3, 1, 1}, {1.5F, 2.001F, 0.0F});
  EXPECT_EQ(failed("bound", "out[1,0,0]")["contract"], "fp32");
  // bf16 of 1.5, 2 + 2^-7 and 0
  answer_.tensors["out"] = plain_tensor<std::uint16_t>("BF16", {3, 1, 1}, {0x3FC0, 0x4001, 0x0000});
  EXPECT_EQ(passed()["contract"], "bf16_flash");
  answer_.tensors["out"] = plain_tensor<std::uint16_t>("F16", {3, 1, 1}, {0x3E00, 0x4000, 0x3E00});
  EXPECT_EQ(failed("empty_rows", "out[2,0,0]")["contract"], "f16_flash");
}

TEST_F(CompareContract, BackendNamedInTheAnswerDeclaresItsContract) {
  answer_.metadata["backend"] = "CPU";
  const Json declared = passed();
  EXPECT_EQ(declared["contract"], "fp32");
  answer_.metadata["backend"] = "REFERENCE";
  EXPECT_EQ(passed()["contract"], "reference");
  answer_.metadata["backend"] = "CUDA_FLASH";  // not in this build
  EXPECT_EQ(passed()["contract"], "f64");
}

TEST_F(CompareContract, ContractFileIsMergedOverTheOneItExtends) {
  folder_.write("mine.json", std::string(R"({"extends": "bf16_flash", "tile": 128})"));
  const Json document = passed({"--contract", "mine.json"});
  EXPECT_EQ(document["contract"], "bf16_flash");
  EXPECT_EQ(document["overrides"], Json::parse(R"({"tile": 128})"));
  EXPECT_EQ(keys_of(document)[7], "overrides");
  expect_replays(document, setting_);
  folder_.write("plain", std::string("{}"));
  const Json same = passed({"--contract", "plain"});
  EXPECT_EQ(same["contract"], "fp32");
  EXPECT_FALSE(same.contains("overrides"));
  // What `list contracts` prints is a contract.
  const Json list = document_of(attn_oracle({"list", "contracts", "--json"}));
  for (const Json& item : list["items"]) {
    folder_.write("listed", item["params"].dump());
    const Json by_file = passed({"--contract", "listed"});
    const Json by_name = passed({"--contract", item["name"]});
    EXPECT_EQ(by_file["tensors"], by_name["tensors"]) << item["name"];
  }
}

TEST_F(CompareContract, BrokenContractsAreTwo) {
  fs::create_directory(folder_.path() / "folder");
  const std::map<std::string, std::string> files = {
      {"unknown", R"({"tiles": 64})"},
      {"type", R"({"tile": "64"})"},
      {"range", R"({"tile": -1})"},
      {"base", R"({"extends": "fp31"})"},
      {"array", "[]"},
      {"truncated", R"({"tile": 64)"},
      {"twice", R"({"tile": 64, "tile": 64})"},
      {"text", "fp32"},
      {"bytes", std::string("\xFF\0{}", 4)},
      {"deep", std::string(100000, '[')},
      {"empty", ""},
      {"huge", "{" + std::string(2 << 20, ' ') + "}"}};
  for (const auto& [name, text] : files) folder_.write(name, text);
  for (const auto& [name, text] : files) {
    expect_refused(compare({"--contract", name, "--json"}), name);
  }
  for (const char* name : {"missing.json", "folder", "FP32", "fp32 ", "/dev/zero"}) {
    expect_refused(compare({"--contract", name}),
                   std::string("--contract is '") + name + "', neither a file nor one of fp32, ");
  }
  expect_refused(compare({"--contract", ""}), "--contract");
}

}  // namespace
}  // namespace attn
