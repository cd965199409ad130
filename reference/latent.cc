#include "reference/latent.h"

#include "reference/ds_mla_row.h"

namespace attn::reference {
namespace {

void read_ds_mla_row(const std::byte* row, double* to) {
  using Row = DsMlaRow;
  for (std::int64_t d = 0; d < Row::kLatent; ++d) {
    const double scale =
        decode(DType::kF32, load_code(DType::kF32, row + Row::scale_at(d / Row::kGroup)));
    to[d] = decode(DType::kF8E4M3FN, load_code(DType::kF8E4M3FN, row + d)) * scale;
  }
  for (std::int64_t d = 0; d < Row::kRope; ++d) {
    to[Row::kLatent + d] = decode(DType::kBF16, load_code(DType::kBF16, row + Row::rope_at(d)));
  }
}

}  // namespace

RowMatrix gather_latent(const MlaOp& op, std::span<const KvSlot> slots) {
  const std::int64_t size = op.kv_lora_rank + op.qk_rope_head_dim;
  const double scale = op.k_scale.present() ? value_at(op.k_scale, 0) : 1.0;
  RowMatrix rows = zero_rows(slots.size(), size);
  for (std::size_t i = 0; i < slots.size(); ++i) {
    double* to = rows.row(static_cast<Eigen::Index>(i)).data();
    if (op.encoding == KvEncoding::kFp8DsMla) {
      read_ds_mla_row(op.kv_cache.at(slots[i].block, slots[i].slot), to);
      continue;
    }
    for (std::int64_t d = 0; d < size; ++d) {
      to[d] = value_at(op.kv_cache, slots[i].block, slots[i].slot, d) * scale;
    }
  }
  return rows;
}

std::vector<KvSlot> latent_slots(const MlaOp& op, std::int64_t request,
                                 std::span<const std::int64_t> positions) {
  const std::int64_t block_size = op.kv_cache.shape[1];
  std::vector<KvSlot> slots;
  for (const std::int64_t k : positions) {
    slots.push_back({int_at(op.block_table, request, k / block_size), k % block_size});
  }
  return slots;
}

RowMatrix first_columns(const RowMatrix& rows, std::int64_t columns) {
  RowMatrix first = zero_rows(static_cast<std::size_t>(rows.rows()), columns);
  first.leftCols(columns) = rows.leftCols(columns);
  return first;
}

}  // namespace attn::reference
