#include "golden/questions/write_setup.h"

#include <utility>

#include "core/special_values.h"
#include "golden/questions/cache_rows.h"
#include "golden/questions/slots.h"

namespace attn::questions {
namespace {

HostTensor draw_rows(const WriteSetup& setup, const FamilyValues& values, bool keys) {
  const std::vector<double>& first = keys ? setup.first_key : setup.first_value;
  const std::int64_t size = keys ? setup.head_size : setup.head_size_v;
  return drawn(setup.dtype, {setup.num_rows, setup.num_kv_heads, size},
               [&](const std::vector<std::int64_t>& at) {
                 if (at[0] >= setup.num_tokens) return kNaN;
                 const auto d = static_cast<std::size_t>(at[2]);
                 if (at[0] == 0 && at[1] == 0 && d < first.size()) return first[d];
                 const Place place = {.position = at[0], .head = at[1], .dim = at[2]};
                 return keys ? values.key(place, setup.dtype) : values.value(place, setup.dtype);
               });
}

// The same units in another shape.
HostTensor reshaped(const HostTensor& tensor, std::vector<std::int64_t> shape) {
  HostTensor result(tensor.dtype(), std::move(shape));
  copy_units(tensor, 0, tensor.num_units(), result, 0);
  return result;
}

// `cache` in logical order, laid out with heads before slots when asked; its view in logical order.
TensorView keep_cache(const HostTensor& cache, bool heads_first, TensorStore& memory) {
  if (!heads_first) return memory.keep(cache);
  const std::vector<std::int64_t>& shape = cache.shape();
  HostTensor swapped(cache.dtype(), {shape[0], shape[2], shape[1], shape[3]});
  for (std::int64_t block = 0; block < shape[0]; ++block) {
    for (std::int64_t slot = 0; slot < shape[1]; ++slot) {
      for (std::int64_t head = 0; head < shape[2]; ++head) {
        copy_units(cache, ((block * shape[1] + slot) * shape[2] + head) * shape[3], shape[3],
                   swapped, ((block * shape[2] + head) * shape[1] + slot) * shape[3]);
      }
    }
  }
  return swap_axes(memory.keep(std::move(swapped)), 1, 2);
}

HostTensor draw_scales(const WriteSetup& setup, RandomTensor tensor) {
  switch (setup.scales) {
    case Scales::kOne:
      return drawn_scale(setup.source, tensor);
    case Scales::kPerHead:
      return drawn_scale_per_head(setup.source, tensor, setup.num_kv_heads);
    default:
      return {};
  }
}

// What the slots held before: keys of a request that is not the one written.
CacheRows draw_before(const WriteSetup& setup, const FamilyValues& values, bool keys) {
  CacheSide side;
  side.tensor = keys ? RandomTensor::kKey : RandomTensor::kValue;
  side.seq_len = setup.num_blocks * setup.block_size;
  side.num_kv_heads = setup.num_kv_heads;
  side.head_size = keys ? setup.head_size : setup.head_size_v;
  side.dtype = keys ? setup.key_cache_dtype : setup.value_cache_dtype;
  side.encoding = setup.encoding;
  side.request_of = [](std::int64_t) { return std::int64_t{1}; };
  return draw_cache_rows(setup.source, values, side);
}

}  // namespace

CacheWriteOp draw_write(const WriteSetup& setup, TensorStore& memory) {
  const FamilyValues values(setup.source, 1.0, setup.head_size_v);
  const std::int64_t blocks = setup.num_blocks;
  const std::int64_t slots = setup.block_size;
  const std::int64_t heads = setup.num_kv_heads;
  CacheWriteOp op;
  op.key = memory.keep(draw_rows(setup, values, true));
  op.value = memory.keep(draw_rows(setup, values, false));
  op.slot_mapping = memory.keep(draw_slots(setup.source, blocks * slots, setup.num_tokens));
  op.cache.layout = KvLayout::kPaged;
  op.cache.encoding = setup.encoding;
  const CacheRows keys = draw_before(setup, values, true);
  const CacheRows value_rows = draw_before(setup, values, false);
  op.cache.key = keep_cache(reshaped(keys.codes, {blocks, slots, heads, setup.head_size}),
                            setup.heads_first, memory);
  op.cache.value = keep_cache(reshaped(value_rows.codes, {blocks, slots, heads, setup.head_size_v}),
                              setup.heads_first, memory);
  if (setup.encoding == KvEncoding::kPerTokenHead) {
    op.cache.k_scale_cache = memory.keep(reshaped(keys.token_scale, {blocks, slots, heads}));
    op.cache.v_scale_cache = memory.keep(reshaped(value_rows.token_scale, {blocks, slots, heads}));
  }
  op.cache.k_scale = memory.keep(draw_scales(setup, RandomTensor::kKScale));
  op.cache.v_scale = memory.keep(draw_scales(setup, RandomTensor::kVScale));
  return op;
}

}  // namespace attn::questions
