// The software model's answer to an operation.
#pragma once

#include "attn/arithmetic.h"
#include "attn/operation.h"
#include "property_tests/model_hooks.h"
#include "property_tests/model_options.h"
#include "property_tests/operation_answer.h"

namespace attn::property_tests {

// `out`, `lse` or `logits` of a valid operation (not of a cache write, which computes nothing:
// throws Error), in options.stored, which also is what the contract's stored types become.
// Partitions asked for by `exec` and output codes are not answered. Same input, same bytes.
Tensors model_answer(const Operation& operation, const Arithmetic& arithmetic,
                     const ModelOptions& options, const ModelHooks* hooks = nullptr);

}  // namespace attn::property_tests
