#include "golden/questions/merge_setup.h"

#include <cmath>

namespace attn::questions {
namespace {

HostTensor draw_outs(const MergeSetup& setup) {
  return drawn(setup.out_dtype,
               {setup.num_parts, setup.num_tokens, setup.num_heads, setup.head_size_v},
               [&](const std::vector<std::int64_t>& at) {
                 if (setup.state(at[0], at[1], at[2]) != MergeState::kLive) return std::nan("");
                 const Place place = {at[0], at[1], at[2], at[3]};
                 return bell(words_at(setup.source, RandomTensor::kOutParts, place));
               });
}

HostTensor draw_lses(const MergeSetup& setup) {
  return drawn(DType::kF32, {setup.num_parts, setup.num_heads, setup.num_tokens},
               [&](const std::vector<std::int64_t>& at) {
                 const Place place = {at[0], at[2], at[1], 0};
                 switch (setup.state(place.request, place.position, place.head)) {
                   case MergeState::kMinusInfinity:
                     return -HUGE_VAL;
                   case MergeState::kPlusInfinity:
                     return HUGE_VAL;
                   default:
                     return setup.lse_shift(at[0]) +
                            4.0 * bell(words_at(setup.source, RandomTensor::kLseParts, place));
                 }
               });
}

}  // namespace

MergeStatesOp draw_merge(const MergeSetup& setup, TensorStore& memory) {
  MergeStatesOp op;
  op.out_parts = memory.keep(draw_outs(setup));
  op.lse_parts = memory.keep(draw_lses(setup));
  op.lse_base_2 = setup.base_2;
  return op;
}

MergeState sometimes_empty(std::int64_t part, std::int64_t token, std::int64_t head) {
  if (token == 3 || (part + token + head) % 3 != 0) return MergeState::kLive;
  return part % 2 == 0 ? MergeState::kMinusInfinity : MergeState::kPlusInfinity;
}

}  // namespace attn::questions
