#include "attn/case_file.h"

#include <fmt/format.h>

#include "golden/case_object.h"
#include "golden/case_operation.h"
#include "golden/error_source.h"
#include "golden/safetensors.h"

namespace attn {

struct CaseFile::Data {
  golden::Safetensors file;
  golden::CaseObject object;

  TensorView stored(const golden::TensorTable& table, const std::string& key,
                    const std::string& name) const {
    const auto described = table.find(key);
    const auto found = file.tensors().find(name);
    if (described == table.end() || found == file.tensors().end()) return {};
    return found->second.view(described->second.dtype);
  }
};

namespace {

using golden::CaseObject;
using golden::Safetensors;
using golden::StoredTensor;
using golden::TensorTable;

CaseObject case_object(const Safetensors& file) {
  golden::expect_metadata(file, "attn-case/1", {"case"});
  const JsonDocument document(file.metadata().at("case"), "case");
  return golden::parse_case_object(document.root());
}

// A table of the case object and what its tensors are called in the file.
struct DescribedTable {
  std::string_view name;
  const TensorTable& tensors;
  std::string_view prefix;
};

std::vector<DescribedTable> tables_of(const CaseObject& object) {
  return {{"inputs", object.inputs, ""},
          {"outputs", object.outputs, ""},
          {"truth", object.truth, "truth_"},
          {"cond", object.cond, "cond_"}};
}

void expect_as_described(const std::string& path, const TensorDescription& description,
                         const StoredTensor& tensor) {
  if (golden::storage_of(description.dtype) != tensor.storage ||
      description.shape != tensor.shape) {
    throw Error(fmt::format("{} is described as {} [{}], stored as {} [{}]", path,
                            golden::storage_name(description.dtype),
                            fmt::join(description.shape, ","), golden::storage_name(tensor.storage),
                            fmt::join(tensor.shape, ",")));
  }
}

// Outputs are all there or all absent: a part of them would be neither a stored answer nor a
// question.
bool has_stored_outputs(const CaseObject& object, const Safetensors& file) {
  for (const auto& [name, description] : object.outputs) {
    if (file.tensors().contains(name)) return true;
  }
  return false;
}

void expect_table(const DescribedTable& table, const Safetensors& file) {
  for (const auto& [name, description] : table.tensors) {
    const std::string path = fmt::format("case.{}.{}", table.name, name);
    const std::string stored_name = fmt::format("{}{}", table.prefix, name);
    const auto stored = file.tensors().find(stored_name);
    if (stored == file.tensors().end()) {
      throw Error(fmt::format("{} has no tensor {} in the file", path, stored_name));
    }
    expect_as_described(path, description, stored->second);
  }
}

void expect_every_tensor_described(const CaseObject& object, const Safetensors& file) {
  for (const auto& [name, tensor] : file.tensors()) {
    bool described = false;
    for (const DescribedTable& table : tables_of(object)) {
      described = described || (name.starts_with(table.prefix) &&
                                table.tensors.contains(name.substr(table.prefix.size())));
    }
    if (!described) {
      throw Error(fmt::format("tensor {} is not described in the case object", in_quotes(name)));
    }
  }
}

void expect_tensors(const CaseObject& object, const Safetensors& file) {
  for (const TensorTable* table : {&object.inputs, &object.outputs, &object.truth}) {
    for (const auto& [name, description] : *table) {
      golden::expect_viewable(name, description.shape);
    }
  }
  const bool stored_outputs = has_stored_outputs(object, file);
  for (const DescribedTable& table : tables_of(object)) {
    if (table.name != "outputs" || stored_outputs) expect_table(table, file);
  }
  expect_every_tensor_described(object, file);
}

}  // namespace

std::string_view name(CaseResult result) {
  constexpr std::string_view kNames[] = {"valid", "invalid", "acceptable"};
  return kNames[static_cast<int>(result)];
}

CaseFile::CaseFile(std::unique_ptr<Data> data) : data_(std::move(data)) {}
CaseFile::CaseFile(CaseFile&&) noexcept = default;
CaseFile& CaseFile::operator=(CaseFile&&) noexcept = default;
CaseFile::~CaseFile() = default;

CaseFile CaseFile::read(const std::filesystem::path& path) {
  return golden::with_source(path.string(), [&] {
    Safetensors file = Safetensors::read(path);
    CaseObject object = case_object(file);
    expect_tensors(object, file);
    return CaseFile(std::make_unique<Data>(Data{std::move(file), std::move(object)}));
  });
}

CaseFile CaseFile::parse(std::span<const std::byte> bytes, const std::string& where) {
  return golden::with_source(where, [&] {
    Safetensors file = Safetensors::parse(bytes);
    CaseObject object = case_object(file);
    expect_tensors(object, file);
    return CaseFile(std::make_unique<Data>(Data{std::move(file), std::move(object)}));
  });
}

const std::string& CaseFile::id() const { return data_->object.id; }
OpKind CaseFile::op() const { return data_->object.op; }
const std::string& CaseFile::variant() const { return data_->object.variant; }
CaseResult CaseFile::result() const { return data_->object.result; }
const std::vector<std::string>& CaseFile::flags() const { return data_->object.flags; }

AttentionProblem CaseFile::problem() const {
  return golden::make_problem(data_->object, data_->file);
}

const std::map<std::string, TensorDescription>& CaseFile::outputs() const {
  return data_->object.outputs;
}

TensorView CaseFile::stored_output(const std::string& name) const {
  return data_->stored(data_->object.outputs, name, name);
}

TensorView CaseFile::stored_sum(const std::string& name) const {
  constexpr std::string_view kPrefix = "cond_";
  if (!name.starts_with(kPrefix)) return {};
  return data_->stored(data_->object.cond, name.substr(kPrefix.size()), name);
}

}  // namespace attn
