#include <algorithm>
#include <utility>
#include <vector>

#include "attn/random.h"
#include "core/special_values.h"
#include "property_tests/draw_problem.h"
#include "property_tests/other_config.h"
#include "property_tests/random_element.h"

namespace attn::property_tests {
namespace {

template <class Config>
Words words_at(const Config& config, RandomTensor tensor, std::int64_t r, std::int64_t position,
               std::int64_t head, std::int64_t dim) {
  return random_words(config.seed, random_index(r, position, head, dim), tensor,
                      static_cast<std::uint32_t>(config.family));
}

template <class Config>
double element(const Config& config, const Words& words, DType dtype) {
  if (config.specials && is_special(words)) return special_value(words);
  return random_element(config.family, words, dtype);
}

// [tokens, heads, size], by coordinates (token, head, dim).
template <class Config>
HostTensor drawn_rows(const Config& config, RandomTensor which, DType dtype, std::int64_t tokens,
                      std::int64_t heads, std::int64_t size) {
  HostTensor rows(dtype, {tokens, heads, size});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t h = 0; h < heads; ++h) {
      for (std::int64_t d = 0; d < size; ++d) {
        rows.set(element(config, words_at(config, which, 0, t, h, d), dtype), t, h, d);
      }
    }
  }
  return rows;
}

// The same without the axis of heads.
HostTensor without_heads(const HostTensor& rows) {
  HostTensor flat(rows.dtype(), {rows.shape()[0], rows.shape()[2]});
  copy_units(rows, 0, rows.num_units(), flat, 0);
  return flat;
}

void fill_with_random_codes(std::uint64_t seed, RandomTensor which, HostTensor& tensor) {
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    const Words w = random_words(seed, static_cast<std::uint64_t>(i), which, 99);
    tensor.set_code(i, w[0] | std::uint64_t{w[1]} << 32);
  }
}

// -1 for one token in five, else slots of a permutation.
TensorView draw_slots(std::uint64_t seed, std::int64_t tokens, std::int32_t num_slots,
                      TensorStore& memory) {
  const std::vector<std::int32_t> order =
      random_permutation(seed, num_slots, RandomTensor::kSlotMapping, 0);
  std::vector<double> slots;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const Words w =
        random_words(seed, static_cast<std::uint64_t>(t), RandomTensor::kSlotMapping, 1);
    slots.push_back(below(w, 5) == 0 ? -1.0 : order[static_cast<std::size_t>(t)]);
  }
  return memory.keep(HostTensor(DType::kI64, {tokens}, slots));
}

// What a token without a slot and the rows behind hold: nobody reads them.
void spoil_unread_rows(const TensorView& slots, HostTensor& rows) {
  const std::int64_t size = rows.num_units() / std::max<std::int64_t>(rows.shape()[0], 1);
  for (std::int64_t t = 0; t < rows.shape()[0]; ++t) {
    if (t < slots.shape[0] && int_at(slots, t) >= 0) continue;
    for (std::int64_t i = t * size; i < (t + 1) * size; ++i) {
      rows.set_code(i, encode(rows.dtype(), kNaN, Overflow::kInfinity));
    }
  }
}

std::int32_t blocks_for(std::int64_t slots, std::int64_t block_size, std::int64_t spare) {
  return static_cast<std::int32_t>((slots + block_size - 1) / block_size + spare);
}

// One half of a cache of heads, [num_blocks, block_size, heads, size] whatever the memory order.
TensorView half_of_cache(const CacheWriteConfig& config, const TensorView& memory,
                         RandomTensor which) {
  TensorView half = is_hnd(config.memory.cache) ? swap_axes(memory, 1, 2) : memory;
  if (!is_packed(config.memory.cache)) return half;
  return which == RandomTensor::kKey ? slice(half, 3, 0, config.head_size)
                                     : slice(half, 3, config.head_size, config.head_size_v);
}

