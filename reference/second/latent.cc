// Multi-head latent attention. Keys are the outer loop of the dense form: each is read and, when
// expanded, projected once a head, and handed to every row that sees it.
#include <algorithm>
#include <vector>

#include "reference/second/operations.h"
#include "reference/second/row_place.h"
#include "reference/second/row_softmax.h"
#include "reference/second/stored_row.h"

namespace attn::second {
namespace {

// A row of fp8_ds_mla, in bytes: 512 codes, 4 scales of 128 codes each, 64 rope elements of 2.
constexpr std::int64_t kDsMlaScales = 512;
constexpr std::int64_t kDsMlaCodesPerScale = 128;
constexpr std::int64_t kDsMlaRope = 528;

double little_endian(DType type, const TensorView& rows, const KvSlot& at, std::int64_t byte) {
  std::uint64_t code = 0;
  for (std::int64_t i = unit_bytes(type) - 1; i >= 0; --i) {
    code = code << 8 | load_code(DType::kU8, rows.at(at.block, at.slot, byte + i));
  }
  return decode(type, code);
}

long double latent_element(const MlaOp& op, const KvSlot& at, std::int64_t l) {
  if (op.encoding == KvEncoding::kFp8DsMla) {
    const std::int64_t scale = kDsMlaScales + 4 * (l / kDsMlaCodesPerScale);
    return static_cast<long double>(little_endian(DType::kF8E4M3FN, op.kv_cache, at, l)) *
           little_endian(DType::kF32, op.kv_cache, at, scale);
  }
  const long double scale = op.k_scale.present() ? value_at(op.k_scale, 0) : 1.0;
  return value_at(op.kv_cache, at.block, at.slot, l) * scale;
}

long double rope_element(const MlaOp& op, const KvSlot& at, std::int64_t d) {
  if (op.encoding == KvEncoding::kFp8DsMla) {
    return little_endian(DType::kBF16, op.kv_cache, at, kDsMlaRope + 2 * d);
  }
  return latent_element(op, at, op.kv_lora_rank + d);  // one row, one scale
}

// Key and value of one head as the softmax takes them.
struct LatentKey {
  std::vector<long double> key;
  std::vector<long double> value;
};

// latent * weights[:, head, :]
std::vector<long double> projected(const std::vector<long double>& latent,
                                   const TensorView& weights, std::int64_t head) {
  std::vector<long double> to(static_cast<std::size_t>(weights.shape[2]), 0.0L);
  for (std::size_t l = 0; l < latent.size(); ++l) {
    for (std::size_t d = 0; d < to.size(); ++d) to[d] += latent[l] * value_at(weights, l, head, d);
  }
  return to;
}

LatentKey latent_key(const MlaOp& op, const KvSlot& at, std::int64_t head) {
  std::vector<long double> latent;
  for (std::int64_t l = 0; l < op.kv_lora_rank; ++l) latent.push_back(latent_element(op, at, l));
  LatentKey made = op.form == MlaForm::kExpanded ? LatentKey{projected(latent, op.w_uk, head),
                                                             projected(latent, op.w_uv, head)}
                                                 : LatentKey{latent, latent};
  for (std::int64_t d = 0; d < op.qk_rope_head_dim; ++d) {
    made.key.push_back(rope_element(op, at, d));
  }
  return made;
}

void add_key(const MlaOp& op, std::int64_t token, std::int64_t head, const LatentKey& key,
             RowSoftmax& softmax) {
  long double dot = 0.0L;
  for (std::size_t d = 0; d < key.key.size(); ++d) {
    dot += value_at(op.query, token, head, d) * key.key[d];
  }
  softmax.add(op.scale * dot,
              [&](std::int64_t j) { return key.value[static_cast<std::size_t>(j)]; });
}

KvSlot slot_of_position(const MlaOp& op, std::int64_t request, std::int64_t k) {
  const std::int64_t block_size = op.kv_cache.shape[1];
  return {int_at(op.block_table, request, k / block_size), k % block_size};
}

KvSlot slot_of_index(const MlaSparseOp& op, std::int64_t request, std::int64_t index) {
  if (op.index_space == TopkIndexSpace::kRequest) return slot_of_position(op.mla, request, index);
  const std::int64_t block_size = op.mla.kv_cache.shape[1];
  return {index / block_size, index % block_size};
}

void mla_head(const MlaOp& op, const Outputs& outputs, std::int64_t request, std::int64_t head) {
  const std::int64_t first = int_at(op.query_start_loc, request);
  const std::int64_t query_len = int_at(op.query_start_loc, request + 1) - first;
  const std::int64_t seq_len = int_at(op.seq_lens, request);
  if (query_len == 0) return;
  const std::int64_t width = op.form == MlaForm::kExpanded ? op.w_uv.shape[2] : op.kv_lora_rank;
  std::vector<RowSoftmax> rows(static_cast<std::size_t>(query_len), RowSoftmax(width));
  for (std::int64_t k = 0; k < seq_len; ++k) {
    const LatentKey key = latent_key(op, slot_of_position(op, request, k), head);
    // Row i stands at seq_len - query_len + i; a causal row before key k does not see it.
    const std::int64_t earliest = op.causal ? k - (seq_len - query_len) : 0;
    for (std::int64_t i = std::max<std::int64_t>(earliest, 0); i < query_len; ++i) {
      add_key(op, first + i, head, key, rows[static_cast<std::size_t>(i)]);
    }
  }
  for (std::int64_t i = 0; i < query_len; ++i) {
    store_row(outputs, rows[static_cast<std::size_t>(i)].answer(), first + i, head);
  }
}

RowAnswer sparse_row(const MlaSparseOp& op, std::int64_t request, std::int64_t token,
                     std::int64_t head) {
  RowSoftmax softmax(op.mla.kv_lora_rank);
  const std::int64_t kept =
      op.topk_lens.present() ? int_at(op.topk_lens, token) : op.topk_indices.shape[1];
  for (std::int64_t i = 0; i < kept; ++i) {
    const std::int64_t index = int_at(op.topk_indices, token, i);
    if (index < 0) continue;
    add_key(op.mla, token, head, latent_key(op.mla, slot_of_index(op, request, index), head),
            softmax);
  }
  return op.sinks.present() ? softmax.answer(value_at(op.sinks, head), op.lse_includes_sink)
                            : softmax.answer();
}

}  // namespace

void mla(const MlaOp& op, const Outputs& outputs) {
  for (std::int64_t r = 0; r < op.seq_lens.shape[0]; ++r) {
    for (std::int64_t h = 0; h < op.query.shape[1]; ++h) mla_head(op, outputs, r, h);
  }
}

void mla_sparse(const MlaSparseOp& op, const Outputs& outputs) {
  const TensorView& starts = op.mla.query_start_loc;
  for (std::int64_t r = 0; r < op.mla.seq_lens.shape[0]; ++r) {
    for (std::int64_t t = int_at(starts, r); t < int_at(starts, r + 1); ++t) {
      for (std::int64_t h = 0; h < op.mla.query.shape[1]; ++h) {
        store_row(outputs, sparse_row(op, r, t, h), t, h);
      }
    }
  }
}

}  // namespace attn::second
