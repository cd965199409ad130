#include "golden/questions/latent_setup.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace attn::questions {
namespace {

// Request and position of every token.
std::vector<Place> token_places(const LatentSetup& setup) {
  std::vector<Place> places;
  for (std::size_t r = 0; r < setup.query_lens.size(); ++r) {
    const std::int64_t context = setup.seq_lens[r] - setup.query_lens[r];
    for (std::int64_t i = 0; i < setup.query_lens[r]; ++i) {
      places.push_back({.request = static_cast<std::int64_t>(r), .position = context + i});
    }
  }
  return places;
}

HostTensor draw_query(const LatentSetup& setup, const FamilyValues& values) {
  const std::vector<Place> tokens = token_places(setup);
  const bool absorbed = setup.form == MlaForm::kAbsorbed;
  const std::int64_t size = (absorbed ? setup.latent : setup.nope) + setup.rope;
  return drawn(setup.dtype, {static_cast<std::int64_t>(tokens.size()), setup.num_heads, size},
               [&](const std::vector<std::int64_t>& at) {
                 Place place = tokens[static_cast<std::size_t>(at[0])];
                 place.head = at[1];
                 place.dim = at[2];
                 return values.query(place, setup.dtype);
               });
}

HostTensor draw_projection(const LatentSetup& setup, RandomTensor tensor, std::int64_t size) {
  return drawn(setup.dtype, {setup.latent, setup.num_heads, size},
               [&](const std::vector<std::int64_t>& at) {
                 const Place place = {.position = at[0], .head = at[1], .dim = at[2]};
                 return bell(words_at(setup.source, tensor, place)) / 16.0;
               });
}

HostTensor draw_cache(const LatentSetup& setup, const FamilyValues& values, const BlockPlan& plan) {
  const bool inline_scales = setup.encoding == KvEncoding::kFp8DsMla;
  const std::int64_t row = inline_scales ? kDsMlaRowBytes : setup.latent + setup.rope;
  HostTensor cache(inline_scales ? DType::kU8 : setup.cache_dtype,
                   {plan.num_blocks(), plan.block_size(), row});
  // 0xFF is NaN as e4m3, in float32 and in bf16.
  cache.fill(inline_scales ? (setup.fill == Fill::kZero ? 0x00 : 0xFF)
                           : fill_code(setup.fill, setup.cache_dtype));
  for (std::size_t r = 0; r < setup.seq_lens.size(); ++r) {
    for (std::int64_t k = 0; k < setup.seq_lens[r]; ++k) {
      const KvSlot to = plan.slot(static_cast<std::int64_t>(r), k);
      const std::int64_t first = (to.block * plan.block_size() + to.slot) * row;
      const std::vector<std::uint64_t> codes =
          draw_latent_row(setup, values, static_cast<std::int64_t>(r), k);
      for (std::int64_t d = 0; d < row; ++d) {
        cache.set_code(first + d, codes[static_cast<std::size_t>(d)]);
      }
    }
  }
  return cache;
}

}  // namespace

std::array<std::uint8_t, kDsMlaRowBytes> ds_mla_row(std::span<const float> row) {
  constexpr std::int64_t kGroup = 128;
  std::array<std::uint8_t, kDsMlaRowBytes> bytes = {};
  for (std::int64_t first = 0; first < kDsMlaLatent; first += kGroup) {
    float largest = 0.0F;
    for (std::int64_t d = first; d < first + kGroup; ++d) {
      largest = std::max(largest, std::fabs(row[static_cast<std::size_t>(d)]));
    }
    const float scale = std::max(largest / 448.0F, 0x1p-126F);
    for (std::int64_t d = first; d < first + kGroup; ++d) {
      const float quotient = row[static_cast<std::size_t>(d)] / scale;
      bytes[static_cast<std::size_t>(d)] =
          static_cast<std::uint8_t>(encode(DType::kF8E4M3FN, quotient, Overflow::kSaturate));
    }
    store_code(DType::kF32, encode(DType::kF32, scale, Overflow::kInfinity),
               bytes.data() + kDsMlaLatent + first / kGroup * 4);
  }
  for (std::int64_t d = 0; d < kDsMlaRope; ++d) {
    const float x = row[static_cast<std::size_t>(kDsMlaLatent + d)];
    store_code(DType::kBF16, encode(DType::kBF16, x, Overflow::kInfinity),
               bytes.data() + kDsMlaLatent + 16 + 2 * d);
  }
  return bytes;
}

std::vector<std::uint64_t> draw_latent_row(const LatentSetup& setup, const FamilyValues& values,
                                           std::int64_t request, std::int64_t k) {
  std::vector<std::uint64_t> codes;
  for (std::int64_t d = 0; d < setup.latent + setup.rope; ++d) {
    codes.push_back(
        values.key_code({.request = request, .position = k, .dim = d}, setup.cache_dtype));
  }
  if (setup.encoding != KvEncoding::kFp8DsMla) return codes;
  std::vector<float> row;
  row.reserve(codes.size());
  for (const std::uint64_t code : codes) {
    row.push_back(static_cast<float>(decode(DType::kBF16, code)));
  }
  const std::array<std::uint8_t, kDsMlaRowBytes> bytes = ds_mla_row(row);
  return {bytes.begin(), bytes.end()};
}

MlaOp draw_mla(const LatentSetup& setup, TensorStore& memory) {
  MlaOp op;
  op.scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(setup.nope + setup.rope)));
  const FamilyValues values(setup.source, op.scale, setup.latent);
  const BlockPlan plan(setup.seq_lens, setup.blocks, setup.source.seed);
  op.query = memory.keep(draw_query(setup, values));
  op.query_start_loc = memory.keep(starts(setup.query_lens));
  op.seq_lens = memory.keep(int_tensor(setup.seq_lens));
  op.kv_cache = memory.keep(draw_cache(setup, values, plan));
  op.encoding = setup.encoding;
  op.block_table = memory.keep(plan.table());
  if (setup.k_scale) op.k_scale = memory.keep(drawn_scale(setup.source, RandomTensor::kKScale));
  op.causal = setup.causal;
  op.form = setup.form;
  op.kv_lora_rank = setup.latent;
  op.qk_rope_head_dim = setup.rope;
  if (setup.form == MlaForm::kExpanded) {
    op.qk_nope_head_dim = setup.nope;
    op.w_uk = memory.keep(draw_projection(setup, RandomTensor::kWUk, setup.nope));
    op.w_uv = memory.keep(draw_projection(setup, RandomTensor::kWUv, setup.head_size_v));
  }
  op.exec = setup.exec;
  return op;
}

}  // namespace attn::questions