void draw_caches(const CacheWriteConfig& config, KvCacheView& cache, TensorStore& memory) {
  const std::int64_t block_size = config.memory.block_size;
  const std::int32_t blocks = blocks_for(config.num_slots, block_size, config.memory.spare_blocks);
  const auto codes = [&](RandomTensor which, std::int64_t size) {
    std::vector<std::int64_t> shape = {blocks, block_size, config.num_heads, size};
    if (is_hnd(config.memory.cache)) std::swap(shape[1], shape[2]);
    HostTensor tensor(dtype_of(config.cache), shape);
    fill_with_random_codes(config.seed, which, tensor);
    return memory.keep(std::move(tensor));
  };
  cache.layout = is_packed(config.memory.cache) ? KvLayout::kPacked : KvLayout::kPaged;
  cache.encoding = encoding_of(config.cache);
  const bool packed = is_packed(config.memory.cache);
  const TensorView key =
      codes(RandomTensor::kKey, packed ? config.head_size + config.head_size_v : config.head_size);
  const TensorView value = packed ? key : codes(RandomTensor::kValue, config.head_size_v);
  cache.key = half_of_cache(config, key, RandomTensor::kKey);
  cache.value = half_of_cache(config, value, RandomTensor::kValue);
  if (cache.encoding != KvEncoding::kPerTokenHead) return;
  for (const auto& [scales, which] : {std::pair{&cache.k_scale_cache, RandomTensor::kKScale},
                                      std::pair{&cache.v_scale_cache, RandomTensor::kVScale}}) {
    HostTensor tensor(DType::kF32, {blocks, block_size, config.num_heads});
    fill_with_random_codes(config.seed, which, tensor);
    *scales = memory.keep(std::move(tensor));
  }
}

TensorView write_scale(const CacheWriteConfig& config, RandomTensor which, TensorStore& memory) {
  if (config.scales == ScaleShape::kNone) return {};
  const std::int64_t count = config.scales == ScaleShape::kOne ? 1 : config.num_heads;
  std::vector<double> scales;
  for (std::int64_t h = 0; h < count; ++h) {
    scales.push_back(random_scale(words_at(config, which, 0, 0, h, 0)));
  }
  return memory.keep(HostTensor(DType::kF32, {count}, scales));
}

}  // namespace

LogicalProblem draw_paired_heads(const DifferentialConfig& config) {
  ProblemConfig heads = config.attention;
  heads.num_kv_heads *= 2;
  return draw_problem(heads);
}

DrawnOperation draw_difference(const DifferentialConfig& config, const AttentionOp& attention) {
  const ProblemConfig& c = config.attention;
  const auto words = [&](std::int64_t entry) {
    return words_at(c, RandomTensor::kDiffNormWeight, 1, 0, 0, entry);
  };
  DifferentialOp op;
  op.attention = attention;
  op.lambda = bell(words(0));
  op.lambda_init = 0.25 + below(words(1), 3) / 4.0;
  op.eps = below(words(2), 2) == 0 ? 0.0 : 0x1p-17;
  DrawnOperation drawn;
  if (config.norm) {
    const std::int64_t size = 2 * attention.head_size_v();
    std::vector<double> weights;
    for (std::int64_t d = 0; d < size; ++d) {
      weights.push_back(bell(words_at(c, RandomTensor::kDiffNormWeight, 0, 0, 0, d)));
    }
    op.norm_weight = drawn.memory.keep(HostTensor(DType::kF32, {size}, weights));
  }
  drawn.operation = op;
  return drawn;
}

DrawnOperation draw_operation(const IndexerConfig& config) {
  DrawnOperation drawn;
  TensorStore& memory = drawn.memory;
  const std::int64_t tokens = config.num_tokens;
  const std::int64_t keys = config.num_keys;
  IndexerOp op;
  op.query = memory.keep(drawn_rows(config, RandomTensor::kQuery, config.query_dtype, tokens,
                                    config.num_heads, config.head_size));
  op.key = memory.keep(without_heads(
      drawn_rows(config, RandomTensor::kKey, config.key_dtype, keys, 1, config.head_size)));
  op.weights = memory.keep(without_heads(
      drawn_rows(config, RandomTensor::kWeights, DType::kF32, tokens, 1, config.num_heads)));
  if (config.k_scale != IndexScale::kNone) {
    std::vector<double> scales;
    for (std::int64_t n = 0; n < keys; ++n) {
      scales.push_back(random_scale(words_at(config, RandomTensor::kKScale, 0, n, 0, 0)));
    }
    op.k_scale = memory.keep(config.k_scale == IndexScale::kRow
                                 ? HostTensor(DType::kF32, {keys}, scales)
                                 : HostTensor(DType::kF32, {keys, 1}, scales));
  }
  std::vector<double> starts;
  std::vector<double> ends;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto end_of = [&](std::int64_t entry) {
      return below(words_at(config, RandomTensor::kConfiguration, 0, t, 0, entry),
                   static_cast<std::uint32_t>(keys) + 1);
    };
    const std::uint32_t start = end_of(0) / 2;
    starts.push_back(start);
    ends.push_back(end_of(1));
  }
  op.k_start = memory.keep(HostTensor(DType::kI32, {tokens}, starts));
  op.k_end = memory.keep(HostTensor(DType::kI32, {tokens}, ends));
  drawn.operation = op;
  return drawn;
}

