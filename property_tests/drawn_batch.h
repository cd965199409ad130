// A random attention problem as an engine would ask it: a batch, a layer, a cache. Made beside the
// conversion of the product (attn/executable_backend.h), not with it.
#pragma once

#include "attn/attention_impl.h"
#include "attn/metadata_builder.h"
#include "property_tests/answer.h"
#include "property_tests/generators.h"
#include "property_tests/problem_data.h"

namespace attn::property_tests {

struct DrawnBatch {
  ProblemData data;  // the same problem, told directly
  CommonAttentionMetadata batch;
  ImplArguments layer;
  BuilderArguments group;

  std::int64_t num_tokens() const { return data.op().num_tokens(); }
};

// What batches and layers can express: paged caches, masks with and without causality (of all or
// per request) and windows, images in most draws, R-SWA, soft caps, ALiBi in row form, sinks.
ConfigSpace batch_space();

// Of a config of that space. Padding rows and tokens are drawn from its seed.
DrawnBatch draw_batch(const ProblemConfig& config);

// Calls forward into memory of its own. `dtype` is that of the backend's answers.
Answer forward_answer(const AttentionImpl& impl, const AttentionMetadata& metadata,
                      const DrawnBatch& drawn, DType dtype);

}  // namespace attn::property_tests
