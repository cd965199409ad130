#include <cmath>
#include <optional>
#include <utility>

#include "core/special_values.h"
#include "golden/questions/draw_scores.h"
#include "golden/questions/needle.h"
#include "golden/questions/place_cache.h"
#include "golden/questions/setup.h"
#include "golden/questions/visible.h"

namespace attn::questions {
namespace {

// Correctly rounded: a double quotient could be rounded twice.
double default_scale(std::int64_t head_size) {
  return static_cast<float>(1.0L / std::sqrt(static_cast<long double>(head_size)));
}

AttentionSetup completed(AttentionSetup setup) {
  if (setup.head_size_v == 0) setup.head_size_v = setup.head_size;
  if (setup.scale == 0.0) setup.scale = default_scale(setup.head_size);
  for (std::size_t r = 0; r < setup.requests.size(); ++r) {
    std::int64_t& drawn_as = setup.requests[r].drawn_as;
    if (drawn_as < 0) drawn_as = static_cast<std::int64_t>(r);
  }
  if (setup.source.family == Family::kPoisoned) setup.fill = drawn_fill(setup.source);
  if (setup.source.family == Family::kPermutedBlocks) setup.blocks.permuted = true;
  if (setup.fill != Fill::kZero || setup.blocks.permuted) setup.blocks.unused_tail = true;
  return setup;
}

class AttentionDrawer {
 public:
  explicit AttentionDrawer(const AttentionSetup& setup)
      : setup_(completed(setup)),
        values_(setup_.source, setup_.scale, setup_.head_size_v),
        plan_(seq_lens(setup_), setup_.blocks, setup_.source.seed) {}

  DrawnAttention draw() && {
    draw_lengths();
    AttentionOp& op = drawn_.op;
    op.query = drawn_.memory.keep(draw_query());
    op.scale = setup_.scale;
    op.logits_soft_cap = setup_.soft_cap;
    op.mask = draw_mask(setup_, drawn_.memory);
    op.bias = draw_bias(setup_, drawn_.memory);
    op.sinks = draw_sinks(setup_, drawn_.memory);
    op.lse_includes_sink = setup_.lse_includes_sink;
    op.exec = setup_.exec;
    const auto num_reqs = static_cast<std::int64_t>(setup_.requests.size());
    for (std::int64_t r = 0; r < num_reqs; ++r) {
      needles_.push_back(find_needle(op, setup_.source, r, request(r).drawn_as));
    }
    std::vector<RequestRows> rows;
    for (std::int64_t r = 0; r < num_reqs; ++r) rows.push_back(draw_rows(r));
    op.kv = place_cache(setup_, plan_, rows, drawn_.memory);
    draw_scale_tensors();
    return std::move(drawn_);
  }

 private:
  const RequestSetup& request(std::int64_t r) const {
    return setup_.requests[static_cast<std::size_t>(r)];
  }

  void draw_lengths() {
    drawn_.op.query_start_loc = drawn_.memory.keep(starts(query_lens(setup_)));
    drawn_.op.seq_lens = drawn_.memory.keep(int_tensor(seq_lens(setup_)));
  }

  HostTensor draw_query() const {
    std::vector<Place> rows;  // head and dim left open
    for (const RequestSetup& request : setup_.requests) {
      for (std::int64_t i = 0; i < request.query_len; ++i) {
        rows.push_back({request.drawn_as, request.seq_len - request.query_len + i});
      }
    }
    const auto num_tokens = static_cast<std::int64_t>(rows.size());
    return drawn(setup_.query_dtype,
                 {num_tokens + setup_.padding_rows, setup_.num_heads, setup_.head_size},
                 [&](const std::vector<std::int64_t>& index) {
                   if (index[0] >= num_tokens) return kNaN;
                   Place at = rows[static_cast<std::size_t>(index[0])];
                   at.head = index[1];
                   at.dim = index[2];
                   return values_.query(at, setup_.query_dtype);
                 });
  }

