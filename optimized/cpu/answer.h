// From a finished softmax state to the caller's tensors.
#pragma once

#include <cstdint>

#include "attn/operation.h"
#include "attn/output.h"
#include "optimized/cpu/softmax_state.h"

namespace attn::cpu {

// Writes rows of one problem. The sink enters here, once, however many parts there were.
class AnswerWriter {
 public:
  AnswerWriter(const AttentionOp& op, const Outputs& outputs);

  // Writes out, lse and out_codes of (token, head) from row `row` of `states`.
  void write(const SoftmaxStates& states, std::int64_t row, std::int64_t token,
             std::int64_t head) const;

 private:
  const AttentionOp& op_;
  const Outputs& outputs_;
  std::int64_t head_size_v_;
  double output_scale_ = 1.0;
};

}  // namespace attn::cpu
