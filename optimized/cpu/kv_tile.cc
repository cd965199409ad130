#include "optimized/cpu/kv_tile.h"

#include <algorithm>
#include <bit>

namespace attn::cpu {
namespace {

bool is_wanted(std::uint64_t wanted, std::int64_t j) { return ((wanted >> j) & 1) != 0; }

bool all_finite(const float* row, std::int64_t n) {
  constexpr std::uint32_t kExponent = 0x7F800000u;
  std::uint32_t found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    found |= (std::bit_cast<std::uint32_t>(row[i]) & kExponent) == kExponent ? 1u : 0u;
  }
  return found == 0;
}

// Key rows become columns, some rows at a time so that a cache line of columns is written once.
void load_keys(const RowReader& reader, std::int64_t first, std::uint64_t wanted, KvTile& tile) {
  constexpr std::int64_t kRows = KvTile::kRowsAtOnce;
  const std::int64_t size = reader.size();
  for (std::int64_t j = 0; j < kTileKeys; j += kRows) {
    if (((wanted >> j) & ((1u << kRows) - 1)) == 0) continue;
    for (std::int64_t i = 0; i < kRows; ++i) {
      float* row = tile.rows + i * size;
      if (is_wanted(wanted, j + i)) {
        reader.read(first + j + i, row);
      } else {
        std::fill_n(row, size, 0.0f);
      }
    }
    for (std::int64_t d = 0; d < size; ++d) {
      float* column = tile.keys + d * kTileKeys + j;
      for (std::int64_t i = 0; i < kRows; ++i) column[i] = tile.rows[i * size + d];
    }
  }
}

void load_values(const RowReader& reader, std::int64_t first, std::uint64_t wanted, KvTile& tile) {
  const std::int64_t size = reader.size();
  const std::int64_t stride = padded_head_size(size);
  tile.infinite_or_nan = 0;
  for (std::int64_t j = 0; j < kTileKeys; ++j) {
    if (!is_wanted(wanted, j)) continue;
    float* row = tile.values + j * stride;
    reader.read(first + j, row);
    std::fill(row + size, row + stride, 0.0f);
    if (!all_finite(row, size)) tile.infinite_or_nan |= std::uint64_t{1} << j;
  }
}

}  // namespace

void load_tile(const RowReader& keys, const RowReader& values, std::int64_t first,
               std::uint64_t wanted, KvTile& tile) {
  load_keys(keys, first, wanted, tile);
  load_values(values, first, wanted, tile);
}

}  // namespace attn::cpu
