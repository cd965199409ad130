#include "attn/conditioning.h"

#include <algorithm>
#include <string_view>

namespace attn {
namespace {

using Shape = std::vector<std::int64_t>;

// The sums of states whose `out` has the given shape.
std::vector<OutputSpec> sums_of_states(const Shape& out) {
  Shape row = out;
  row.back() = kNumRowFields;
  return {{"cond_pav", &Outputs::cond_pav, DType::kF32, out, {}},
          {"cond_puv", &Outputs::cond_puv, DType::kF32, out, {}},
          {"cond_pv", &Outputs::cond_pv, DType::kF32, out, {}},
          {"cond_row", &Outputs::cond_row, DType::kF64, row, {}},
          {"cond_v", &Outputs::cond_v, DType::kF32, out, {}}};
}

std::vector<OutputSpec> sums_of_differential(const Shape& out) {
  Shape both = {2};
  both.insert(both.end(), out.begin(), out.end());
  std::vector<OutputSpec> specs = sums_of_states(both);
  specs.insert(specs.begin(), {"cond_o", &Outputs::cond_o, DType::kF64, both, {}});
  return specs;
}

Shape shape_of_output(const AttentionProblem& problem, std::string_view name) {
  for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
    if (spec.name == name) return spec.shape;
  }
  return {};
}

}  // namespace

std::vector<OutputSpec> conditioning_specs(const AttentionProblem& problem) {
  switch (problem.kind()) {
    case OpKind::kAttention:
    case OpKind::kMla:
    case OpKind::kMlaSparse:
      return sums_of_states(shape_of_output(problem, "out"));
    case OpKind::kMergeStates: {
      std::vector<OutputSpec> specs = sums_of_states(shape_of_output(problem, "out"));
      specs.erase(specs.begin());  // no scores, so no cond_pav
      return specs;
    }
    case OpKind::kDifferential:
      return sums_of_differential(shape_of_output(problem, "out"));
    case OpKind::kIndexer:
      return {{"cond_ix", &Outputs::cond_ix, DType::kF32, shape_of_output(problem, "logits"), {}}};
    case OpKind::kCacheWrite:
    case OpKind::kMlaCacheWrite:
      return {};
  }
  return {};
}

}  // namespace attn
