// A question of multi-head latent attention before anything is drawn, and the rows of its caches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "attn/host_tensor.h"
#include "attn/operation.h"
#include "golden/questions/block_plan.h"
#include "golden/questions/draw.h"
#include "golden/questions/fill.h"

namespace attn::questions {

struct LatentSetup {
  Source source = {};
  std::vector<std::int64_t> query_lens = {};
  std::vector<std::int64_t> seq_lens = {};
  std::int64_t num_heads = 2;
  std::int64_t latent = 32;
  std::int64_t rope = 8;
  std::int64_t nope = 16;         // the scale is (nope + rope)^-1/2 rounded to binary32
  std::int64_t head_size_v = 16;  // expanded
  MlaForm form = MlaForm::kAbsorbed;
  DType dtype = DType::kF32;  // of the query and the projections
  DType cache_dtype = DType::kF32;
  KvEncoding encoding = KvEncoding::kPlain;  // kFp8DsMla: latent 512, rope 64
  bool k_scale = false;
  BlockOptions blocks = {};
  Fill fill = Fill::kZero;  // of slots that no request addresses
  bool causal = true;
  ExecSpec exec = {};
};

// The operation a setup describes; views look into `memory`.
MlaOp draw_mla(const LatentSetup& setup, TensorStore& memory);

// The units of a cache row with the coordinates of key k of a request.
std::vector<std::uint64_t> draw_latent_row(const LatentSetup& setup, const FamilyValues& values,
                                           std::int64_t request, std::int64_t k);

// A row of an fp8_ds_mla cache: 512 e4m3 codes, the float32 scales of their four groups, 64 bf16.
// scale = max(largest |x| / 448, 2^-126), codes of x / scale, every step rounded to float32; the
// rope part is copied. `row`: 576 values that bf16 holds.
inline constexpr std::int64_t kDsMlaLatent = 512;
inline constexpr std::int64_t kDsMlaRope = 64;
inline constexpr std::int64_t kDsMlaRowBytes = 656;
std::array<std::uint8_t, kDsMlaRowBytes> ds_mla_row(std::span<const float> row);

}  // namespace attn::questions
