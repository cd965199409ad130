// What other people's software answered, as `compare --cases` judges it.
#include <algorithm>
#include <cstring>
#include <fstream>

#include "tests/case_folder_writer.h"
#include "tests/cli_expectations.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

struct Source {
  const char* folder;
  const char* counts;      // of the stored answers
  const char* cpu_counts;  // of CPU's
  int exit = 0;
};

const Source kSources[] = {
    {"flash_attention", "14 passed, 0 failed", "14 passed, 0 failed"},
    {"flash_mla", "2 passed, 0 failed", "0 passed, 0 failed, 2 skipped"},
    {"flashinfer", "7 passed, 0 failed", "3 passed, 0 failed, 4 skipped"},
    {"hand_made", "63 passed, 0 failed, 2 skipped", "55 passed, 0 failed, 12 skipped",
     3},  // cases that must be rejected
    {"jax", "4 passed, 0 failed", "4 passed, 0 failed"},
    {"mlx", "5 passed, 0 failed", "5 passed, 0 failed"},
    {"onnx", "33 passed, 0 failed", "33 passed, 0 failed"},
    {"onnxruntime", "11 passed, 0 failed", "11 passed, 0 failed"},
    {"torch", "35 passed, 0 failed", "35 passed, 0 failed"},
    {"transformers", "7 passed, 0 failed", "4 passed, 0 failed, 3 skipped"},
    {"vllm", "40 passed, 0 failed", "34 passed, 0 failed, 6 skipped"},
    {"vllm_cpu", "30 passed, 0 failed", "30 passed, 0 failed"},
};

CommandOutput compare(const fs::path& folder) {
  return attn_oracle({"compare", "--cases", folder.string()});
}

TEST(ThirdPartyFolders, AreAllListed) {
  std::vector<std::string> there, listed;
  for (const auto& entry : fs::directory_iterator(third_party(""))) {
    if (entry.is_directory()) there.push_back(entry.path().filename());
  }
  for (const Source& source : kSources) listed.emplace_back(source.folder);
  std::sort(there.begin(), there.end());
  EXPECT_EQ(there, listed);
}

class ThirdPartyAnswers : public testing::TestWithParam<Source> {};

TEST_P(ThirdPartyAnswers, AllPass) {
  const CommandOutput output = compare(third_party(GetParam().folder));
  EXPECT_EQ(output.exit, GetParam().exit);
  EXPECT_EQ(lines_of(output.out).back(), GetParam().counts) << output.out;
}

// What CPU does not answer is skipped.
TEST_P(ThirdPartyAnswers, CpuKeepsTheBoundItDeclares) {
  const TemporaryFolder answers;
  const std::string cases = third_party(GetParam().folder);
  attn_oracle({"run", "--cases", cases, "--backend", "CPU", "--out", answers.path().string()});
  const CommandOutput output =
      attn_oracle({"compare", "--cases", cases, "--actual", answers.path().string()});
  EXPECT_EQ(lines_of(output.out).back(), GetParam().cpu_counts) << output.out;
}

// How an element lies in memory: mantissa below exponent below sign.
struct Encoding {
  std::size_t bytes;
  int mantissa_bits;

  std::uint64_t exponent_mask() const {
    const std::uint64_t above_sign = std::uint64_t{1} << (8 * bytes - 1);
    return above_sign - (std::uint64_t{1} << mantissa_bits);
  }
};

Encoding encoding_of(const std::string& storage) {
  if (storage == "F64") return {8, 52};
  if (storage == "F32") return {4, 23};
  if (storage == "F16") return {2, 10};
  if (storage == "BF16") return {2, 7};
  return {1, 7};  // codes
}

// Flips the highest mantissa bit of the largest finite element: it is off by a fifth or more. Of
// zeros, the highest bit of an exponent.
void spoil(PlainTensor& tensor) {
  const Encoding encoding = encoding_of(tensor.storage);
  const std::uint64_t exponents = encoding.exponent_mask();
  const std::uint64_t magnitudes = exponents | ((std::uint64_t{1} << encoding.mantissa_bits) - 1);
  std::size_t largest_at = 0;
  std::uint64_t largest = 0;
  for (std::size_t at = 0; at < tensor.bytes.size(); at += encoding.bytes) {
    std::uint64_t code = 0;
    std::memcpy(&code, tensor.bytes.data() + at, encoding.bytes);
    const bool finite = exponents == 0 || (code & exponents) != exponents;
    if (!finite || (code & magnitudes) < largest) continue;
    largest = code & magnitudes;
    largest_at = at;
  }
  std::uint64_t code = 0;
  std::memcpy(&code, tensor.bytes.data() + largest_at, encoding.bytes);
  const auto sign_bit = static_cast<int>(8 * encoding.bytes) - 1;
  code ^= std::uint64_t{1} << (largest == 0 ? sign_bit - 1 : encoding.mantissa_bits - 1);
  std::memcpy(tensor.bytes.data() + largest_at, &code, encoding.bytes);
}

// The folder with one wrong bit in the answer to every case that has one, digests put right.
void write_spoiled(const fs::path& from, const fs::path& to) {
  std::ifstream rows(from / "index.jsonl");
  std::ofstream index(to / "index.jsonl");
  for (std::string line; std::getline(rows, line);) {
    nlohmann::json row = nlohmann::json::parse(line);
    const std::string name = row["file"];
    PlainFile file = PlainFile::read(from / name);
    for (const char* answer : {"out", "logits", "key_cache_after"}) {
      const auto found = file.tensors.find(answer);
      if (found == file.tensors.end()) continue;
      spoil(found->second);
      break;
    }
    const std::string bytes = file.bytes();
    std::ofstream(to / name, std::ios::binary) << bytes;
    row["sha256"] = sha256_hex(bytes);
    index << row.dump() << "\n";
  }
}

TEST_P(ThirdPartyAnswers, AreAllFoundWrongByOneBit) {
  const TemporaryFolder folder;
  write_spoiled(third_party(GetParam().folder), folder.path());
  const CommandOutput output = compare(folder.path());
  EXPECT_EQ(output.exit, 1);
  const std::string counts = GetParam().counts;
  const std::string cases = counts.substr(0, counts.find(' '));
  const std::string rest = counts.substr(counts.find(" failed") + 7);
  EXPECT_EQ(lines_of(output.out).back(), "0 passed, " + cases + " failed" + rest) << output.out;
}

INSTANTIATE_TEST_SUITE_P(Folders, ThirdPartyAnswers, testing::ValuesIn(kSources),
                         [](const auto& test) { return std::string(test.param.folder); });

}  // namespace
}  // namespace attn
