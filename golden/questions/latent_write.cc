#include "golden/questions/latent_write.h"

#include <cmath>
#include <utility>

#include "golden/questions/slots.h"

namespace attn::questions {
namespace {

constexpr std::int64_t kNumTokens = 4;  // with a slot
constexpr std::int64_t kNumRows = 5;    // of kv_c and k_pe; the last one is NaN
constexpr std::int64_t kNumBlocks = 2;
constexpr std::int64_t kBlockSize = 4;

// Dims [first, first + size) of the new rows.
HostTensor draw_part(const LatentWrite& write, const FamilyValues& values, std::int64_t first,
                     std::int64_t size) {
  const DType dtype = write.latent.dtype;
  return drawn(dtype, {kNumRows, size}, [&](const std::vector<std::int64_t>& at) {
    if (at[0] >= kNumTokens) return std::nan("");
    const std::int64_t d = first + at[1];
    if (write.zero_group && at[0] == 0 && d / 128 == 1) return 0.0;
    return values.key({.position = at[0], .dim = d}, dtype);
  });
}

// What the slots held before: rows of a request that is not the one written.
HostTensor draw_before(const LatentSetup& setup, const FamilyValues& values) {
  const bool inline_scales = setup.encoding == KvEncoding::kFp8DsMla;
  const std::int64_t row = inline_scales ? kDsMlaRowBytes : setup.latent + setup.rope;
  HostTensor cache(inline_scales ? DType::kU8 : setup.cache_dtype, {kNumBlocks, kBlockSize, row});
  for (std::int64_t slot = 0; slot < kNumBlocks * kBlockSize; ++slot) {
    const std::vector<std::uint64_t> codes = draw_latent_row(setup, values, 1, slot);
    for (std::int64_t d = 0; d < row; ++d) {
      cache.set_code(slot * row + d, codes[static_cast<std::size_t>(d)]);
    }
  }
  return cache;
}

}  // namespace

MlaCacheWriteOp draw_latent_write(const LatentWrite& write, TensorStore& memory) {
  const LatentSetup& setup = write.latent;
  const FamilyValues values(setup.source, 1.0, setup.latent);
  MlaCacheWriteOp op;
  op.kv_c = memory.keep(draw_part(write, values, 0, setup.latent));
  op.k_pe = memory.keep(draw_part(write, values, setup.latent, setup.rope));
  op.slot_mapping = memory.keep(draw_slots(setup.source, kNumBlocks * kBlockSize, kNumTokens));
  op.kv_cache = memory.keep(draw_before(setup, values));
  op.encoding = setup.encoding;
  if (setup.k_scale) op.k_scale = memory.keep(drawn_scale(setup.source, RandomTensor::kKScale));
  return op;
}

}  // namespace attn::questions
