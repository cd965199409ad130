#include "optimized/cpu/contract.h"

#include <fmt/core.h>

#include <algorithm>

#include "optimized/cpu/key_parts.h"
#include "optimized/cpu/softmax_state.h"
#include "optimized/cpu/tile_kernel.h"

namespace attn::cpu {

// Over fp32: products and sums round apart (no contraction); q, k and v are exact values times
// their scales rounded once; scale and biases are applied in double and rounded once (the second
// rounding of the scale covers double's own); natural exponent; the answer is normalised, joined
// with the sink and its logarithm taken in double.
PrecisionContract attention_contract(const AttentionOp& op, const ExecSpec& exec) {
  std::int64_t parts = 1;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    parts = std::max(parts, KeyParts(exec, op.seq_len(r)).count());
  }
  std::string overrides =
      fmt::format(R"({{"query":"f32","key":"f32","value":"f32",)"
                  R"("dot":{{"block":{},"fused":false}},"scale_roundings":2,"bias_rel":"0x1p-50",)"
                  R"("exp":{{"rel":"0x1p-22","arg_roundings":1,"shift_roundings":0}},"tile":{},)"
                  R"("sum":{{"lanes":{},"block":{}}},"pv":{{"block":{},"fused":false}},)"
                  R"("normalize_roundings":1,"log":{{"abs":"0x1p-50","roundings":1}})",
                  kDotBlock, kTileKeys, kSumLanes, kTileKeys, kTileKeys);
  if (parts > 1) {
    overrides +=
        fmt::format(R"(,"splits":{},"merge":{{"kind":"acc","depth":{}}})", parts, parts - 1);
  }
  return {"fp32", overrides + "}"};
}

}  // namespace attn::cpu
