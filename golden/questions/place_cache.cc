#include "golden/questions/place_cache.h"

#include <utility>

namespace attn::questions {
namespace {

using RowsOf = const HostTensor& (*)(const RequestRows&);

const HostTensor& keys(const RequestRows& rows) { return rows.key.codes; }
const HostTensor& values(const RequestRows& rows) { return rows.value.codes; }
const HostTensor& key_token_scales(const RequestRows& rows) { return rows.key.token_scale; }
const HostTensor& value_token_scales(const RequestRows& rows) { return rows.value.token_scale; }
const HostTensor& key_block_scales(const RequestRows& rows) { return rows.key.block_scale; }
const HostTensor& value_block_scales(const RequestRows& rows) { return rows.value.block_scale; }

bool is_hnd(CacheForm form) {
  return form == CacheForm::kPagedHnd || form == CacheForm::kPackedHnd;
}

bool is_packed(CacheForm form) {
  return form == CacheForm::kPackedNhd || form == CacheForm::kPackedHnd;
}

class Placement {
 public:
  Placement(const AttentionSetup& setup, const BlockPlan& plan,
            const std::vector<RequestRows>& rows, TensorStore& memory)
      : setup_(setup), plan_(plan), rows_(rows), memory_(memory) {}

  KvCacheView varlen() {
    KvCacheView kv;
    kv.layout = KvLayout::kVarlen;
    kv.kv_start_loc = memory_.keep(starts(seq_lens(setup_)));
    kv.key = memory_.keep(concatenated(keys, setup_.head_size));
    kv.value = memory_.keep(concatenated(values, head_size_v()));
    return kv;
  }

  KvCacheView paged() {
    KvCacheView kv;
    kv.encoding = setup_.encoding;
    kv.block_table = memory_.keep(plan_.table());
    const std::int64_t per_unit = elements_per_unit(setup_.kv_dtype);
    const std::int64_t key_units = setup_.head_size / per_unit;
    const std::int64_t value_units = head_size_v() / per_unit;
    const bool hnd = is_hnd(setup_.cache);
    if (is_packed(setup_.cache)) {
      kv.layout = KvLayout::kPacked;
      HostTensor both = unused_blocks(setup_.kv_dtype, hnd, key_units + value_units);
      copy_rows(keys, hnd, 0, both);
      copy_rows(values, hnd, key_units, both);
      const TensorView view = in_logical_order(std::move(both), hnd);
      kv.key = slice(view, 3, 0, key_units);
      kv.value = slice(view, 3, key_units, value_units);
    } else {
      kv.layout = KvLayout::kPaged;
      kv.key = blocks(keys, setup_.kv_dtype, hnd, key_units);
      kv.value = blocks(values, setup_.kv_dtype, hnd, value_units);
    }
    place_scales(kv);
    return kv;
  }

 private:
  std::int64_t head_size_v() const {
    return setup_.head_size_v != 0 ? setup_.head_size_v : setup_.head_size;
  }

  HostTensor concatenated(RowsOf rows_of, std::int64_t width) const {
    std::int64_t num_rows = 0;
    for (const RequestSetup& request : setup_.requests) num_rows += request.seq_len;
    HostTensor all(setup_.kv_dtype, {num_rows, setup_.num_kv_heads, width});
    std::int64_t at = 0;
    for (const RequestRows& request : rows_) {
      const HostTensor& rows = rows_of(request);
      copy_units(rows, 0, rows.num_units(), all, at);
      at += rows.num_units();
    }
    return all;
  }

  HostTensor unused_blocks(DType dtype, bool hnd, std::int64_t width) const {
    const std::int64_t nb = plan_.num_blocks();
    const std::int64_t bs = plan_.block_size();
    const std::int64_t heads = setup_.num_kv_heads;
    return filled(dtype,
                  hnd ? std::vector<std::int64_t>{nb, heads, bs, width}
                      : std::vector<std::int64_t>{nb, bs, heads, width},
                  setup_.fill);
  }

  // Every row of a slot goes to `offset` in that slot's row of `to`.
  void copy_rows(RowsOf rows_of, bool hnd, std::int64_t offset, HostTensor& to) const {
    const std::int64_t heads = setup_.num_kv_heads;
    const std::int64_t width = to.shape()[3];
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const HostTensor& rows = rows_of(rows_[r]);
      const std::int64_t units = rows.shape()[2];
      for (std::int64_t k = 0; k < rows.shape()[0]; ++k) {
        const KvSlot at = plan_.slot(static_cast<std::int64_t>(r), k);
        for (std::int64_t h = 0; h < heads; ++h) {
          const std::int64_t line = hnd ? (at.block * heads + h) * plan_.block_size() + at.slot
                                        : (at.block * plan_.block_size() + at.slot) * heads + h;
          copy_units(rows, (k * heads + h) * units, units, to, line * width + offset);
        }
      }
    }
  }

  // Kept and seen as [num_blocks, block_size, num_kv_heads, width].
  TensorView in_logical_order(HostTensor blocks, bool hnd) {
    const TensorView view = memory_.keep(std::move(blocks));
    return hnd ? swap_axes(view, 1, 2) : view;
  }

  TensorView blocks(RowsOf rows_of, DType dtype, bool hnd, std::int64_t width) {
    HostTensor placed = unused_blocks(dtype, hnd, width);
    copy_rows(rows_of, hnd, 0, placed);
    return in_logical_order(std::move(placed), hnd);
  }

  // Scales beside the codes keep the order [num_blocks, block_size, num_kv_heads].
  void place_scales(KvCacheView& kv) {
    if (kv.encoding == KvEncoding::kPerTokenHead) {
      kv.k_scale_cache = token_scales(key_token_scales);
      kv.v_scale_cache = token_scales(value_token_scales);
    }
    if (kv.encoding == KvEncoding::kNvfp4) {
      kv.k_block_scale = blocks(key_block_scales, DType::kF8E4M3FN, false, setup_.head_size / 16);
      kv.v_block_scale = blocks(value_block_scales, DType::kF8E4M3FN, false, head_size_v() / 16);
    }
  }

  TensorView token_scales(RowsOf rows_of) {
    HostTensor scales = filled(
        DType::kF32, {plan_.num_blocks(), plan_.block_size(), setup_.num_kv_heads}, setup_.fill);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      const HostTensor& rows = rows_of(rows_[r]);
      for (std::int64_t k = 0; k < rows.shape()[0]; ++k) {
        const KvSlot at = plan_.slot(static_cast<std::int64_t>(r), k);
        const std::int64_t line = at.block * plan_.block_size() + at.slot;
        copy_units(rows, k * setup_.num_kv_heads, setup_.num_kv_heads, scales,
                   line * setup_.num_kv_heads);
      }
    }
    return memory_.keep(std::move(scales));
  }

  const AttentionSetup& setup_;
  const BlockPlan& plan_;
  const std::vector<RequestRows>& rows_;
  TensorStore& memory_;
};

}  // namespace

KvCacheView place_cache(const AttentionSetup& setup, const BlockPlan& plan,
                        const std::vector<RequestRows>& rows, TensorStore& memory) {
  Placement placement(setup, plan, rows, memory);
  return setup.cache == CacheForm::kVarlen ? placement.varlen() : placement.paged();
}

}  // namespace attn::questions
