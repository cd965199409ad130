// Keys and values as they lie in memory, and what a stored code means.
#pragma once

#include <cstdint>
#include <string_view>

#include "attn/view.h"

namespace attn {

enum class KvLayout : std::uint8_t {
  kVarlen,  // rows of all requests behind one another, found by kv_start_loc
  kPaged,   // blocks found by block_table; key and value apart
  kPacked,  // as kPaged, K then V in one row of head_size + head_size_v elements
};

// How codes become numbers. The stored type itself is the dtype of the views. i4 is vLLM's
// int4_per_token_head; neither its order of nibbles nor its rule for scales is written down: here
// the low nibble is the even element, codes are two's complement, and no write is defined.
enum class KvEncoding : std::uint8_t {
  kPlain,  // value = stored * k_scale (v_scale); absent scales are 1; any floating type, fp8 too
  kPerTokenHead,  // value = stored * k_scale_cache[block, slot, head]; i8, f8_e4m3fn or i4
  kNvfp4,         // value = e2m1 * k_block_scale[block, slot, head, dim / 16] * k_global_scale
  kFp8DsMla,      // MLA row of 656 bytes with inline scales; see MlaOp
};

std::string_view name(KvLayout layout);      // "paged", ... as case files spell it
std::string_view name(KvEncoding encoding);  // "plain", "per-token-head", "nvfp4", "fp8_ds_mla"

// K and V of all requests. `key` and `value` are always indexed in the order written here, whatever
// the memory order is (NHD, HND, packed, padded): only their strides differ. Memory that no live
// slot addresses may hold anything, NaN included, and is never read.
struct KvCacheView {
  KvLayout layout = KvLayout::kVarlen;
  KvEncoding encoding = KvEncoding::kPlain;

  TensorView key;    // paged: [num_blocks, block_size, num_kv_heads, head_size]; varlen: [rows,
                     // num_kv_heads, head_size]
  TensorView value;  // the same with head_size_v; of f4_e2m1 and i4 the last axis counts bytes (two
                     // elements)

  TensorView block_table;   // paged: i32 [num_reqs, width]; entries at or beyond ceil(seq_len /
                            // block_size) are never read
  TensorView kv_start_loc;  // varlen: i32 [num_reqs + 1], from 0 in steps of seq_lens

  TensorView k_scale,
      v_scale;  // kPlain: f32 [1], [num_kv_heads] or [num_reqs, num_kv_heads]; optional
  TensorView k_scale_cache,
      v_scale_cache;  // kPerTokenHead: f32 [num_blocks, block_size, num_kv_heads]
  TensorView k_block_scale,
      v_block_scale;  // kNvfp4: f8_e4m3fn [num_blocks, block_size, num_kv_heads, head_size / 16]
  TensorView k_global_scale, v_global_scale;  // kNvfp4: f32 [1]

  bool paged() const { return layout != KvLayout::kVarlen; }
  std::int64_t num_kv_heads() const { return key.shape[key.rank - 2]; }
  std::int64_t head_size() const { return key.shape[key.rank - 1] * elements_per_unit(key.dtype); }
  std::int64_t head_size_v() const {
    return value.shape[value.rank - 1] * elements_per_unit(value.dtype);
  }
  std::int64_t block_size() const { return key.shape[1]; }  // paged only
};

// Where one token of one request lies. Paged: block and slot in it; varlen: the row in `block`,
// slot 0.
struct KvSlot {
  std::int64_t block = 0;
  std::int64_t slot = 0;
};

// Slot of position k of request r: block_table[r, k / block_size] and k mod block_size. Not
// checked.
KvSlot kv_slot(const KvCacheView& kv, std::int64_t request, std::int64_t k);

// The definition of every encoding: one element, decoded exactly (one multiplication in double per
// scale). Readers in reference/ and optimized/ are written apart and tested against these.
double decode_key(const KvCacheView& kv, std::int64_t request, std::int64_t k, std::int64_t kv_head,
                  std::int64_t dim);
double decode_value(const KvCacheView& kv, std::int64_t request, std::int64_t k,
                    std::int64_t kv_head, std::int64_t dim);

}  // namespace attn
