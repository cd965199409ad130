// What of each operation goes into the bound of its softmax.
#pragma once

#include "attn/operation.h"
#include "judge/softmax_bound.h"

namespace attn::judge {

SoftmaxTerms bound_terms(const AttentionOp& op);
SoftmaxTerms bound_terms(const MlaOp& op);
SoftmaxTerms bound_terms(const MlaSparseOp& op);
SoftmaxTerms bound_terms(const MergeStatesOp& op);

// Merging takes the parts as keys whose scores are given: nothing is multiplied, and the parts may
// be folded one after the other.
Arithmetic merging_arithmetic(Arithmetic arithmetic, const MergeStatesOp& op);

}  // namespace attn::judge
