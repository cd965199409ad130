// A row of an fp8_ds_mla cache: 512 e4m3 codes of the latent part, a f32 scale for each 128 of
// them, 64 bf16 numbers of the rope part.
#pragma once

#include <cstdint>

namespace attn::reference {

struct DsMlaRow {
  static constexpr std::int64_t kLatent = 512;
  static constexpr std::int64_t kGroup = 128;
  static constexpr std::int64_t kGroups = kLatent / kGroup;
  static constexpr std::int64_t kRope = 64;

  // Bytes from the start of the row.
  static constexpr std::int64_t scale_at(std::int64_t group) { return kLatent + 4 * group; }
  static constexpr std::int64_t rope_at(std::int64_t d) { return scale_at(kGroups) + 2 * d; }
};

}  // namespace attn::reference
