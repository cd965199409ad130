#include "golden/questions/block_plan.h"

#include <algorithm>
#include <numeric>

#include "golden/questions/fill.h"

namespace attn::questions {
namespace {

std::int64_t blocks_of(std::int64_t seq_len, std::int64_t block_size) {
  return (seq_len + block_size - 1) / block_size;
}

}  // namespace

BlockPlan::BlockPlan(const std::vector<std::int64_t>& seq_lens, const BlockOptions& options,
                     std::uint64_t seed)
    : block_size_(options.block_size), shared_tokens_(options.shared_blocks * options.block_size) {
  std::int64_t used = 0;
  std::int64_t longest = 0;
  std::vector<std::vector<std::int64_t>> rows;  // numbers of blocks in order of first use
  for (const std::int64_t seq_len : seq_lens) {
    const std::int64_t count = blocks_of(seq_len, block_size_);
    longest = std::max(longest, count);
    std::vector<std::int64_t> row;
    for (std::int64_t j = 0; j < count; ++j) {
      const bool is_shared = j < options.shared_blocks;
      row.push_back(is_shared && j < used ? j : used++);
    }
    rows.push_back(row);
  }
  num_blocks_ = options.permuted ? used + 1 : std::max<std::int64_t>(used, 1);
  std::vector<std::int32_t> order(static_cast<std::size_t>(used));
  std::iota(order.begin(), order.end(), 0);
  if (options.permuted && used > 0) {
    order = random_permutation(seed, static_cast<std::int32_t>(used), RandomTensor::kBlockTable, 0);
    for (std::int32_t& block : order) ++block;
  }
  table_ = HostTensor(DType::kI32, {static_cast<std::int64_t>(rows.size()),
                                    longest + (options.unused_tail ? 1 : 0)});
  if (options.unused_tail) table_.fill(kUnusedBlock);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t j = 0; j < rows[r].size(); ++j) {
      table_.set(order[static_cast<std::size_t>(rows[r][j])], r, j);
    }
  }
  if (options.kernel_block_size != 0) {
    split_blocks(options.kernel_block_size, seq_lens, options.unused_tail);
  }
}

// Block b becomes b*n ... b*n + n - 1.
void BlockPlan::split_blocks(std::int64_t kernel_block_size,
                             const std::vector<std::int64_t>& seq_lens, bool unused_tail) {
  const std::int64_t n = block_size_ / kernel_block_size;
  const HostTensor whole = table_;
  const std::int64_t width = whole.shape()[1] * n;
  table_ = HostTensor(DType::kI32, {whole.shape()[0], width});
  if (unused_tail) table_.fill(kUnusedBlock);
  for (std::size_t r = 0; r < seq_lens.size(); ++r) {
    for (std::int64_t j = 0; j < blocks_of(seq_lens[r], kernel_block_size); ++j) {
      table_.set(whole.value(r, j / n) * static_cast<double>(n) + static_cast<double>(j % n), r, j);
    }
  }
  num_blocks_ *= n;
  block_size_ = kernel_block_size;
}

KvSlot BlockPlan::slot(std::int64_t request, std::int64_t k) const {
  return {static_cast<std::int64_t>(table_.value(request, k / block_size_)), k % block_size_};
}

std::int64_t BlockPlan::owner(std::int64_t request, std::int64_t k) const {
  if (k >= shared_tokens_) return request;
  for (std::int64_t r = 0; r < request; ++r) {
    if (table_.value(r, k / block_size_) == table_.value(request, k / block_size_)) return r;
  }
  return request;
}

}  // namespace attn::questions
