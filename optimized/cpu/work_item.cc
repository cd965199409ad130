#include "optimized/cpu/work_item.h"

#include <algorithm>
#include <memory>

#include "optimized/cpu/answer.h"
#include "optimized/cpu/key_parts.h"
#include "optimized/cpu/row_terms.h"
#include "optimized/cpu/widen.h"

namespace attn::cpu {
namespace {

std::int64_t tile_of(std::int64_t k) { return k - k % kTileKeys; }

class ItemWorker {
 public:
  ItemWorker(const AttentionOp& op, const WorkItem& item, Scratch& scratch)
      : op_(op),
        item_(item),
        scratch_(scratch),
        heads_(op.num_queries_per_kv()),
        seq_len_(op.seq_len(item.request)),
        key_rows_(op.kv, KvSide::kKey, item.request, item.kv_head),
        value_rows_(op.kv, KvSide::kValue, item.request, item.kv_head) {}

  void answer(const ExecSpec& exec, const Outputs& outputs) {
    load_query();
    find_visible();
    clear(scratch_.total, num_rows());
    const KeyParts parts(exec, seq_len_);
    bool first = true;
    for (std::int64_t k = next_visible(0); k != RowKeys::kNone;) {
      const std::int64_t end = parts.end_of(k);
      if (!first) clear(scratch_.part, num_rows());
      answer_part(k, end, first ? scratch_.total : scratch_.part);
      if (!first) merge(scratch_.total, scratch_.part, num_rows());
      first = false;
      k = next_visible(end);
    }
    write(outputs);
  }

 private:
  std::int64_t num_rows() const { return item_.num_tokens * heads_; }
  std::int64_t head_of(std::int64_t h) const { return item_.kv_head * heads_ + h; }
  std::int64_t token_of(std::int64_t t) const {
    return op_.query_start(item_.request) + item_.first_row + t;
  }

  void load_query() {
    const std::int64_t size = op_.head_size();
    const float scale = tensor_scale(op_.q_scale, item_.request, item_.kv_head);
    for (std::int64_t t = 0; t < item_.num_tokens; ++t) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        float* row = scratch_.query + (t * heads_ + h) * size;
        widen(op_.query.dtype, op_.query.at(token_of(t), head_of(h)), op_.query.stride_bytes[2],
              size, row);
        if (scale == 1.0f) continue;
        for (std::int64_t d = 0; d < size; ++d) row[d] *= scale;
      }
    }
  }

  void find_visible() {
    const BaseMask mask(op_.mask, item_.request, seq_len_);
    const std::int64_t capacity = BaseMask::max_intervals(op_.mask);
    const std::int64_t position = op_.context_len(item_.request) + item_.first_row;
    for (std::int64_t t = 0; t < item_.num_tokens; ++t) {
      std::construct_at(scratch_.row_keys + t,
                        mask.row(position + t, scratch_.intervals + t * capacity));
    }
  }

  // The first key at or after `k` that any row may see.
  std::int64_t next_visible(std::int64_t k) {
    std::int64_t next = RowKeys::kNone;
    for (std::int64_t t = 0; t < item_.num_tokens; ++t) {
      next = std::min(next, scratch_.row_keys[t].next(k));
    }
    return next;
  }

  // Keys [begin, end): one part, or its share of the tiles it cuts.
  void answer_part(std::int64_t begin, std::int64_t end, const SoftmaxStates& states) {
    for (std::int64_t k = begin; k < end;) {
      const std::int64_t first = tile_of(k);
      const std::uint64_t in_part = range_bits(first, begin, end);
      std::uint64_t wanted = 0;
      for (std::int64_t t = 0; t < item_.num_tokens; ++t) {
        scratch_.visible[t] = scratch_.row_keys[t].bits(first) & in_part;
        wanted |= scratch_.visible[t];
      }
      load_tile(key_rows_, value_rows_, first, wanted, scratch_.tile);
      for (std::int64_t t = 0; t < item_.num_tokens; ++t) {
        if (scratch_.visible[t] != 0) answer_token(t, first, states);
      }
      k = next_visible(std::min(first + kTileKeys, end));
    }
  }

  void answer_token(std::int64_t t, std::int64_t first, const SoftmaxStates& states) {
    for (std::int64_t h = 0; h < heads_; ++h) {
      const std::int64_t row = t * heads_ + h;
      float scores[kTileKeys];
      dot_tile(scratch_.query + row * op_.head_size(), op_.head_size(), scratch_.tile.keys, scores);
      const RowTerms terms(op_, item_.request, item_.first_row + t, head_of(h));
      const std::uint64_t keys = terms.finish(first, scratch_.visible[t], scores);
      if (keys != 0) add_tile(states, row, keys, scores, scratch_.tile, scratch_.tile_acc);
    }
  }

  void write(const Outputs& outputs) const {
    const AnswerWriter writer(op_, outputs);
    for (std::int64_t t = 0; t < item_.num_tokens; ++t) {
      for (std::int64_t h = 0; h < heads_; ++h) {
        writer.write(scratch_.total, t * heads_ + h, token_of(t), head_of(h));
      }
    }
  }

  const AttentionOp& op_;
  const WorkItem& item_;
  Scratch& scratch_;
  std::int64_t heads_;
  std::int64_t seq_len_;
  RowReader key_rows_;
  RowReader value_rows_;
};

}  // namespace

void answer_item(const AttentionOp& op, const ExecSpec& exec, const WorkItem& item,
                 const Outputs& outputs, Scratch& scratch) {
  ItemWorker(op, item, scratch).answer(exec, outputs);
}

}  // namespace attn::cpu