  // Whose keys the key at k is: a request's own, or of a shared block the lowest one's.
  std::int64_t owner(std::int64_t r, std::int64_t k) const {
    return setup_.cache == CacheForm::kVarlen ? r : plan_.owner(r, k);
  }

  RequestRows draw_rows(std::int64_t r) const {
    CacheSide side;
    side.seq_len = request(r).seq_len;
    side.num_kv_heads = setup_.num_kv_heads;
    side.dtype = setup_.kv_dtype;
    side.encoding = setup_.encoding;
    side.request_of = [this, r](std::int64_t k) { return request(owner(r, k)).drawn_as; };
    side.is_needle = [this, r](std::int64_t k) {
      const std::optional<std::int64_t>& needle = needles_[static_cast<std::size_t>(owner(r, k))];
      return needle == k;
    };
    RequestRows rows;
    side.tensor = RandomTensor::kKey;
    side.head_size = setup_.head_size;
    rows.key = draw_cache_rows(setup_.source, values_, side);
    side.tensor = RandomTensor::kValue;
    side.head_size = setup_.head_size_v;
    rows.value = draw_cache_rows(setup_.source, values_, side);
    if (setup_.fill_hidden) fill_hidden_rows(r, rows);
    return rows;
  }

  bool is_seen(std::int64_t r, std::int64_t k) const {
    for (std::int64_t head = 0; head < setup_.num_heads; ++head) {
      for (std::int64_t row = 0; row < request(r).query_len; ++row) {
        if (sees(drawn_.op, r, head, row, k)) return true;
      }
    }
    return false;
  }

  void fill_hidden_rows(std::int64_t r, RequestRows& rows) const {
    for (std::int64_t k = 0; k < request(r).seq_len; ++k) {
      if (is_seen(r, k)) continue;
      for (HostTensor* codes : {&rows.key.codes, &rows.value.codes}) {
        const std::int64_t units = codes->shape()[1] * codes->shape()[2];
        for (std::int64_t i = 0; i < units; ++i) {
          codes->set_code(k * units + i, fill_code(setup_.fill, codes->dtype()));
        }
      }
    }
  }

  TensorView scale_tensor(Scales scales, RandomTensor tensor) {
    const auto num_reqs = static_cast<std::int64_t>(setup_.requests.size());
    switch (scales) {
      case Scales::kNone:
        break;
      case Scales::kOne:
        return drawn_.memory.keep(drawn_scale(setup_.source, tensor));
      case Scales::kPerHead:
        return drawn_.memory.keep(drawn_scale_per_head(setup_.source, tensor, setup_.num_kv_heads));
      case Scales::kPerRequestHead:
        return drawn_.memory.keep(
            drawn_scale_per_request_head(setup_.source, tensor, num_reqs, setup_.num_kv_heads));
    }
    return {};
  }

  void draw_scale_tensors() {
    AttentionOp& op = drawn_.op;
    op.kv.k_scale = scale_tensor(setup_.kv_scales, RandomTensor::kKScale);
    op.kv.v_scale = scale_tensor(setup_.kv_scales, RandomTensor::kVScale);
    op.q_scale = scale_tensor(setup_.q_scale, RandomTensor::kQScale);
    if (setup_.encoding == KvEncoding::kNvfp4) {
      op.kv.k_global_scale = scale_tensor(Scales::kOne, RandomTensor::kKScale);
      op.kv.v_global_scale = scale_tensor(Scales::kOne, RandomTensor::kVScale);
    }
    if (setup_.output_scale) {
      const Words words = words_at(setup_.source, RandomTensor::kOutputScale, {});
      op.output_scale =
          drawn_.memory.keep(HostTensor(DType::kF32, {1}, {std::ldexp(random_scale(words), -8)}));
    }
  }

  AttentionSetup setup_;
  FamilyValues values_;
  BlockPlan plan_;
  std::vector<std::optional<std::int64_t>> needles_;  // of each request
  DrawnAttention drawn_;
};

}  // namespace

DrawnAttention draw_attention(const AttentionSetup& setup) { return AttentionDrawer(setup).draw(); }

}  // namespace attn::questions
