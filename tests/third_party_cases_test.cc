// Third parties' answers (tests/data/third_party): every backend agrees with each answer to an
// operation it has, within the tolerance of the source and the backend's own arithmetic.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "attn/case_file.h"
#include "attn/cpu_backend.h"
#include "attn/error.h"
#include "attn/reference.h"
#include "attn/second_reference.h"
#include "attn/verdict.h"
#include "golden/safetensors.h"
#include "tests/tensor_pool.h"

namespace attn {
namespace {

namespace fs = std::filesystem;

// Cases of a folder, and stored answers and truths of the valid ones.
struct Source {
  const char* folder;
  int attention, attention_tensors;
  int others, other_tensors;  // of the operations around attention
  int invalid;                // to be rejected; all of operation attention
};

constexpr Source kSources[] = {
    {"flash_attention", 14, 29, 0, 0, 0},
    {"flash_mla", 0, 0, 2, 8, 0},
    {"flashinfer", 2, 8, 5, 16, 0},
    {"hand_made", 53, 106, 10, 20, 2},
    {"jax", 4, 13, 0, 0, 0},
    {"mlx", 5, 15, 0, 0, 0},
    {"onnx", 33, 99, 0, 0, 0},
    {"onnxruntime", 11, 33, 0, 0, 0},
    {"torch", 35, 72, 0, 0, 0},
    {"transformers", 4, 10, 3, 7, 0},
    {"vllm", 32, 94, 8, 30, 0},
    {"vllm_cpu", 30, 90, 0, 0, 0},
};

constexpr int total(int Source::*of) {
  int sum = 0;
  for (const Source& source : kSources) sum += source.*of;
  return sum;
}
static_assert(total(&Source::attention) == 223 && total(&Source::others) == 28 &&
              total(&Source::invalid) == 2);

fs::path root() { return fs::path(ATTN_TEST_DATA) / "third_party"; }

std::unique_ptr<Backend> make_backend(const std::string& name) {
  if (name == "CPU") return make_cpu_backend();
  return name == "REFERENCE" ? make_reference_backend() : make_second_reference_backend();
}

struct Answer {
  explicit Answer(const Backend& backend, const AttentionProblem& problem) {
    const DType computed = backend.capabilities().output_dtypes.front();
    for (const OutputSpec& spec : output_specs(problem, computed)) {
      outputs.*spec.view = pool.zeros(spec.dtype, spec.shape);
      by_name[std::string(spec.name)] = outputs.*spec.view;
    }
    exec = run_once(backend, problem, outputs);
  }

  TensorView tensor(const std::string& name) const {
    const auto it = by_name.find(name);
    return it == by_name.end() ? TensorView{} : it->second;
  }

  TensorPool pool;
  Outputs outputs;
  std::map<std::string, TensorView> by_name;
  ExecSpec exec;
};

struct Allowance {
  std::string backend;
  double unit;     // of its arithmetic
  int neighbours;  // codes of out_codes
};

bool is_cache(const std::string& tensor) { return tensor.ends_with("_after"); }

// tolerance of the source + unit * (largest |value| for out, 1 for lse and logits) + (rtol + unit)
// * |e|; a cache owes nothing to the backend's arithmetic.
Tolerance tolerance_of(const std::string& tensor, const CaseIndexRow& row, double unit) {
  Tolerance t = {tensor == "out" ? unit * row.vmax : unit, unit};
  if (is_cache(tensor)) t = {};
  if (const auto it = row.tolerance.find(tensor); it != row.tolerance.end()) {
    t.atol += it->second.first;
    t.rtol += it->second.second;
  }
  return t;
}

class ThirdPartyCases : public testing::TestWithParam<std::tuple<Source, Allowance>> {
 protected:
  ThirdPartyCases()
      : source_(std::get<0>(GetParam())),
        allowance_(std::get<1>(GetParam())),
        backend_(make_backend(allowance_.backend)),
        folder_(CaseFolder::open(root() / source_.folder)) {}

  bool answers_all_operations() const {
    return backend_->capabilities().operations.size() == std::size(kAllOpKinds);
  }

  void expect_within(const TensorComparison& comparison, const std::string& what) {
    EXPECT_EQ(comparison.over, 0) << fmt::format(
        "{} {}[{}] is {}, expected {} within {}", what, comparison.name,
        fmt::join(comparison.worst.at, ","), comparison.worst.actual, comparison.worst.expected,
        comparison.worst.bound);
    ++compared_;
  }

  void expect_agrees(const TensorView& stored, const std::string& name, const Answer& answer,
                     const CaseIndexRow& row, const std::string& what) {
    ASSERT_TRUE(stored.present()) << what << " " << name;
    const TensorView actual = answer.tensor(name);
    ASSERT_TRUE(actual.present()) << what << " " << name;
    const Tolerance tolerance = tolerance_of(name, row, allowance_.unit);
    if (name == "out_codes") {
      expect_within(compare_codes(name, stored, actual, allowance_.neighbours), what);
    } else if (is_cache(name) && tolerance.atol == 0.0 && tolerance.rtol == 0.0) {
      expect_within(compare_bits(name, stored, actual), what);
    } else {
      expect_within(compare_within(name, stored, actual, tolerance), what);
    }
  }

  // A second, more precise answer; only the backend's own arithmetic may be off.
  void expect_agrees_with_truth(const CaseIndexRow& row, const Answer& answer) {
    CaseIndexRow exact = row;
    exact.tolerance.clear();
    const golden::Safetensors file = golden::Safetensors::read(folder_.path / row.file);
    for (const auto& [name, tensor] : file.tensors()) {
      if (!name.starts_with("truth_")) continue;
      const std::string output = name.substr(std::string("truth_").size());
      const DType dtype = output == "out_codes" ? DType::kF8E4M3FN : tensor.storage;
      expect_agrees(tensor.view(dtype), output, answer, exact, row.id + " truth");
    }
  }

