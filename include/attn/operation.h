// The operations: one struct each, plain data, views without ownership.
//
// Index tensors (starts, lengths, block tables, ranges, indices, flags) and scales of a whole
// tensor, head or request lie in host memory, also for a device backend: validation and planning
// read them. All others are data and may lie on a device.
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "attn/kv_cache.h"
#include "attn/mask.h"
#include "attn/view.h"

namespace attn {

// A wished way of computing; the answer is the same. Each field partitions the keys of a request:
// two keys are in one part exactly when they agree in floor(k / kv_chunk), in k < common_prefix_len
// and in floor(k / dcp_interleave) mod dcp_size. num_splits n is kv_chunk = ceil(seq_len / n).
// Parts are merged in the order of their smallest key; a sink enters once, in the merge. 0 = not
// asked.
struct ExecSpec {
  std::int64_t num_splits = 0;
  std::int64_t kv_chunk = 0;  // excludes num_splits
  std::int64_t common_prefix_len = 0;
  bool has_common_prefix = false;  // 0 is a prefix that can be asked for
  std::int64_t dcp_size = 0;
  std::int64_t dcp_interleave = 0;  // 0 = not given = 1; needs dcp_size

  bool any() const {
    return num_splits != 0 || kv_chunk != 0 || has_common_prefix || dcp_size != 0;
  }
  bool operator==(const ExecSpec&) const = default;
};

// out = softmax(bias(cap(scale * q k^T)) masked, with sink) v, over a batch that may mix prefill,
// chunked prefill, decode and multi-token decode. Order: scale, soft cap c * tanh(s / c), biases,
// mask, sink. Query head h reads KV head floor(h / (num_heads / num_kv_heads)). A row that sees no
// key: out 0, lse -inf, or the sink when there is a finite one and lse_includes_sink.
struct AttentionOp {
  TensorView
      query;  // floating [>= num_tokens, num_heads, head_size]; rows beyond are padding, never read
  TensorView query_start_loc;  // i32 [num_reqs + 1], from 0
  TensorView seq_lens;         // i32 [num_reqs], context and query
  KvCacheView kv;
  double scale = 1.0;            // finite
  double logits_soft_cap = 0.0;  // >= 0, finite; 0 = none
  MaskSpec mask;
  BiasSpec bias;
  TensorView sinks;  // floating [num_heads]: one more softmax term e^sink without value; optional
  bool lse_includes_sink = true;
  TensorView q_scale;       // f32 [1] or [num_kv_heads], multiplies the query; optional
  TensorView output_scale;  // f32 [1] > 0: also answer out_codes; optional
  ExecSpec exec;

