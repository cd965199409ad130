#include "attn/local_batches.h"

#include <fmt/core.h>

#include <algorithm>

#include "attn/batch_rewrite.h"
#include "attn/error.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

constexpr std::int64_t kMaxEntries = std::int64_t{1} << 28;  // of a local block table

}  // namespace

class LocalBatchMaker {
 public:
  LocalBatchMaker(const CommonAttentionMetadata& batch, std::int32_t chunk_size,
                  std::int32_t block_size, Derivation derivation)
      : batch_(batch), block_size_(block_size), chunk_size_(chunk_size), derivation_(derivation) {
    blocks_.num_rows_ = batch.num_reqs;
    blocks_.width_ = chunk_size / block_size;
  }

  LocalBatch make() && {
    local_.query_start_loc = {0};
    local_.seq_lens_cpu_upper_bound.emplace();
    if (derivation_ == Derivation::kFaithful) expect_chunked_fields();
    for (std::int32_t row = 0; row < batch_.num_reqs; ++row) add_row(row);
    if (derivation_ == Derivation::kFaithful) keep_flags();
    local_.query_start_loc_cpu = local_.query_start_loc;
    local_.seq_lens_cpu_upper_bound = local_.seq_lens;
    local_.num_reqs = static_cast<std::int32_t>(local_.seq_lens.size());
    local_.num_actual_tokens = batch_.num_actual_tokens;
    local_.slot_mapping = batch_.slot_mapping;
    local_.block_table = blocks_.remap(batch_.block_table);
    return {std::move(local_), std::move(blocks_)};
  }

 private:
  void refuse(bool present, const char* field) const {
    if (present) throw Error(fmt::format("{} has no meaning for chunks of a row", field));
  }

  void expect_chunked_fields() const {
    refuse(batch_.encoder_seq_lens || batch_.encoder_seq_lens_cpu, "encoder_seq_lens");
    refuse(batch_.dcp_local_seq_lens || batch_.dcp_local_seq_lens_cpu_upper_bound,
           "dcp_local_seq_lens");
    refuse(batch_.rswa_prefix_lens.has_value(), "rswa_prefix_lens");
  }

  void keep_flags() {
    local_.causal = batch_.causal;
    if (batch_.causal_per_req) local_.causal_per_req = std::move(flags_);
    if (batch_.is_prefilling) local_.is_prefilling = std::move(prefilling_);
    if (batch_.req_idx) local_.req_idx = std::move(req_idx_);
    if (batch_.mm_req_doc_ranges) local_.mm_req_doc_ranges = std::move(images_);
  }

  void add_row(std::int32_t row) {
    const std::int32_t seq_len = batch_.seq_lens[static_cast<std::size_t>(row)];
    const std::int32_t query_len = batch_.query_len(row);
    if (seq_len < 1 || query_len > seq_len) {
      throw Error(fmt::format("seq_lens[{}] is {}, must be at least 1 and the query length, {}",
                              row, seq_len, query_len));
    }
    for (const LocalPiece& piece : local_pieces(query_len, seq_len, chunk_size_)) {
      add_piece(row, piece);
    }
  }

  void add_piece(std::int32_t row, const LocalPiece& piece) {
    const auto query_len = static_cast<std::int32_t>(piece.query_len);
    const auto seq_len = static_cast<std::int32_t>(piece.seq_len);
    add_flags(row, piece);
    local_.query_start_loc.push_back(local_.query_start_loc.back() + query_len);
    local_.seq_lens.push_back(seq_len);
    local_.max_query_len = std::max(local_.max_query_len, query_len);
    local_.max_seq_len = std::max(local_.max_seq_len, seq_len);
    blocks_.virtual_rows_.push_back({row, piece.first_key / block_size_});
  }

