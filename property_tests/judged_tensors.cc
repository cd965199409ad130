#include "property_tests/judged_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace attn::property_tests {
namespace {

TensorView view_of(const Tensors& tensors, std::string_view name) {
  const auto found = tensors.find(name);
  return found == tensors.end() ? TensorView{} : found->second.view();
}

}  // namespace

Judgement judge_tensors(const AttentionProblem& problem, const Tensors& expected,
                        const PrecisionContract& expected_contract, const Tensors& actual,
                        const PrecisionContract& contract) {
  ExpectedAnswer right;
  right.expectation = {
      view_of(expected, "out"), view_of(expected, "lse"), view_of(expected, "logits"),
      conditioning_sums([&](const char* name) { return view_of(expected, name); })};
  right.contract = expected_contract;
  ActualAnswer answer;
  for (const auto& [name, tensor] : actual) {
    if (name.starts_with("cond_") || !expected.contains(name)) continue;
    right.tensors.push_back({name, view_of(expected, name)});
    answer.tensors.push_back({name, tensor.view()});
  }
  JudgeOptions options;
  options.contract = contract;
  return judge_answer(problem, right, answer, options);
}

void BoundRecord::add(const Judgement& judgement) {
  ++problems;
  rows += judgement.rows;
  vacuous_rows += judgement.vacuous_rows;
  for (const TensorComparison& tensor : judgement.tensors) {
    double& largest = tensor.name == "lse" ? largest_lse : largest_out;
    largest = std::max(largest, tensor.ratio);
  }
}

std::string to_string(const BoundRecords& records) {
  std::string text;
  for (const auto& [contract, record] : records) {
    fmt::format_to(std::back_inserter(text),
                   "{:16} {:>9} problems, {:>10} rows, {:>8} vacuous; largest error/bound: out "
                   "{:.4f}, lse {:.4f}\n",
                   contract, record.problems, record.rows, record.vacuous_rows, record.largest_out,
                   record.largest_lse);
  }
  return text;
}

}  // namespace attn::property_tests
