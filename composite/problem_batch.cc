#include <algorithm>
#include <limits>

#include "attn/executable_backend.h"

namespace attn {
namespace {

std::int32_t as_int(std::int64_t n) { return static_cast<std::int32_t>(n); }

std::vector<ImageRange> images_of(const MaskSpec& mask, std::int64_t request) {
  std::vector<ImageRange> images;
  if (!mask.mm_prefix_ranges.present()) return images;
  for (std::int64_t i = 0; i < mask.mm_prefix_ranges.shape[1]; ++i) {
    const std::int64_t start = int_at(mask.mm_prefix_ranges, request, i, 0);
    const std::int64_t end = int_at(mask.mm_prefix_ranges, request, i, 1);
    if (0 <= start && start < end) images.push_back({as_int(start), as_int(end)});
  }
  return images;
}

// Of position k: -1 before the first key, and without pages.
std::int64_t slot_of(const KvCacheView& kv, std::int64_t request, std::int64_t k) {
  if (!kv.paged() || k < 0) return -1;
  const KvSlot slot = kv_slot(kv, request, k);
  return slot.block * kv.block_size() + slot.slot;
}

// Collects requests of a problem as the rows of a batch.
class Rows {
 public:
  explicit Rows(const AttentionOp& op) : op_(op) {
    batch_.query_start_loc = {0};
    batch_.causal = op.mask.causal;
    batch_.seq_lens_cpu_upper_bound.emplace();
    batch_.is_prefilling.emplace();
    if (op.mask.causal_per_req.present()) batch_.causal_per_req.emplace();
    if (op.mask.rswa_prefix_lens.present()) batch_.rswa_prefix_lens.emplace();
    if (op.mask.mm_prefix_ranges.present()) batch_.mm_req_doc_ranges.emplace();
    if (op.kv.paged()) batch_.block_table.width = op.kv.block_table.shape[1];
  }

  void add(std::int64_t request) {
    const std::int32_t query_len = as_int(op_.query_len(request));
    const std::int32_t seq_len = as_int(op_.seq_len(request));
    batch_.query_start_loc.push_back(batch_.query_start_loc.back() + query_len);
    batch_.seq_lens.push_back(seq_len);
    batch_.max_query_len = std::max(batch_.max_query_len, query_len);
    batch_.max_seq_len = std::max(batch_.max_seq_len, seq_len);
    batch_.is_prefilling->push_back(query_len > 1 || (query_len == 1 && seq_len <= 1));
    for (std::int64_t row = 0; row < query_len; ++row) {
      batch_.slot_mapping.push_back(slot_of(op_.kv, request, op_.context_len(request) + row));
    }
    for (std::int64_t j = 0; j < batch_.block_table.width; ++j) {
      batch_.block_table.entries.push_back(as_int(int_at(op_.kv.block_table, request, j)));
    }
    add_mask(request);
    ++batch_.num_reqs;
  }

  CommonAttentionMetadata take() && {
    batch_.query_start_loc_cpu = batch_.query_start_loc;
    batch_.num_actual_tokens = batch_.query_start_loc.back();
    batch_.seq_lens_cpu_upper_bound = batch_.seq_lens;
    return std::move(batch_);
  }

 private:
  void add_mask(std::int64_t request) {
    const MaskSpec& mask = op_.mask;
    if (batch_.causal_per_req) {
      batch_.causal_per_req->push_back(int_at(mask.causal_per_req, request) != 0);
    }
    if (batch_.rswa_prefix_lens) {
      batch_.rswa_prefix_lens->push_back(as_int(int_at(mask.rswa_prefix_lens, request)));
    }
    if (std::vector<ImageRange> images = images_of(mask, request); !images.empty()) {
      batch_.mm_req_doc_ranges->push_back({batch_.num_reqs, std::move(images)});
    }
  }

  const AttentionOp& op_;
  CommonAttentionMetadata batch_;
};

}  // namespace

CommonAttentionMetadata batch_of(const AttentionOp& op) {
  Rows rows(op);
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) rows.add(r);
  return std::move(rows).take();
}

CommonAttentionMetadata batch_of_request(const AttentionOp& op, std::int64_t request) {
  Rows rows(op);
  rows.add(request);
  return std::move(rows).take();
}

BuilderArguments builder_arguments_of(const AttentionOp& op) {
  BuilderArguments arguments;
  if (op.kv.paged()) arguments.spec.block_size = static_cast<int>(op.kv.block_size());
  arguments.spec.num_kv_heads = static_cast<int>(op.num_kv_heads());
  arguments.spec.head_size = static_cast<int>(op.head_size());
  arguments.spec.dtype = op.kv.key.dtype;
  arguments.layer_names = {"layer"};
  LayerTraits layer{"layer", std::nullopt, op.mask.mm_prefix_clamp};
  if (op.mask.window_left != MaskSpec::kUnbounded) {
    constexpr std::int64_t kLargest = std::numeric_limits<int>::max() - 1;
    layer.sliding_window = static_cast<int>(std::min(op.mask.window_left, kLargest)) + 1;
  }
  arguments.model = {layer};
  return arguments;
}

}  // namespace attn
