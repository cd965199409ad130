#include "composite/image_ranges.h"

#include <algorithm>
#include <limits>

#include "core/contains.h"

namespace attn {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();

// What one request sees without its images.
struct PlainMask {
  bool causal = true;
  std::int64_t window_left = kUnbounded;   // that ranges reach across
  std::int64_t window_right = kUnbounded;  // without causality
  bool other_bounds = false;               // beyond these: then a range that holds a row counts
};

bool adds_keys(std::int64_t start, std::int64_t end, std::int64_t context_len, std::int64_t seq_len,
               const PlainMask& mask) {
  if (start < 0 || start >= end) return false;
  // Rows and keys of the request that lie in the range.
  const std::int64_t first_row = std::max(start, context_len);
  const std::int64_t last = std::min(end, seq_len - 1);
  if (first_row > last) return false;
  const std::int64_t window_right = mask.causal ? 0 : mask.window_right;
  return mask.other_bounds || last - first_row > window_right || last - start > mask.window_left;
}

PlainMask plain_mask(const MaskSpec& mask, std::int64_t request) {
  PlainMask plain;
  plain.causal =
      mask.causal_per_req.present() ? int_at(mask.causal_per_req, request) != 0 : mask.causal;
  if (mask.window_left != MaskSpec::kUnbounded && !mask.mm_prefix_clamp) {
    plain.window_left = mask.window_left;
  }
  if (mask.window_right != MaskSpec::kUnbounded) plain.window_right = mask.window_right;
  plain.other_bounds = mask.attention_chunk_size != 0;
  return plain;
}

// Of the layer of the group whose window hides most.
PlainMask plain_mask(const CommonAttentionMetadata& batch, std::int32_t row,
                     const BuilderArguments& group) {
  PlainMask plain;
  plain.causal =
      batch.causal_per_req ? (*batch.causal_per_req)[static_cast<std::size_t>(row)] : batch.causal;
  for (const LayerTraits& layer : group.model) {
    const bool mine = contains(group.layer_names, layer.name);
    if (!mine || !layer.sliding_window || !*layer.sliding_window) continue;
    const std::int64_t bound = **layer.sliding_window - 1;
    plain.window_right = std::min(plain.window_right, bound);
    if (layer.has_unclamped_window()) plain.window_left = std::min(plain.window_left, bound);
  }
  return plain;
}

}  // namespace

std::vector<std::int64_t> requests_with_image_masks(const AttentionOp& op) {
  std::vector<std::int64_t> requests;
  const TensorView& ranges = op.mask.mm_prefix_ranges;
  if (!ranges.present()) return requests;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    const PlainMask mask = plain_mask(op.mask, r);
    for (std::int64_t i = 0; i < ranges.shape[1]; ++i) {
      if (!adds_keys(int_at(ranges, r, i, 0), int_at(ranges, r, i, 1), op.context_len(r),
                     op.seq_len(r), mask)) {
        continue;
      }
      requests.push_back(r);
      break;
    }
  }
  return requests;
}

std::vector<std::int32_t> rows_with_image_masks(const CommonAttentionMetadata& batch,
                                                const BuilderArguments& group) {
  std::vector<std::int32_t> rows;
  if (!batch.mm_req_doc_ranges) return rows;
  for (const RowImages& images : *batch.mm_req_doc_ranges) {
    const PlainMask mask = plain_mask(batch, images.row, group);
    const std::int32_t seq_len = batch.seq_lens[static_cast<std::size_t>(images.row)];
    const std::int32_t context_len = seq_len - batch.query_len(images.row);
    const bool any =
        std::any_of(images.ranges.begin(), images.ranges.end(), [&](const ImageRange& range) {
          return adds_keys(range.start, range.end, context_len, seq_len, mask);
        });
    if (any) rows.push_back(images.row);
  }
  return rows;
}

}  // namespace attn
