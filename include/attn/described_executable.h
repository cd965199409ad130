// What a backend that runs says about itself in selection: a row of the same kind as vLLM's.
#pragma once

#include <string>

#include "attn/capabilities.h"
#include "attn/described_backend.h"

namespace attn {

// The row of a backend for layers of one operation: attention, mla or mla_sparse (vLLM has a class
// for each). Without the operation the row accepts no dtype. Rules, where they are not one field
// for one field:
//   dtypes        float16, bfloat16, float32, as queries have them
//   kv dtypes     "auto" and none: plain caches of every dtype above; float16, bfloat16, fp8 (e4m3)
//                 and fp8_e5m2: plain caches of that type; *_per_token_head, nvfp4, fp8_ds_mla (of
//                 mla only): the encoding of that name. The rest is refused
//   block sizes   any: strides and block tables are arguments
//   attn types    decoder; with non-causal masks and caches by rows also the other three
//   yes           kv connector (who moves a cache does not matter to who reads it) and query
//                 lengths that differ between device and host (a problem has one set of lengths)
//   no            PCP: queries of a rank are no run of positions at the end
// MLA has no sinks, masks and head sizes of its own in Capabilities: a row takes any head size.
DescribedBackend describe_executable(std::string name, const Capabilities& capabilities,
                                     OpKind operation);

}  // namespace attn
