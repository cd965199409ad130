// Checks of multi-head latent attention, dense and sparse, and of writes into its cache.
#include "attn/problem.h"
#include "core/checks.h"
#include "core/written_values.h"

namespace attn {
namespace {

using namespace checks;

// The only latent and rope sizes an fp8_ds_mla row can hold, and its bytes.
constexpr std::int64_t kDsMlaLatent = 512;
constexpr std::int64_t kDsMlaRope = 64;
constexpr std::int64_t kDsMlaRowBytes = 656;

void check_latent_sizes(std::int64_t latent, std::int64_t rope, KvEncoding encoding) {
  expect_at_least("kv_lora_rank", latent, 1);
  expect_at_least("qk_rope_head_dim", rope, 0);
  const bool fits = latent == kDsMlaLatent && rope == kDsMlaRope;
  if (encoding == KvEncoding::kFp8DsMla && !fits) {
    fail("fp8_ds_mla rows hold kv_lora_rank {} and qk_rope_head_dim {}, not {} and {}",
         kDsMlaLatent, kDsMlaRope, latent, rope);
  }
}

// [num_blocks, block_size, latent + rope], or [num_blocks, block_size, 656] bytes.
void check_latent_cache(const TensorView& cache, std::int64_t row, KvEncoding encoding) {
  switch (encoding) {
    case KvEncoding::kPlain:
      expect_real("kv_cache", cache);
      expect_shape("kv_cache", cache, {kAny, kAny, row});
      break;
    case KvEncoding::kFp8DsMla:
      expect_data("kv_cache", cache, DType::kU8, {kAny, kAny, kDsMlaRowBytes});
      break;
    default:
      fail("a latent cache is plain or fp8_ds_mla, not {}", name(encoding));
  }
  expect_at_least("block_size", cache.shape[1], 1);
}

void check_latent_scale(const TensorView& k_scale, KvEncoding encoding) {
  if (!k_scale.present()) return;
  if (encoding != KvEncoding::kPlain) {
    expect_absent("k_scale", k_scale, "fp8_ds_mla rows have scales of their own");
  }
  expect_tensor("k_scale", k_scale, DType::kF32, {1});
  expect_finite("k_scale", k_scale);
}

void check_projection(std::string_view what, const TensorView& weights, std::int64_t latent,
                      std::int64_t heads, std::int64_t size) {
  expect_real(what, weights);
  expect_shape(what, weights, {latent, heads, size});
}

void check_form(const MlaOp& op) {
  const std::int64_t heads = op.query.shape[1];
  if (op.form == MlaForm::kAbsorbed) {
    expect_shape("query", op.query, {kAny, kAny, op.kv_lora_rank + op.qk_rope_head_dim});
    expect_absent("w_uk", op.w_uk, "mla_form is absorbed");
    expect_absent("w_uv", op.w_uv, "mla_form is absorbed");
    return;
  }
  expect_at_least("qk_nope_head_dim", op.qk_nope_head_dim, 1);
  expect_shape("query", op.query, {kAny, kAny, op.qk_nope_head_dim + op.qk_rope_head_dim});
  check_projection("w_uk", op.w_uk, op.kv_lora_rank, heads, op.qk_nope_head_dim);
  check_projection("w_uv", op.w_uv, op.kv_lora_rank, heads, kAny);
  expect_at_least("head_size_v", op.w_uv.shape[2], 1);
}

// Everything but the block table.
void check_mla(const MlaOp& op) {
  expect_lengths(op.query_start_loc, op.seq_lens);
  expect_query(op.query, op.query_start_loc);
  check_latent_sizes(op.kv_lora_rank, op.qk_rope_head_dim, op.encoding);
  check_latent_cache(op.kv_cache, op.kv_lora_rank + op.qk_rope_head_dim, op.encoding);
  check_latent_scale(op.k_scale, op.encoding);
  check_form(op);
  expect_finite_number("scale", op.scale);
  expect_exec(op.exec);
}

void check_mla_block_table(const MlaOp& op) {
  expect_block_table(op.block_table, op.seq_lens, op.kv_cache.shape[0], op.kv_cache.shape[1]);
}

void check_indices_of_token(const MlaSparseOp& op, std::int64_t token, std::int64_t end) {
  const std::int64_t width = op.topk_indices.shape[1];
  std::int64_t kept = width;
  if (op.topk_lens.present()) {
    kept = int_at(op.topk_lens, token);
    if (kept < 0 || kept > width) {
      fail("topk_lens[{}] is {}, outside [0, {}]", token, kept, width);
    }
  }
  for (std::int64_t i = 0; i < kept; ++i) {
    const std::int64_t index = int_at(op.topk_indices, token, i);
    if (index < -1 || index >= end) {
      fail("topk_indices[{},{}] is {}, neither -1 nor in [0, {})", token, i, index, end);
    }
  }
}

}  // namespace

void validate(const MlaOp& op) {
  check_mla(op);
  check_mla_block_table(op);
}

void validate(const MlaSparseOp& op) {
  const MlaOp& mla = op.mla;
  check_mla(mla);
  if (mla.form != MlaForm::kAbsorbed) fail("mla_sparse needs mla_form absorbed");
  if (mla.exec.any()) fail("mla_sparse has no exec");
  const bool by_request = op.index_space == TopkIndexSpace::kRequest;
  if (by_request) check_mla_block_table(mla);
  const std::int64_t num_tokens = int_at(mla.query_start_loc, mla.seq_lens.shape[0]);
  expect_tensor("topk_indices", op.topk_indices, DType::kI32, {num_tokens, kAny});
  if (op.topk_lens.present()) expect_tensor("topk_lens", op.topk_lens, DType::kI32, {num_tokens});
  if (op.sinks.present()) {
    expect_real("sinks", op.sinks);
    expect_shape("sinks", op.sinks, {mla.query.shape[1]});
  }
  const std::int64_t num_slots = mla.kv_cache.shape[0] * mla.kv_cache.shape[1];
  for (std::int64_t r = 0; r < mla.seq_lens.shape[0]; ++r) {
    const std::int64_t end = by_request ? int_at(mla.seq_lens, r) : num_slots;
    for (std::int64_t t = int_at(mla.query_start_loc, r); t < int_at(mla.query_start_loc, r + 1);
         ++t) {
      check_indices_of_token(op, t, end);
    }
  }
}

void validate(const MlaCacheWriteOp& op) {
  expect_real("kv_c", op.kv_c);
  expect_shape("kv_c", op.kv_c, {kAny, kAny});
  expect_real("k_pe", op.k_pe);
  expect_shape("k_pe", op.k_pe, {op.kv_c.shape[0], kAny});
  const std::int64_t latent = op.kv_c.shape[1];
  const std::int64_t rope = op.k_pe.shape[1];
  check_latent_sizes(latent, rope, op.encoding);
  check_latent_cache(op.kv_cache, latent + rope, op.encoding);
  check_latent_scale(op.k_scale, op.encoding);
  if (op.k_scale.present()) expect_no_zero_scale("k_scale", op.k_scale);
  expect_slot_mapping(op.slot_mapping, op.kv_cache.shape[0] * op.kv_cache.shape[1]);
  expect_rows("kv_c", op.kv_c, op.slot_mapping);
  if (op.encoding != KvEncoding::kFp8DsMla) return;
  expect_dtype("kv_c", op.kv_c, DType::kBF16);
  expect_dtype("k_pe", op.k_pe, DType::kBF16);
  expect_finite_rows("kv_c", op.kv_c, op.slot_mapping);
}

}  // namespace attn
