// From case object and tensors to the operation they describe.
#pragma once

#include "attn/problem.h"
#include "golden/case_inputs.h"

namespace attn::golden {

// The validated problem. Throws Error when an attribute, input, axis or output does not belong to
// the operation or contradicts another, and when AttentionProblem does not accept it.
AttentionProblem make_problem(const CaseObject& object, const Safetensors& file);

// Its parts: one builder an operation, by subject.
AttentionOp attention_operation(CaseInputs& inputs);
DifferentialOp differential_operation(CaseInputs& inputs);
MlaOp mla_operation(CaseInputs& inputs);
MlaSparseOp mla_sparse_operation(CaseInputs& inputs);
IndexerOp indexer_operation(CaseInputs& inputs);
MergeStatesOp merge_states_operation(CaseInputs& inputs);
CacheWriteOp cache_write_operation(CaseInputs& inputs);
MlaCacheWriteOp mla_cache_write_operation(CaseInputs& inputs);

// `operation` is validated. Throws Error unless every declared axis is one of the operation's and
// has the size its tensors say, and outputs and truth are answers of the operation with its shapes.
void expect_declared_sizes(const CaseObject& object, const Operation& operation);

}  // namespace attn::golden
