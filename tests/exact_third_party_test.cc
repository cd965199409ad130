// Third parties' answers (tests/data/third_party) to every operation: the exact answer lies within
// the tolerance of the source, with nothing added for arithmetic of its own.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "attn/case_file.h"
#include "attn/error.h"
#include "attn/verdict.h"
#include "golden/safetensors.h"
#include "tests/exact_answers.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

struct Source {
  const char* folder;
  int valid;
  int tensors;  // stored answers and truths of the valid cases
};

constexpr Source kSources[] = {{"flash_attention", 14, 29},
                               {"flash_mla", 2, 8},
                               {"flashinfer", 7, 24},
                               {"hand_made", 63, 126},
                               {"jax", 4, 13},
                               {"mlx", 5, 15},
                               {"onnx", 33, 99},
                               {"onnxruntime", 11, 33},
                               {"torch", 35, 72},
                               {"transformers", 7, 17},
                               {"vllm", 40, 124},
                               {"vllm_cpu", 30, 90}};

// A truth was computed in float64 and has no tolerance of its own.
constexpr double kFloat64Noise = 1e-12;

class ExactThirdPartyCases : public testing::TestWithParam<Source> {
 protected:
  void expect_within(const TensorComparison& comparison, const std::string& what) {
    EXPECT_EQ(comparison.over, 0) << fmt::format(
        "{} {}[{}] is {}, expected {} within {}", what, comparison.name,
        fmt::join(comparison.worst.at, ","), comparison.worst.actual, comparison.worst.expected,
        comparison.worst.bound);
    ++compared_;
  }

  void expect_agrees(const std::string& name, const TensorView& stored, const ExactAnswer& answer,
                     const Tolerance& tolerance, const std::string& what) {
    const TensorView actual = answer.view(name);
    ASSERT_TRUE(stored.present() && actual.present()) << what << " " << name;
    if (name == "out_codes") {
      expect_within(compare_codes(name, stored, actual, 0), what);
    } else if (name.ends_with("_after") && tolerance.atol == 0.0 && tolerance.rtol == 0.0) {
      expect_within(compare_bits(name, stored, actual), what);
    } else {
      expect_within(compare_within(name, stored, actual, tolerance), what);
    }
  }

  void expect_answered(const fs::path& path, const CaseIndexRow& row) {
    const CaseFile file = CaseFile::read(path);
    const ExactAnswer answer(file.problem());
    const Tolerance noise{kFloat64Noise * (1.0 + row.vmax), kFloat64Noise};
    for (const auto& [name, description] : file.outputs()) {
      Tolerance tolerance = name.ends_with("_after") ? Tolerance{} : noise;
      if (const auto it = row.tolerance.find(name); it != row.tolerance.end()) {
        tolerance.atol += it->second.first;
        tolerance.rtol += it->second.second;
      }
      expect_agrees(name, file.stored_output(name), answer, tolerance, row.id);
    }
    const golden::Safetensors stored = golden::Safetensors::read(path);
    for (const auto& [name, tensor] : stored.tensors()) {
      if (!name.starts_with("truth_")) continue;
      const std::string output = name.substr(std::string("truth_").size());
      const DType dtype = output == "out_codes" ? DType::kF8E4M3FN : tensor.storage;
      expect_agrees(output, tensor.view(dtype), answer, noise, row.id + " truth");
    }
    ++answered_;
  }

  int answered_ = 0;
  int compared_ = 0;
};

TEST_P(ExactThirdPartyCases, AgreeWithTheExactAnswer) {
  const fs::path folder = fs::path(ATTN_TEST_DATA) / "third_party" / GetParam().folder;
  for (const CaseIndexRow& row : CaseFolder::open(folder).rows) {
    if (row.result != CaseResult::kValid) continue;
    try {
      expect_answered(folder / row.file, row);
    } catch (const std::exception& error) {
      ADD_FAILURE() << row.id << ": " << error.what();
    }
  }
  EXPECT_EQ(answered_, GetParam().valid);
  EXPECT_EQ(compared_, GetParam().tensors);
}

INSTANTIATE_TEST_SUITE_P(From, ExactThirdPartyCases, testing::ValuesIn(kSources),
                         [](const auto& test) { return std::string(test.param.folder); });

}  // namespace
}  // namespace attn
