#include "reference/gather.h"

namespace attn::reference {
namespace {

// The tensors of one side of the cache.
struct CacheSide {
  const TensorView& data;
  const TensorView& scale;         // kPlain
  const TensorView& token_scale;   // kPerTokenHead
  const TensorView& block_scale;   // kNvfp4
  const TensorView& global_scale;  // kNvfp4
  std::int64_t head_size;
};

// A scale tensor of shape [1], [heads] or [requests, heads].
double scale_of(const TensorView& scale, std::int64_t request, std::int64_t head) {
  if (!scale.present()) return 1.0;
  if (scale.rank == 2) return value_at(scale, request, head);
  return value_at(scale, scale.shape[0] == 1 ? 0 : head);
}

// `count` elements in units that lie `stride` bytes apart, times `factor`. Of i4 a unit holds two,
// the even element in the low nibble.
void read_row(DType dtype, const std::byte* from, std::int64_t stride, std::int64_t count,
              double factor, double* to) {
  const std::int64_t per_unit = elements_per_unit(dtype);
  for (std::int64_t d = 0; d < count; ++d) {
    const std::uint64_t code = load_code(dtype, from + d / per_unit * stride);
    to[d] = decode(dtype, d % per_unit == 0 ? code : code >> 4) * factor;
  }
}

// NVFP4: two codes a byte, the even element in the low nibble; a scale for every 16 elements.
void read_nvfp4_row(const CacheSide& side, std::int64_t block, std::int64_t slot, std::int64_t head,
                    double* to) {
  const double global = value_at(side.global_scale, 0);
  for (std::int64_t d = 0; d < side.head_size; ++d) {
    const std::uint64_t byte = load_code(side.data.dtype, side.data.at(block, slot, head, d / 2));
    const std::uint64_t code = d % 2 == 0 ? byte & 0xF : byte >> 4;
    to[d] = decode(DType::kF4E2M1, code) * value_at(side.block_scale, block, slot, head, d / 16) *
            global;
  }
}

void read_paged_row(const AttentionOp& op, const CacheSide& side, std::int64_t request,
                    std::int64_t head, std::int64_t k, double* to) {
  const std::int64_t block_size = op.kv.key.shape[1];
  const std::int64_t block = int_at(op.kv.block_table, request, k / block_size);
  const std::int64_t slot = k % block_size;
  if (op.kv.encoding == KvEncoding::kNvfp4) return read_nvfp4_row(side, block, slot, head, to);
  const double factor = op.kv.encoding == KvEncoding::kPerTokenHead
                            ? value_at(side.token_scale, block, slot, head)
                            : scale_of(side.scale, request, head);
  read_row(side.data.dtype, side.data.at(block, slot, head), side.data.stride_bytes[3],
           side.head_size, factor, to);
}

RowMatrix gather_side(const AttentionOp& op, const CacheSide& side, std::int64_t request,
                      std::int64_t head, std::span<const std::int64_t> positions) {
  RowMatrix rows = zero_rows(positions.size(), side.head_size);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    double* to = rows.row(static_cast<Eigen::Index>(i)).data();
    if (op.kv.layout == KvLayout::kVarlen) {
      const std::int64_t row = int_at(op.kv.kv_start_loc, request) + positions[i];
      read_row(side.data.dtype, side.data.at(row, head), side.data.stride_bytes[2], side.head_size,
               scale_of(side.scale, request, head), to);
    } else {
      read_paged_row(op, side, request, head, positions[i], to);
    }
  }
  return rows;
}

}  // namespace

RowMatrix zero_rows(std::size_t rows, std::int64_t columns) {
  return RowMatrix::Zero(static_cast<Eigen::Index>(rows), (columns + kLanes - 1) / kLanes * kLanes);
}

RowMatrix gather_keys(const AttentionOp& op, std::int64_t request, std::int64_t kv_head,
                      std::span<const std::int64_t> positions) {
  const KvCacheView& kv = op.kv;
  const CacheSide side{kv.key,           kv.k_scale,        kv.k_scale_cache,
                       kv.k_block_scale, kv.k_global_scale, op.head_size()};
  return gather_side(op, side, request, kv_head, positions);
}

RowMatrix gather_values(const AttentionOp& op, std::int64_t request, std::int64_t kv_head,
                        std::span<const std::int64_t> positions) {
  const KvCacheView& kv = op.kv;
  const CacheSide side{kv.value,         kv.v_scale,        kv.v_scale_cache,
                       kv.v_block_scale, kv.v_global_scale, op.head_size_v()};
  return gather_side(op, side, request, kv_head, positions);
}

RowMatrix gather_query(const TensorView& query, const TensorView& q_scale, std::int64_t token,
                       std::int64_t head, std::int64_t kv_head) {
  const std::int64_t head_size = query.shape[2];
  RowMatrix row = zero_rows(1, head_size);
  read_row(query.dtype, query.at(token, head), query.stride_bytes[2], head_size,
           scale_of(q_scale, 0, kv_head), row.data());
  return row;
}

}  // namespace attn::reference
