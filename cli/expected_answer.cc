#include "cli/expected_answer.h"

#include <fmt/format.h>

#include "attn/conditioning.h"
#include "attn/error.h"
#include "cli/backends.h"

namespace attn::cli {
namespace {

constexpr const char* kReference = "REFERENCE";

// No rounding but that of the answer.
constexpr const char* kCorrectlyRounded =
    R"({"vector":"exact","dot":{"type":"exact"},"sum":{"type":"exact"},"pv":{"type":"exact"},)"
    R"("scale_roundings":0,"cap":{"rel":"0x0p+0"},"bias_rel":"0x0p+0",)"
    R"("exp":{"rel":"0x0p+0","abs":"0x0p+0","arg_roundings":0},"normalize_roundings":0,)"
    R"("log":{"abs":"0x0p+0","roundings":0},"merge":{"lse":"exact"},"out":"f64","lse":"f64"})";

ExpectedAnswer expected_answer(const CaseFile& file, const TensorOf& output, const TensorOf& sum) {
  ExpectedAnswer expected;
  expected.expectation = {output("out"), output("lse"), output("logits"), conditioning_sums(sum)};
  for (const auto& [name, description] : file.outputs()) {
    expected.tensors.push_back({name, output(name)});
  }
  return expected;
}

}  // namespace

std::string why_unjudged(const CaseFile& file, const AttentionProblem& problem) {
  const Resolution reference = resolve_backend(kReference, problem);
  if (!reference.reasons.empty()) {
    return fmt::format("{}: {}", kReference, fmt::join(reference.reasons, "; "));
  }
  return file.outputs().empty() ? "the case asks for no output" : "";
}

RecomputedAnswer::RecomputedAnswer(const CaseFile& file, const AttentionProblem& problem)
    : memory_(*resolve_backend(kReference, problem).backend, file, problem, true) {
  const TensorOf tensor = [this](const std::string& name) { return memory_.tensor(name); };
  expected_ = expected_answer(file, tensor, tensor);
  expected_.contract = resolve_backend(kReference, problem).backend->contract(problem);
}

TensorOf tensors_of(const ExpectedAnswer& expected) {
  return [&expected](const std::string& name) -> TensorView {
    for (const NamedView& tensor : expected.tensors) {
      if (tensor.name == name) return tensor.view;
    }
    return {};
  };
}

ExpectedAnswer stored_answer(const CaseFile& file, const AttentionProblem& problem) {
  ExpectedAnswer expected = expected_answer(
      file, [&](const std::string& name) { return file.stored_output(name); },
      [&](const std::string& name) { return file.stored_sum(name); });
  expected.contract = {"f64", kCorrectlyRounded};
  for (const NamedView& tensor : expected.tensors) {
    if (!tensor.view.present()) {
      throw Error(fmt::format("output {} has no expectation", tensor.name));
    }
  }
  for (const OutputSpec& spec : conditioning_specs(problem)) {
    if (!file.stored_sum(std::string(spec.name)).present()) {
      throw Error(fmt::format("{} is not stored", spec.name));
    }
  }
  return expected;
}

}  // namespace attn::cli