  std::int64_t num_reqs() const { return seq_lens.shape[0]; }
  std::int64_t num_tokens() const { return int_at(query_start_loc, num_reqs()); }
  std::int64_t num_heads() const { return query.shape[1]; }
  std::int64_t num_kv_heads() const { return kv.num_kv_heads(); }
  std::int64_t num_queries_per_kv() const { return num_heads() / num_kv_heads(); }
  std::int64_t head_size() const { return query.shape[2]; }
  std::int64_t head_size_v() const { return kv.head_size_v(); }
  std::int64_t query_start(std::int64_t request) const { return int_at(query_start_loc, request); }
  std::int64_t query_len(std::int64_t request) const {
    return query_start(request + 1) - query_start(request);
  }
  std::int64_t seq_len(std::int64_t request) const { return int_at(seq_lens, request); }
  std::int64_t context_len(std::int64_t request) const {
    return seq_len(request) - query_len(request);
  }  // < 0 when query_len > seq_len
};

// (1 - lambda_init) * norm(A0 v - lambda * A1 v) over neighbouring head pairs; no lse.
struct DifferentialOp {
  AttentionOp attention;  // varlen, num_heads and num_kv_heads even
  double lambda = 0.0;
  double lambda_init = 0.0;
  double eps = 0.0;
  TensorView norm_weight;  // [2 * head_size_v], optional: without it no normalisation
};

enum class MlaForm : std::uint8_t { kAbsorbed, kExpanded };

// Multi-head latent attention over rows latent ‖ rope. absorbed: query [tokens, heads, L + R], out
// [tokens, heads, L]; expanded: query [tokens, heads, P + R], w_uk [L, heads, P], w_uv [L, heads,
// head_size_v].
struct MlaOp {
  TensorView query;
  TensorView query_start_loc;  // i32 [num_reqs + 1]
  TensorView seq_lens;         // i32 [num_reqs]
  TensorView
      kv_cache;  // [num_blocks, block_size, L + R]; kFp8DsMla: u8 [num_blocks, block_size, 656]
  KvEncoding encoding = KvEncoding::kPlain;
  TensorView block_table;  // i32 [num_reqs, width]
  TensorView k_scale;      // f32 [1], optional
  double scale = 1.0;
  bool causal = true;
  MlaForm form = MlaForm::kAbsorbed;
  std::int64_t kv_lora_rank = 0;      // L
  std::int64_t qk_rope_head_dim = 0;  // R
  std::int64_t qk_nope_head_dim = 0;  // P, expanded
  TensorView w_uk, w_uv;              // expanded
  ExecSpec exec;
};

enum class TopkIndexSpace : std::uint8_t { kRequest, kSlot };

struct MlaSparseOp {
  MlaOp mla;                // absorbed, no exec; causal says nothing
  TensorView topk_indices;  // i32 [num_tokens, k]; -1 = none, duplicates count as often as listed
  TensorView topk_lens;     // i32 [num_tokens], keeps a prefix; optional
  TopkIndexSpace index_space = TopkIndexSpace::kRequest;
  TensorView sinks;  // [num_heads], optional
  bool lse_includes_sink = true;
};

// logits[t, n] = sum_h weights[t, h] * max(q[t, h] . k[n], 0), -inf outside [k_start, k_end).
struct IndexerOp {
  TensorView query;           // [num_tokens, num_heads, head_size]
  TensorView key;             // [num_keys, head_size]
  TensorView k_scale;         // f32 [num_keys] or [num_keys, 1], optional
  TensorView weights;         // [num_tokens, num_heads]
  TensorView k_start, k_end;  // i32 [num_tokens]
};

// Union of partial states; lse -inf or +inf marks an empty part, whose out is never read.
struct MergeStatesOp {
  TensorView out_parts;  // [num_parts, num_tokens, num_heads, head_size_v]
  TensorView lse_parts;  // [num_parts, num_heads, num_tokens]
  bool lse_base_2 = false;
};

struct CacheWriteOp {
  TensorView key, value;    // [n >= len, num_kv_heads, head_size]
  TensorView slot_mapping;  // i64 [len]; -1 = do not write
  KvCacheView cache;        // before the write; paged, no block_table
};

struct MlaCacheWriteOp {
  TensorView kv_c, k_pe;    // [n >= len, L], [n, R]
  TensorView slot_mapping;  // i64 [len]
  TensorView kv_cache;      // before the write, as in MlaOp
  KvEncoding encoding = KvEncoding::kPlain;
  TensorView k_scale;  // f32 [1], optional
};

using Operation = std::variant<AttentionOp, DifferentialOp, MlaOp, MlaSparseOp, IndexerOp,
                               MergeStatesOp, CacheWriteOp, MlaCacheWriteOp>;

enum class OpKind : std::uint8_t {
  kAttention,
  kDifferential,
  kMla,
  kMlaSparse,
  kIndexer,
  kMergeStates,
  kCacheWrite,
  kMlaCacheWrite
};

inline constexpr OpKind kAllOpKinds[] = {
    OpKind::kAttention, OpKind::kDifferential, OpKind::kMla,        OpKind::kMlaSparse,
    OpKind::kIndexer,   OpKind::kMergeStates,  OpKind::kCacheWrite, OpKind::kMlaCacheWrite};

std::string_view name(OpKind kind);  // "attention", "mla_sparse", ...

}  // namespace attn
