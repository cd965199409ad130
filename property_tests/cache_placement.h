// Keys and values of a LogicalProblem put into a cache.
#pragma once

#include "attn/kv_cache.h"
#include "property_tests/logical_problem.h"
#include "property_tests/memory_form.h"

namespace attn::property_tests {

// The cache in the given form, its tensors kept by `store`. What no live slot addresses holds
// form.fill. Throws Error for an encoding the form cannot hold.
KvCacheView place_cache(const LogicalProblem& problem, const MemoryForm& form, TensorStore& store);

}  // namespace attn::property_tests