  void expect_answered(const CaseIndexRow& row, const CaseFile& file) {
    const AttentionProblem problem = file.problem();
    ASSERT_EQ(backend_->supports(problem), std::vector<std::string>{}) << row.id;
    const Answer answer(*backend_, problem);
    if (allowance_.backend == "REFERENCE") {
      EXPECT_EQ(answer.exec, asked_exec(problem)) << row.id;
    } else if (allowance_.backend == "SECOND_REFERENCE") {
      EXPECT_FALSE(answer.exec.any()) << row.id;
    }
    EXPECT_FALSE(file.outputs().empty()) << row.id;
    for (const auto& [name, description] : file.outputs()) {
      expect_agrees(file.stored_output(name), name, answer, row, row.id);
    }
    expect_agrees_with_truth(row, answer);
    ++answered_;
  }

  void expect_handled(const CaseIndexRow& row) {
    const CaseFile file = CaseFile::read(folder_.path / row.file);
    EXPECT_EQ(file.id(), row.id);
    EXPECT_EQ(file.result(), row.result) << row.id;
    if (row.result == CaseResult::kInvalid) {
      EXPECT_THROW(file.problem(), Error) << row.id;
      ++rejected_;
      return;
    }
    expect_answered(row, file);
  }

  const Source source_;
  const Allowance allowance_;
  const std::unique_ptr<Backend> backend_;
  const CaseFolder folder_;
  int answered_ = 0;
  int rejected_ = 0;
  int compared_ = 0;
};

TEST_P(ThirdPartyCases, AgreeWithTheBackend) {
  EXPECT_EQ(backend_->name(), allowance_.backend);
  for (const CaseIndexRow& row : folder_.rows) {
    if (row.op != OpKind::kAttention && !answers_all_operations()) continue;
    try {
      expect_handled(row);
    } catch (const std::exception& error) {
      ADD_FAILURE() << row.id << ": " << error.what();
    }
  }
  // Fewer cases than there are would be a pass that says nothing.
  const bool all = answers_all_operations();
  EXPECT_EQ(answered_, source_.attention + (all ? source_.others : 0));
  EXPECT_EQ(compared_, source_.attention_tensors + (all ? source_.other_tensors : 0));
  EXPECT_EQ(rejected_, source_.invalid);
}

INSTANTIATE_TEST_SUITE_P(From, ThirdPartyCases,
                         testing::Combine(testing::ValuesIn(kSources),
                                          testing::Values(Allowance{"REFERENCE", 1e-11, 0},
                                                          Allowance{"SECOND_REFERENCE", 1e-11, 0},
                                                          Allowance{"CPU", 2e-5, 1})),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).folder) + "_" +
                                  std::get<1>(test.param).backend;
                         });

// Rows that must be the same bits in several cases.
class ThirdPartyRelations : public testing::TestWithParam<std::string> {};

TEST_P(ThirdPartyRelations, HoldBitForBit) {
  const std::unique_ptr<Backend> backend = make_backend(GetParam());
  const CaseFolder folder = CaseFolder::open(root() / "hand_made");
  const auto rows_of = [&](const CaseRelation::Rows& rows) {
    const auto row = std::find_if(folder.rows.begin(), folder.rows.end(),
                                  [&](const CaseIndexRow& r) { return r.id == rows.id; });
    const CaseFile file = CaseFile::read(folder.path / row->file);
    const AttentionProblem problem = file.problem();
    const Answer answer(*backend, problem);
    const MutableTensorView& out = answer.outputs.out;
    EXPECT_LE(rows.first_token + rows.count, out.shape[0]);
    return std::string(reinterpret_cast<const char*>(out.at(rows.first_token)),
                       static_cast<std::size_t>(rows.count * out.stride_bytes[0]));
  };
  for (const CaseRelation& relation : folder.relations) {
    const std::string first = rows_of(relation.rows.at(0));
    EXPECT_FALSE(first.empty());
    for (const CaseRelation::Rows& rows : relation.rows) {
      EXPECT_TRUE(rows_of(rows) == first)
          << relation.about << ": " << rows.id << " differs from " << relation.rows[0].id;
    }
  }
  EXPECT_EQ(folder.relations.size(), 2U);
}

INSTANTIATE_TEST_SUITE_P(Of, ThirdPartyRelations,
                         testing::Values("REFERENCE", "SECOND_REFERENCE", "CPU"),
                         [](const auto& test) { return test.param; });

TEST(ThirdPartySources, AreTheFoldersThatAreThere) {
  std::vector<std::string> listed;
  for (const Source& source : kSources) listed.emplace_back(source.folder);
  std::vector<std::string> there;
  for (const auto& entry : fs::directory_iterator(root())) {
    if (entry.is_directory()) there.push_back(entry.path().filename());
  }
  std::sort(there.begin(), there.end());
  EXPECT_EQ(there, listed);
}

// Every source comes with its licence and says where its answers come from.
TEST(ThirdPartySources, ComeWithTheirLicence) {
  for (const Source& source : kSources) {
    EXPECT_GT(fs::file_size(root() / source.folder / "NOTICE"), 0U) << source.folder;
    EXPECT_GT(fs::file_size(root() / source.folder / "LICENSE"), 0U) << source.folder;
  }
}

}  // namespace
}  // namespace attn
