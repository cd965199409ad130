// A case file of a pack against its line of the index.
#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "attn/conditioning.h"
#include "attn/error.h"
#include "attn/output.h"
#include "core/strict_json.h"
#include "golden/pack_inspection.h"
#include "golden/safetensors.h"

namespace attn::golden {
namespace {

void expect_labels(const PackCase& one, const CaseFile& file) {
  const auto expect = [](std::string_view what, std::string_view in_case,
                         std::string_view in_index) {
    if (in_case != in_index) {
      throw Error(fmt::format("{} is {}, index.jsonl says {}", what, in_quotes(in_case),
                              in_quotes(in_index)));
    }
  };
  expect("id", file.id(), one.row.id);
  expect("op", name(file.op()), name(one.row.op));
  expect("variant", file.variant(), one.row.variant);
  expect("result", name(file.result()), name(one.row.result));
  if (file.flags() != one.flags) throw Error("flags are not those of index.jsonl");
  for (const auto& [output, limits] : one.row.tolerance) {
    if (!file.outputs().contains(output)) {
      throw Error(fmt::format("index.jsonl has a tolerance for {}, no output", in_quotes(output)));
    }
  }
  for (const auto& [output, description] : file.outputs()) {
    if (!one.row.tolerance.contains(output)) {
      throw Error(fmt::format("index.jsonl has no tolerance for output {}", output));
    }
  }
}

void expect_invalid(const CaseFile& file) {
  try {
    file.problem();
  } catch (const Error&) {
    for (const auto& [output, description] : file.outputs()) {
      if (file.stored_output(output).present()) {
        throw Error(fmt::format("the case is invalid, but has a stored {}", output));
      }
    }
    return;
  }
  throw Error("the case is labelled invalid, but is not");
}

// Expected values are exact, whatever a source would have answered in.
void expect_answers(const CaseFile& file, const AttentionProblem& problem) {
  const std::vector<OutputSpec> specs = output_specs(problem, DType::kF64);
  for (const OutputSpec& spec : specs) {
    const TensorView stored = file.stored_output(std::string(spec.name));
    if (!stored.present()) throw Error(fmt::format("output {} is not stored", spec.name));
    if (stored.dtype != spec.dtype) {
      throw Error(fmt::format("output {} is stored as {}, expected {}", spec.name,
                              name(stored.dtype), name(spec.dtype)));
    }
  }
}

void expect_conditioning(std::span<const std::byte> bytes, const AttentionProblem& problem) {
  constexpr std::string_view kPrefix = "cond_";
  const std::vector<OutputSpec> specs = conditioning_specs(problem);
  const Safetensors file = Safetensors::parse(bytes);
  for (const auto& [tensor, stored] : file.tensors()) {
    if (!tensor.starts_with(kPrefix)) continue;
    const auto spec =
        std::find_if(specs.begin(), specs.end(),
                     [&, &wanted = tensor](const auto& s) { return s.name == wanted; });
    if (spec == specs.end() || spec->dtype != stored.storage || spec->shape != stored.shape) {
      throw Error(fmt::format("{} is no conditioning sum of the case, or has another type or shape",
                              in_quotes(tensor)));
    }
  }
}

}  // namespace

CaseFile expect_case_of(const PackCase& one, std::span<const std::byte> bytes) {
  CaseFile file = CaseFile::parse(bytes, "case file");
  expect_labels(one, file);
  if (one.row.result == CaseResult::kInvalid) {
    expect_invalid(file);
    return file;
  }
  const AttentionProblem problem = file.problem();
  expect_answers(file, problem);
  expect_conditioning(bytes, problem);
  return file;
}

std::span<const std::byte> rows_of_out(const CaseFile& file, const CaseRelation::Rows& rows) {
  const TensorView out = file.stored_output("out");
  if (!out.present()) throw Error(fmt::format("{} has no out", rows.id));
  if (rows.count > out.shape[0] || rows.first_token > out.shape[0] - rows.count) {
    throw Error(fmt::format("rows [{}, {}+{}) of {} do not exist, out is {}", rows.first_token,
                            rows.first_token, rows.count, rows.id, to_string(out)));
  }
  const std::int64_t row_bytes = out.stride_bytes[0];
  return {static_cast<const std::byte*>(out.data) + rows.first_token * row_bytes,
          static_cast<std::size_t>(rows.count * row_bytes)};
}

}  // namespace attn::golden
