// Log-sum-exps as backends write them, in the form of the reference.
#pragma once

#include "attn/host_tensor.h"
#include "attn/output.h"

namespace attn {

// `lse` as a backend wrote it in `form`, as LseForm{}: natural log, [num_heads, num_tokens], -inf
// for a row that sees no key, with the sink when the problem counts it; f64. `sinks` [num_heads]
// and `lse_includes_sink` are the problem's; without sinks the view is absent. Both views are of
// any floating type, in host memory.
//
// +inf of a backend that marks empty rows by it becomes -inf, unless a sink of +inf is counted in
// it. NaN stays. Throws Error when `lse` has not two axes or `sinks` do not fit.
HostTensor reference_lse(const TensorView& lse, const LseForm& form, const TensorView& sinks,
                         bool lse_includes_sink);

}  // namespace attn
