// A part is a key: its log-sum-exp the logit, its output the value.
#include <cmath>
#include <numbers>

#include "reference/second/operations.h"
#include "reference/second/row_softmax.h"
#include "reference/second/stored_row.h"

namespace attn::second {

void merge_states(const MergeStatesOp& op, const Outputs& outputs) {
  const std::int64_t* shape = op.out_parts.shape;  // parts, tokens, heads, elements
  const long double to_natural = op.lse_base_2 ? std::numbers::ln2_v<long double> : 1.0L;
  for (std::int64_t t = 0; t < shape[1]; ++t) {
    for (std::int64_t h = 0; h < shape[2]; ++h) {
      RowSoftmax softmax(shape[3]);
      for (std::int64_t p = 0; p < shape[0]; ++p) {
        const long double lse = value_at(op.lse_parts, p, h, t);
        if (std::isinf(lse)) continue;  // an empty part, whichever the sign
        softmax.add(lse * to_natural, [&](std::int64_t j) -> long double {
          return value_at(op.out_parts, p, t, h, j);
        });
      }
      store_row(outputs, softmax.answer(), t, h);
    }
  }
}

}  // namespace attn::second
