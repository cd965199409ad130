// Writing doubles into output views.
#pragma once

#include "attn/output.h"
#include "reference/softmax.h"

namespace attn::reference {

// The code nearest to `value`; out-of-range values saturate below 16 bits and become infinite
// above.
template <class... Index>
void store(const MutableTensorView& view, double value, Index... index) {
  const Overflow overflow = bits(view.dtype) < 16 ? Overflow::kSaturate : Overflow::kInfinity;
  store_code(view.dtype, encode(view.dtype, value, overflow), view.at(index...));
}

// The elements of one row, where the tensor is present.
template <class... Row>
void store_row(const MutableTensorView& view, const Eigen::VectorXd& values, Row... row) {
  if (!view.present()) return;
  for (Eigen::Index d = 0; d < values.size(); ++d) store(view, values[d], row..., d);
}

// out and lse of one row, where they are present.
inline void store_state(const Outputs& outputs, std::int64_t token, std::int64_t head,
                        const State& state) {
  if (outputs.lse.present()) store(outputs.lse, state.lse, head, token);
  store_row(outputs.out, state.out, token, head);
}

}  // namespace attn::reference
