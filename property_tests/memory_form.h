// Where a problem's elements lie in memory, and what lies around them. Nothing here may change an
// answer.
#pragma once

#include <cstdint>

#include "attn/host_tensor.h"

namespace attn::property_tests {

enum class CacheForm : std::uint8_t { kVarlen, kPagedNHD, kPagedHND, kPackedNHD, kPackedHND };

inline bool is_packed(CacheForm form) {
  return form == CacheForm::kPackedNHD || form == CacheForm::kPackedHND;
}
inline bool is_hnd(CacheForm form) {
  return form == CacheForm::kPagedHND || form == CacheForm::kPackedHND;
}

// What memory holds that no live slot, row or column addresses.
enum class Fill : std::uint8_t { kZero, kNaN, kPlusInfinity, kMinusInfinity, kLargest };

struct MemoryForm {
  CacheForm cache = CacheForm::kVarlen;
  int block_size = 1;
  std::uint64_t block_order = 0;  // seed of the order of physical blocks; 0: as requests come
  int spare_blocks = 0;           // blocks that belong to nobody
  int table_padding = 0;          // unused columns of the block table
  int row_padding = 0;            // unused rows of the query
  int dim_padding = 0;            // unused elements behind each row of query, key and value
  int column_padding = 0;         // unused columns of attn_mask and attn_bias
  Fill fill = Fill::kZero;        // other than kZero: unused table entries are 2147480000

  bool operator==(const MemoryForm&) const = default;
};

// The code that stands for `fill` in a tensor of `dtype`.
std::uint64_t fill_code(Fill fill, DType dtype);

// A tensor full of it.
HostTensor filled(DType dtype, std::vector<std::int64_t> shape, Fill fill);

}  // namespace attn::property_tests
