// A question of the operation `merge_states` before anything is drawn.
#pragma once

#include <cstdint>

#include "attn/host_tensor.h"
#include "attn/operation.h"
#include "golden/questions/draw.h"

namespace attn::questions {

enum class MergeState : std::uint8_t { kLive, kMinusInfinity, kPlusInfinity };
using MergeStateOf = MergeState (*)(std::int64_t part, std::int64_t token, std::int64_t head);

struct MergeSetup {
  Source source = {};
  std::int64_t num_parts = 2;
  std::int64_t num_tokens = 4;
  std::int64_t num_heads = 2;
  std::int64_t head_size_v = 8;
  DType out_dtype = DType::kF32;
  bool base_2 = false;
  MergeStateOf state = [](std::int64_t, std::int64_t, std::int64_t) { return MergeState::kLive; };
  double (*lse_shift)(std::int64_t part) = [](std::int64_t) { return 0.0; };
};

// The operation a setup describes; views look into `memory`. The out of an empty part is NaN.
MergeStatesOp draw_merge(const MergeSetup& setup, TensorStore& memory);

// A third of the states, none of token 3; the first part of token 0 is among them.
MergeState sometimes_empty(std::int64_t part, std::int64_t token, std::int64_t head);

}  // namespace attn::questions
