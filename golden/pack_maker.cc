#include "golden/pack_maker.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "attn/case_writer.h"
#include "attn/conditioning.h"
#include "attn/error.h"
#include "attn/host_tensor.h"
#include "attn/parallel.h"
#include "core/strict_json.h"
#include "golden/error_source.h"
#include "golden/input_file.h"
#include "golden/pack_index.h"
#include "golden/pack_inspection.h"
#include "golden/pack_limits.h"
#include "golden/pack_manifest.h"
#include "golden/pack_notes.h"
#include "golden/pack_sums.h"
#include "golden/pack_texts.h"
#include "golden/unfinished_pack.h"

namespace attn::golden {
namespace {

using questions::Question;

constexpr std::int64_t kBits = 200;
constexpr std::int64_t kCheckBits = 400;

// Interfaces with float attributes must be able to pose the same problem.
void expect_binary32(std::string_view what, double value) {
  if (std::isfinite(value) && static_cast<double>(static_cast<float>(value)) != value) {
    throw Error(fmt::format("{} is {}, not exact in binary32", what, value));
  }
}

struct ExpectBinary32 {
  void operator()(const AttentionOp& op) const {
    expect_binary32("scale", op.scale);
    expect_binary32("logits_soft_cap", op.logits_soft_cap);
  }
  void operator()(const DifferentialOp& op) const {
    (*this)(op.attention);
    expect_binary32("diff_lambda", op.lambda);
    expect_binary32("diff_lambda_init", op.lambda_init);
    expect_binary32("diff_eps", op.eps);
  }
  void operator()(const MlaOp& op) const { expect_binary32("scale", op.scale); }
  void operator()(const MlaSparseOp& op) const { (*this)(op.mla); }
  template <class Op>
  void operator()(const Op&) const {}
};

// Outputs in memory of their own.
class Memory {
 public:
  MutableTensorView add(const OutputSpec& spec) {
    return tensors_.emplace(spec.name, HostTensor(spec.dtype, spec.shape)).first->second.view();
  }

  std::vector<NamedTensor> named(bool conditioning) const {
    std::vector<NamedTensor> named;
    for (const auto& [name, tensor] : tensors_) {
      if (name.starts_with("cond_") == conditioning) named.push_back({name, tensor.view()});
    }
    return named;
  }

  TensorView view(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? TensorView{} : found->second.view();
  }

 private:
  std::map<std::string, HostTensor> tensors_;
};

// Largest magnitude among finite elements, of every `step`-th from the first.
double largest(const TensorView& view, std::int64_t first, std::int64_t step) {
  double result = 0.0;
  const auto* data = static_cast<const std::byte*>(view.data);
  const std::int64_t units = view.present() ? view.num_units() : 0;
  for (std::int64_t i = first; i < units; i += step) {
    const double value =
        std::abs(decode(view.dtype, load_code(view.dtype, data + i * unit_bytes(view.dtype))));
    if (std::isfinite(value)) result = std::max(result, value);
  }
  return result;
}

// Largest |value| that a row sees, as an integer not below it. An answer is never larger, but for
// differential, whose weights do not add up to 1.
double vmax_of(const Memory& memory) {
  const double seen = largest(memory.view("cond_row"), kRowValueMax, kNumRowFields);
  const double vmax = std::ceil(std::max(seen, largest(memory.view("out"), 0, 1)));
  return std::min(vmax, static_cast<double>(kMaxJsonInteger));  // a smaller one allows less
}

struct AnsweredCase {
  PackCase entry;
  int bits = 0;
  std::string error;  // empty: it is in the folder
};

class Maker {
 public:
  Maker(const PackSpec& spec, const questions::QuestionSet& set, const ExactAnswer& answer,
        const UnfinishedPack& folder)
      : spec_(spec), set_(set), answer_(answer), folder_(folder) {}

  MadePack make() {
    order_questions();
    answer_all();
    manifest_.counts = counts_of(cases_, set_.relations.size());
    add_notes();
    write_rest();
    return {manifest_, sha256_of(std::as_bytes(std::span(sums_text_)))};
  }

 private:
  void order_questions() {
    for (const Question& question : set_.questions) order_.push_back(&question);
    std::sort(order_.begin(), order_.end(),
              [](const Question* a, const Question* b) { return a->id < b->id; });
    const auto twice =
        std::adjacent_find(order_.begin(), order_.end(),
                           [](const Question* a, const Question* b) { return a->id == b->id; });
    if (twice != order_.end()) throw Error(fmt::format("id {} is given twice", (*twice)->id));
  }

  // The first error by id, whichever came first in time.
  void answer_all() {
    std::vector<AnsweredCase> answered(order_.size());
    parallel_for(static_cast<std::int64_t>(order_.size()), [&](std::int64_t i, int) {
      const auto at = static_cast<std::size_t>(i);
      answered[at] = answer_one(*order_[at]);
    });
    manifest_.bits = kBits;
    manifest_.check_bits = kCheckBits;
    for (std::size_t i = 0; i < answered.size(); ++i) {
      if (!answered[i].error.empty()) {
        throw Error(fmt::format("case {}: {}", order_[i]->id, answered[i].error));
      }
      sums_[answered[i].entry.row.file] = answered[i].entry.row.sha256;
      manifest_.check_bits = std::max<std::int64_t>(manifest_.check_bits, answered[i].bits);
      cases_.push_back(std::move(answered[i].entry));
    }
  }

