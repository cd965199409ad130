// Answers on their way into the caller's memory: long double, rounded once.
#pragma once

#include <cstdint>

#include "attn/output.h"
#include "reference/second/row_softmax.h"

namespace attn::second {

template <class... Index>
void store(const MutableTensorView& view, long double value, Index... index) {
  store_code(view.dtype, encode(view.dtype, static_cast<double>(value), Overflow::kInfinity),
             view.at(index...));
}

// Row `token` of `head` into out and lse, where present.
inline void store_row(const Outputs& outputs, const RowAnswer& row, std::int64_t token,
                      std::int64_t head) {
  if (outputs.lse.present()) store(outputs.lse, row.lse, head, token);
  if (!outputs.out.present()) return;
  for (std::size_t j = 0; j < row.out.size(); ++j) store(outputs.out, row.out[j], token, head, j);
}

}  // namespace attn::second
