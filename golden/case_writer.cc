#include "attn/case_writer.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "attn/error.h"
#include "attn/output.h"
#include "core/strict_json.h"
#include "golden/case_draft.h"
#include "golden/dense_copy.h"
#include "golden/safetensors.h"

namespace attn {
namespace {

using golden::CaseDraft;
using nlohmann::json;

json description(DType dtype, const std::vector<std::int64_t>& shape) {
  return {{"dtype", name(dtype)}, {"storage", golden::storage_name(dtype)}, {"shape", shape}};
}

json description(const HostTensor& tensor) { return description(tensor.dtype(), tensor.shape()); }

// Tensors by their names in the file.
using Tensors = std::map<std::string, HostTensor>;

void expect_new(const Tensors& tensors, const std::string& name) {
  if (tensors.contains(name)) {
    throw Error(fmt::format("tensor {} is given twice", in_quotes(name)));
  }
}

// Caches after a write lie as those before.
bool is_cache_in_order_of_heads(const CaseDraft& draft, std::string_view output) {
  return draft.heads_first && (output == "key_cache_after" || output == "value_cache_after");
}

json add_outputs(const CaseDraft& draft, const std::vector<NamedTensor>& outputs,
                 Tensors& tensors) {
  json table = json::object();
  for (const auto& [name, view] : outputs) {
    expect_new(tensors, name);
    const bool swap = is_cache_in_order_of_heads(draft, name) && view.rank == 4;
    HostTensor tensor = golden::dense_copy(name, swap ? swap_axes(view, 1, 2) : view);
    table[name] = description(tensor);
    tensors.emplace(name, std::move(tensor));
  }
  return table;
}

json add_conditioning(const std::vector<NamedTensor>& conditioning, Tensors& tensors) {
  constexpr std::string_view kPrefix = "cond_";
  json table = json::object();
  for (const auto& [name, view] : conditioning) {
    if (!name.starts_with(kPrefix)) {
      throw Error(fmt::format("{} is no name of a conditioning sum", in_quotes(name)));
    }
    expect_new(tensors, name);
    HostTensor tensor = golden::dense_copy(name, view);
    table[name.substr(kPrefix.size())] = description(tensor);
    tensors.emplace(name, std::move(tensor));
  }
  return table;
}

// What a valid operation answers.
json asked_outputs(const CaseDraft& draft, const AttentionProblem& problem) {
  json table = json::object();
  for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
    std::vector<std::int64_t> shape = spec.shape;
    if (is_cache_in_order_of_heads(draft, spec.name)) std::swap(shape[1], shape[2]);
    table[std::string(spec.name)] = description(spec.dtype, shape);
  }
  return table;
}

// An invalid case asks for nothing, but for the one output that the schema demands.
json asked_outputs(const CaseDraft& draft, CaseResult result, const Operation& operation) {
  if (result != CaseResult::kInvalid) {
    try {
      return asked_outputs(draft, AttentionProblem(operation));
    } catch (const Error&) {
      if (result == CaseResult::kValid) throw;
    }
  }
  const auto cache = draft.inputs.find("kv_cache");
  if (std::holds_alternative<MlaCacheWriteOp>(operation) && cache != draft.inputs.end()) {
    return {{"kv_cache_after", description(cache->second)}};
  }
  return json::object();
}

json case_object(const CaseLabels& labels, const Operation& operation, const CaseDraft& draft) {
  json inputs = json::object();
  for (const auto& [name, tensor] : draft.inputs) inputs[name] = description(tensor);
  return {{"spec_version", 1},
          {"id", labels.id},
          {"op", name(static_cast<OpKind>(operation.index()))},
          {"variant", labels.variant},
          {"name", labels.name},
          {"scenario", labels.scenario},
          {"flags", labels.flags},
          {"result", name(labels.result)},
          {"axes", draft.axes},
          {"attrs", draft.attrs},
          {"inputs", inputs}};
}

std::string text_of(const json& object) {
  try {
    return object.dump();
  } catch (const json::exception&) {
    throw Error("a text of the case is not UTF-8");
  }
}

std::vector<std::byte> file_of(const json& object, const Tensors& tensors) {
  golden::StoredTensors stored;
  for (const auto& [name, tensor] : tensors) {
    stored[name] = {golden::storage_of(tensor.dtype()), tensor.shape(), tensor.bytes()};
  }
  return golden::to_safetensors({{"format", "attn-case/1"}, {"case", text_of(object)}}, stored);
}

}  // namespace

std::vector<std::byte> to_case_file(const CaseLabels& labels, const Operation& operation,
                                    const std::vector<NamedTensor>& outputs,
                                    const std::vector<NamedTensor>& conditioning) {
  CaseDraft draft = golden::draft_of(operation);
  json object = case_object(labels, operation, draft);
  if (outputs.empty()) object["outputs"] = asked_outputs(draft, labels.result, operation);
  Tensors tensors = std::move(draft.inputs);
  if (!outputs.empty()) object["outputs"] = add_outputs(draft, outputs, tensors);
  if (!conditioning.empty()) object["cond"] = add_conditioning(conditioning, tensors);
  std::vector<std::byte> bytes = file_of(object, tensors);

  // What the strict reader does not take is not a case file.
  const CaseFile written = CaseFile::parse(bytes, "the case as it would be written");
  if (labels.result == CaseResult::kValid) written.problem();
  return bytes;
}

void write_case(const std::filesystem::path& path, const CaseLabels& labels,
                const Operation& operation, const std::vector<NamedTensor>& outputs,
                const std::vector<NamedTensor>& conditioning) {
  write_file_atomically(path, to_case_file(labels, operation, outputs, conditioning));
}

}  // namespace attn