  void add_flags(std::int32_t row, const LocalPiece& piece) {
    const auto r = static_cast<std::size_t>(row);
    if (derivation_ == Derivation::kVllm) return;
    if (batch_.causal_per_req) flags_.push_back((*batch_.causal_per_req)[r]);
    if (batch_.is_prefilling) prefilling_.push_back((*batch_.is_prefilling)[r]);
    if (batch_.req_idx) req_idx_.push_back((*batch_.req_idx)[r]);
    if (!batch_.mm_req_doc_ranges) return;
    RowImages images{static_cast<std::int32_t>(local_.seq_lens.size()), {}};
    for (const RowImages& one : *batch_.mm_req_doc_ranges) {
      if (one.row == row) add_ranges(one, piece, images.ranges);
    }
    if (!images.ranges.empty()) images_.push_back(std::move(images));
  }

  // Ranges that show query tokens of the piece something, at local positions.
  void add_ranges(const RowImages& from, const LocalPiece& piece,
                  std::vector<ImageRange>& to) const {
    const std::int64_t last_key = batch_.seq_lens[static_cast<std::size_t>(from.row)] - 1;
    const std::int64_t past = piece.first_key + piece.seq_len;  // also of the query tokens
    for (const ImageRange& range : from.ranges) {
      const std::int64_t end = std::min<std::int64_t>(range.end, last_key);
      const bool touched = range.start < past && end >= past - piece.query_len;
      if (range.start >= end || piece.query_len == 0 || !touched) continue;
      if (range.start < piece.first_key || end >= past) {
        throw Error(fmt::format(
            "mm_req_doc_ranges of row {} holds [{}, {}], which is not within the chunk [{}, {}) of "
            "its query tokens",
            from.row, range.start, range.end, piece.first_key, piece.first_key + chunk_size_));
      }
      to.push_back({static_cast<std::int32_t>(range.start - piece.first_key),
                    static_cast<std::int32_t>(end - piece.first_key)});
    }
  }

  const CommonAttentionMetadata& batch_;
  std::int32_t block_size_;
  std::int32_t chunk_size_;
  Derivation derivation_;
  CommonAttentionMetadata local_;
  std::vector<bool> flags_;  // causal_per_req of the virtual rows
  std::vector<bool> prefilling_;
  std::vector<std::int32_t> req_idx_;
  std::vector<RowImages> images_;
  LocalBlocks blocks_;
};

BlockTable LocalBlocks::remap(const BlockTable& table) const {
  if (static_cast<std::int64_t>(table.entries.size()) != num_rows_ * table.width) {
    throw Error(fmt::format("block_table has {} entries in {} columns, must have {} rows",
                            table.entries.size(), table.width, num_rows_));
  }
  if (table.width < 1 && num_rows_ > 0) throw Error("block_table has no columns");
  const auto num_virtual_rows = static_cast<std::int64_t>(virtual_rows_.size());
  if (width_ > kMaxEntries / std::max<std::int64_t>(num_virtual_rows, 1)) {
    throw Error(fmt::format("{} virtual rows of {} blocks are too many", num_virtual_rows, width_));
  }
  BlockTable local{width_, {}};
  local.entries.reserve(virtual_rows_.size() * static_cast<std::size_t>(width_));
  for (const VirtualRow& virtual_row : virtual_rows_) {
    const std::span<const std::int32_t> row = table.row(virtual_row.row);
    for (std::int64_t j = 0; j < width_; ++j) {
      const std::int64_t column = std::min(virtual_row.first_column + j, table.width - 1);
      local.entries.push_back(row[static_cast<std::size_t>(column)]);
    }
  }
  return local;
}

LocalBatch make_local_batch(const CommonAttentionMetadata& batch, std::int32_t chunk_size,
                            std::int32_t block_size, Derivation derivation) {
  validate_sizes(batch);
  if (block_size < 1) throw Error(fmt::format("block_size is {}, must be at least 1", block_size));
  if (chunk_size < 1) throw Error(fmt::format("chunk_size is {}, must be at least 1", chunk_size));
  if (chunk_size % block_size != 0) {
    throw VllmError("AssertionError",
                    fmt::format("attn_chunk_size {} is not divisible by block_size {}", chunk_size,
                                block_size));
  }
  return LocalBatchMaker(batch, chunk_size, block_size, derivation).make();
}

}  // namespace attn