DrawnOperation draw_operation(const MergeConfig& config) {
  DrawnOperation drawn;
  HostTensor out(config.dtype,
                 {config.num_parts, config.num_tokens, config.num_heads, config.head_size_v});
  HostTensor lse(config.dtype, {config.num_parts, config.num_heads, config.num_tokens});
  for (std::int64_t p = 0; p < config.num_parts; ++p) {
    for (std::int64_t t = 0; t < config.num_tokens; ++t) {
      for (std::int64_t h = 0; h < config.num_heads; ++h) {
        const Words w = words_at(config, RandomTensor::kLseParts, p, t, h, 0);
        const double spread = config.family == Family::kLargeLogits ? 64.0 : 4.0;
        double x = config.family == Family::kExactLane ? 0.0 : spread * bell(w);
        const bool empty = config.empty_parts && (w[2] >> 30) == 0;
        if (empty) x = (w[3] >> 31) != 0 ? kInf : -kInf;
        if (config.specials && (w[2] >> 26) == 63) x = kNaN;
        lse.set(x, p, h, t);
        for (std::int64_t d = 0; d < config.head_size_v; ++d) {
          const Words v = words_at(config, RandomTensor::kOutParts, p, t, h, d);
          out.set(empty ? kNaN : element(config, v, DType::kF32), p, t, h, d);
        }
      }
    }
  }
  MergeStatesOp op;
  op.out_parts = drawn.memory.keep(std::move(out));
  op.lse_parts = drawn.memory.keep(std::move(lse));
  op.lse_base_2 = config.base_2;
  drawn.operation = op;
  return drawn;
}

DrawnOperation draw_operation(const CacheWriteConfig& config) {
  DrawnOperation drawn;
  TensorStore& memory = drawn.memory;
  const std::int64_t rows = config.num_slots + config.spare_rows;
  CacheWriteOp op;
  draw_caches(config, op.cache, memory);
  op.slot_mapping =
      draw_slots(config.seed, config.num_slots,
                 static_cast<std::int32_t>(op.cache.key.shape[0] * op.cache.key.shape[1]), memory);
  HostTensor key = drawn_rows(config, RandomTensor::kKey, config.input, rows, config.num_heads,
                              config.head_size);
  HostTensor value = drawn_rows(config, RandomTensor::kValue, config.input, rows, config.num_heads,
                                config.head_size_v);
  spoil_unread_rows(op.slot_mapping, key);
  spoil_unread_rows(op.slot_mapping, value);
  op.key = memory.keep(std::move(key));
  op.value = memory.keep(std::move(value));
  op.cache.k_scale = write_scale(config, RandomTensor::kKScale, memory);
  op.cache.v_scale = write_scale(config, RandomTensor::kVScale, memory);
  drawn.operation = op;
  return drawn;
}

DrawnOperation draw_operation(const LatentWriteConfig& config) {
  DrawnOperation drawn;
  TensorStore& memory = drawn.memory;
  const bool ds_mla = config.cache == LatentCache::kFp8DsMla;
  const std::int32_t blocks = blocks_for(config.num_slots, config.block_size, config.spare_blocks);
  HostTensor cache(dtype_of(config.cache),
                   {blocks, config.block_size, ds_mla ? 656 : config.latent + config.rope});
  fill_with_random_codes(config.seed, RandomTensor::kKey, cache);
  MlaCacheWriteOp op;
  op.slot_mapping = draw_slots(config.seed, config.num_slots, blocks * config.block_size, memory);
  const std::int64_t rows = config.num_slots + config.spare_rows;
  const auto part = [&](RandomTensor which, std::int64_t size) {
    HostTensor drawn_part = without_heads(drawn_rows(config, which, config.input, rows, 1, size));
    spoil_unread_rows(op.slot_mapping, drawn_part);
    return memory.keep(std::move(drawn_part));
  };
  op.kv_c = part(RandomTensor::kKey, config.latent);
  op.k_pe = part(RandomTensor::kValue, config.rope);
  op.kv_cache = memory.keep(std::move(cache));
  if (ds_mla) op.encoding = KvEncoding::kFp8DsMla;
  if (config.k_scale) {
    const double scale = random_scale(words_at(config, RandomTensor::kKScale, 0, 0, 0, 0));
    op.k_scale = memory.keep(HostTensor(DType::kF32, {1}, {scale}));
  }
  drawn.operation = op;
  return drawn;
}

}  // namespace attn::property_tests
