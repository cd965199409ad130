#include <fmt/core.h>

#include "attn/error.h"
#include "attn/reference.h"
#include "reference/bias.h"
#include "reference/mask.h"

namespace attn {
namespace {

void require_index(std::string_view what, std::int64_t index, std::int64_t size) {
  if (index < 0 || index >= size) {
    throw Error(fmt::format("{} {} is outside [0, {})", what, index, size));
  }
}

}  // namespace

std::vector<KeyRange> visible_ranges(const AttentionOp& op, std::int64_t request, std::int64_t head,
                                     std::int64_t row) {
  require_index("request", request, op.num_reqs());
  require_index("head", head, op.num_heads());
  require_index("row", row, op.query_len(request));
  const reference::BaseMask mask(op.mask, request);
  const std::int64_t context_len = op.context_len(request);
  const reference::RowPosition at{request, row, context_len + row, context_len};
  std::vector<KeyRange> ranges;
  for (std::int64_t k = 0; k < op.seq_len(request); ++k) {
    const bool visible = mask.sees(at.q, k) &&
                         reference::attn_mask_allows(op.mask, request, head, row, k) &&
                         !reference::any_masks(reference::bias_terms(op.bias, at, head, k));
    if (!visible) continue;
    if (!ranges.empty() && ranges.back().end == k) {
      ++ranges.back().end;
    } else {
      ranges.push_back({k, k + 1});
    }
  }
  return ranges;
}

}  // namespace attn
