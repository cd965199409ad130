// From memory to matrices of doubles: codes decoded exactly, pages and layouts gone.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>

#include "attn/operation.h"

namespace attn::reference {

// Row-major; columns beyond the head size are zero, up to a multiple of kLanes.
using RowMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Independent partial sums of a dot product.
inline constexpr int kLanes = 8;

// Zeros, [rows, columns] before padding.
RowMatrix zero_rows(std::size_t rows, std::int64_t columns);

// Rows of `positions` (keys of one request) of one KV head: [positions, head_size] and [positions,
// head_size_v]. Value = stored code times its scales.
RowMatrix gather_keys(const AttentionOp& op, std::int64_t request, std::int64_t kv_head,
                      std::span<const std::int64_t> positions);
RowMatrix gather_values(const AttentionOp& op, std::int64_t request, std::int64_t kv_head,
                        std::span<const std::int64_t> positions);

// One query row times q_scale (absent, [1] or [num_kv_heads]): [1, head_size]. `token` counts from
// the start of the batch.
RowMatrix gather_query(const TensorView& query, const TensorView& q_scale, std::int64_t token,
                       std::int64_t head, std::int64_t kv_head);

}  // namespace attn::reference