  AnsweredCase answer_one(const Question& question) const {
    AnsweredCase answered;
    try {
      const std::vector<std::byte> bytes = answered_file(question, answered);
      CaseIndexRow& row = answered.entry.row;
      row.sha256 = sha256_of(bytes);
      answered.entry.bytes = static_cast<std::int64_t>(bytes.size());
      expect_case_of(answered.entry, bytes);
      folder_.write(row.file, bytes);
    } catch (const Error& error) {
      answered.error = error.what();
    }
    return answered;
  }

  std::vector<std::byte> answered_file(const Question& question, AnsweredCase& answered) const {
    std::visit(ExpectBinary32(), question.operation);
    PackCase& entry = answered.entry;
    entry.flags = question.flags;
    entry.rulings = question.rulings;
    entry.where = question.where;
    entry.row.id = question.id;
    entry.row.file = question.id + std::string(kCaseSuffix);
    entry.row.op = static_cast<OpKind>(question.operation.index());
    entry.row.variant = question.variant;
    entry.row.result = question.result;

    Memory memory;
    std::int64_t products = 0;
    if (question.result == CaseResult::kValid) {
      const AttentionProblem problem(question.operation);
      products = multiply_adds(problem);
      answered.bits = answer_into(memory, problem);
      entry.row.vmax = vmax_of(memory);
    }
    const CaseLabels labels = {question.id,       question.variant, question.name,
                               question.scenario, question.flags,   question.result};
    std::vector<std::byte> bytes =
        to_case_file(labels, question.operation, memory.named(false), memory.named(true));
    const CaseFile file = CaseFile::parse(bytes, "case file");
    for (const auto& [output, description] : file.outputs()) {
      entry.row.tolerance[output] = {0.0, 0.0};
    }
    expect_case_within(spec_.tier, static_cast<std::int64_t>(bytes.size()), products);
    return bytes;
  }

  int answer_into(Memory& memory, const AttentionProblem& problem) const {
    Outputs outputs;
    for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
      outputs.*spec.view = memory.add(spec);
    }
    for (const OutputSpec& spec : conditioning_specs(problem)) {
      outputs.*spec.view = memory.add(spec);
    }
    return answer_(problem, outputs);
  }

  void add_notes() {
    for (const PackCase& one : cases_) {
      for (const std::vector<std::string>* words : {&one.flags, &one.rulings}) {
        for (const std::string& word : *words) {
          const auto note = all_notes().find(word);
          if (note == all_notes().end()) {
            throw Error(fmt::format("case {}: {} has no note", one.row.id, in_quotes(word)));
          }
          manifest_.notes.insert(*note);
        }
      }
    }
  }

  void write_rest() {
    manifest_.name = spec_.name;
    manifest_.version = spec_.version;
    manifest_.tier = spec_.tier;
    manifest_.title = spec_.title;
    manifest_.withdrawn = spec_.withdrawn;
    std::string index;
    for (const PackCase& one : cases_) index += to_line(one, spec_.version);
    std::string relations;
    for (const CaseRelation& relation : set_.relations) relations += to_line(relation);
    write_text(kIndexFile, index);
    write_text(kRelationsFile, relations);
    write_text(kManifestFile, to_text(manifest_));
    write_text(kLicenseFile, std::string(kCc0License));
    write_text(kReadmeFile, readme_of(manifest_));
    sums_text_ = to_text(sums_);
    expect_pack_within(
        spec_.tier, manifest_.counts,
        manifest_.counts.bytes + text_bytes_ + static_cast<std::int64_t>(sums_text_.size()));
    folder_.write(std::string(kSumsFile), sums_text_);
  }

  void write_text(std::string_view file, const std::string& text) {
    sums_[std::string(file)] = sha256_of(std::as_bytes(std::span(text)));
    text_bytes_ += static_cast<std::int64_t>(text.size());
    folder_.write(std::string(file), text);
  }

  const PackSpec& spec_;
  const questions::QuestionSet& set_;
  const ExactAnswer& answer_;
  const UnfinishedPack& folder_;
  std::vector<const Question*> order_;
  std::vector<PackCase> cases_;
  PackManifest manifest_;
  Sums sums_;
  std::string sums_text_;
  std::int64_t text_bytes_ = 0;
};

}  // namespace

PackSpec core_pack_spec() {
  return {"core",
          "1.0.0",
          "core",
          "Small attention problems of every kind, with exact expected values",
          {}};
}

PackSpec extended_pack_spec() {
  return {"extended",
          "1.0.0",
          "extended",
          "Attention problems of every kind with every family of data, and sweeps over sizes, with "
          "exact expected values",
          {}};
}

MadePack make_pack(const std::filesystem::path& target, const PackSpec& spec,
                   const questions::QuestionSet& set, const ExactAnswer& answer) {
  UnfinishedPack folder(target, spec.name, spec.version);
  MadePack made = Maker(spec, set, answer, folder).make();
  const PackReport report = inspect_folder(folder.path());
  if (!report.damage.empty()) {
    throw Error(fmt::format("{}: {}", report.damage[0].file, report.damage[0].reason));
  }
  folder.publish();
  return made;
}

}  // namespace attn::golden
