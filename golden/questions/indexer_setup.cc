#include "golden/questions/indexer_setup.h"

#include <utility>

namespace attn::questions {

IndexerOp draw_indexer(const IndexerSetup& setup, TensorStore& memory) {
  const FamilyValues values(setup.source, 1.0, setup.head_size);
  const auto num_tokens = static_cast<std::int64_t>(setup.k_start.size());
  IndexerOp op;
  op.query = memory.keep(drawn(setup.dtype, {num_tokens, setup.num_heads, setup.head_size},
                               [&](const std::vector<std::int64_t>& at) {
                                 return values.query(
                                     {.position = at[0], .head = at[1], .dim = at[2]}, setup.dtype);
                               }));
  HostTensor keys(setup.key_dtype, {setup.num_keys, setup.head_size});
  for (std::int64_t n = 0; n < setup.num_keys; ++n) {
    for (std::int64_t d = 0; d < setup.head_size; ++d) {
      keys.set_code(n * setup.head_size + d,
                    values.key_code({.position = n, .dim = d}, setup.key_dtype));
    }
  }
  op.key = memory.keep(std::move(keys));
  if (setup.k_scale) {
    op.k_scale = memory.keep(
        drawn(DType::kF32, {setup.num_keys, 1}, [&](const std::vector<std::int64_t>& at) {
          return random_scale(words_at(setup.source, RandomTensor::kKScale, {.position = at[0]}));
        }));
  }
  op.weights = memory.keep(
      drawn(DType::kF32, {num_tokens, setup.num_heads}, [&](const std::vector<std::int64_t>& at) {
        const Place place = {.position = at[0], .head = at[1]};
        return bell(words_at(setup.source, RandomTensor::kWeights, place));
      }));
  op.k_start = memory.keep(int_tensor(setup.k_start));
  op.k_end = memory.keep(int_tensor(setup.k_end));
  return op;
}

}  // namespace attn::questions
