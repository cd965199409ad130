// Writes of latent rows.
#include <cmath>
#include <utility>

#include "golden/questions/latent_setup.h"
#include "golden/questions/other_questions.h"
#include "golden/questions/slots.h"

namespace attn::questions {
namespace {

constexpr std::int64_t kNumTokens = 4;  // with a slot
constexpr std::int64_t kNumRows = 5;    // of kv_c and k_pe; the last one is NaN
constexpr std::int64_t kNumBlocks = 2;
constexpr std::int64_t kBlockSize = 4;

struct LatentWrite {
  LatentSetup latent = {};
  bool zero_group = false;  // dims 128 ... 255 of token 0 are 0
};

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

void add_write(std::vector<Question>& to, std::string id, std::string name, std::string scenario,
               std::vector<std::string> rulings, const LatentWrite& write) {
  const LatentSetup& setup = write.latent;
  Question question = drawn_question(std::move(id), std::move(name), std::move(scenario),
                                     std::move(rulings), setup.source);
  const FamilyValues values(setup.source, 1.0, setup.latent);
  TensorStore& memory = question.memory;
  MlaCacheWriteOp op;
  op.kv_c = memory.keep(draw_part(write, values, 0, setup.latent));
  op.k_pe = memory.keep(draw_part(write, values, setup.latent, setup.rope));
  op.slot_mapping = memory.keep(draw_slots(setup.source, kNumBlocks * kBlockSize, kNumTokens));
  op.kv_cache = memory.keep(draw_before(setup, values));
  op.encoding = setup.encoding;
  if (setup.k_scale) op.k_scale = memory.keep(drawn_scale(setup.source, RandomTensor::kKScale));
  question.operation = op;
  to.push_back(std::move(question));
}

}  // namespace

void add_mla_cache_write_questions(std::vector<Question>& to) {
  add_write(
      to, "mla_cache_write-auto", "bf16 rows copied",
      "rope first; the token of slot -1 written into the last slot",
      {"mla_write_layout", "latent_first_rope_last", "slot_minus_one_skipped",
       "slot_mapping_length"},
      {.latent = {
           .source = {Family::kBell, 0x4004}, .dtype = DType::kBF16, .cache_dtype = DType::kBF16}});
  add_write(to, "mla_cache_write-fp8_e4m3", "e4m3 codes with one scale for both parts",
            "a rope part that is not divided by the scale",
            {"mla_write_layout", "kv_scales", "fp8_formats"},
            {.latent = {.source = {Family::kBell, 0x4002},
                        .dtype = DType::kBF16,
                        .cache_dtype = DType::kF8E4M3FN,
                        .k_scale = true}});
  add_write(to, "mla_cache_write-fp8_ds_mla", "rows with the scales of their four groups",
            "one scale for the whole row; a group of zeros divided by its scale of 0",
            {"mla_write_layout", "fp8_ds_mla_layout", "slot_minus_one_skipped"},
            {.latent = {.source = {Family::kChannelOutliers, 0x4005},
                        .latent = kDsMlaLatent,
                        .rope = kDsMlaRope,
                        .dtype = DType::kBF16,
                        .cache_dtype = DType::kBF16,
                        .encoding = KvEncoding::kFp8DsMla},
             .zero_group = true});
}

}  // namespace attn::questions
