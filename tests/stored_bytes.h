// How large a question will be as a case of a pack.
#pragma once

#include <string>
#include <vector>

#include "attn/case_writer.h"
#include "attn/conditioning.h"
#include "golden/questions/question.h"
#include "tests/tensor_pool.h"

namespace attn {

// Stored with every output and conditioning sum the operation has.
inline std::size_t stored_bytes(const questions::Question& question) {
  TensorPool pool;
  std::vector<NamedTensor> outputs;
  std::vector<NamedTensor> sums;
  if (question.result == CaseResult::kValid) {
    const AttentionProblem problem(question.operation);
    for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
      outputs.push_back({std::string(spec.name), pool.zeros(spec.dtype, spec.shape)});
    }
    for (const OutputSpec& spec : conditioning_specs(problem)) {
      sums.push_back({std::string(spec.name), pool.zeros(spec.dtype, spec.shape)});
    }
  }
  const CaseLabels labels = {.id = question.id,
                             .variant = question.variant,
                             .name = question.name,
                             .scenario = question.scenario,
                             .flags = question.flags,
                             .result = question.result};
  return to_case_file(labels, question.operation, outputs, sums).size();
}

}  // namespace attn
