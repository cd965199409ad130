#include "golden/case_operation.h"

#include "attn/error.h"

namespace attn::golden {
namespace {

Operation make_operation(CaseInputs& inputs) {
  switch (inputs.object().op) {
    case OpKind::kAttention:
      return attention_operation(inputs);
    case OpKind::kDifferential:
      return differential_operation(inputs);
    case OpKind::kMla:
      return mla_operation(inputs);
    case OpKind::kMlaSparse:
      return mla_sparse_operation(inputs);
    case OpKind::kIndexer:
      return indexer_operation(inputs);
    case OpKind::kMergeStates:
      return merge_states_operation(inputs);
    case OpKind::kCacheWrite:
      return cache_write_operation(inputs);
    case OpKind::kMlaCacheWrite:
      return mla_cache_write_operation(inputs);
  }
  throw Error("unknown operation");
}

}  // namespace

AttentionProblem make_problem(const CaseObject& object, const Safetensors& file) {
  CaseInputs inputs(object, file);
  AttentionProblem problem(make_operation(inputs));
  expect_declared_sizes(object, problem.operation());
  return problem;
}

}  // namespace attn::golden
