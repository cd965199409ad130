#include "bench/job_batch.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "attn/random.h"

namespace attn::bench {
namespace {

constexpr std::int64_t kHeads = 32;
constexpr std::int64_t kKvHeads = 8;
constexpr std::int64_t kHeadSize = 128;
constexpr std::int64_t kBlockSize = 16;
constexpr std::uint64_t kSeed = 1;
constexpr std::uint32_t kFamily = 2;  // bell

constexpr int kQueryLens[] = {1, 1, 1, 1, 1, 1, 1, 1, 64, 129, 256, 300, 512, 777, 1024, 2048};
constexpr int kSeqLens[] = {1328, 18,  463,  2048, 777, 1024, 5,    1999,
                            523,  129, 1024, 1500, 512, 777,  2000, 2048};

std::vector<std::uint16_t> random_bf16(std::int64_t count, RandomTensor tensor) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double x = bell(random_words(kSeed, i, tensor, kFamily));
    values[i] = static_cast<std::uint16_t>(encode(DType::kBF16, x, Overflow::kSaturate));
  }
  return values;
}

}  // namespace

JobBatch::JobBatch() : query_start_loc_{0}, seq_lens_(std::begin(kSeqLens), std::end(kSeqLens)) {
  for (const int len : kQueryLens) query_start_loc_.push_back(query_start_loc_.back() + len);
  for (const int len : kSeqLens) {
    const std::int64_t blocks = (len + kBlockSize - 1) / kBlockSize;
    num_blocks_ += blocks;
    max_blocks_ = std::max(max_blocks_, blocks);
  }
  const std::vector<std::int32_t> order = random_permutation(
      kSeed, static_cast<std::int32_t>(num_blocks_), RandomTensor::kBlockTable, 0);
  std::size_t next = 0;
  for (const int len : kSeqLens) {
    for (std::int64_t j = 0; j < max_blocks_; ++j) {
      block_table_.push_back(j * kBlockSize < len ? order[next++] : 0);
    }
  }
  query_ = random_bf16(query_start_loc_.back() * kHeads * kHeadSize, RandomTensor::kQuery);
  const std::int64_t cache = num_blocks_ * kBlockSize * kKvHeads * kHeadSize;
  key_cache_ = random_bf16(cache, RandomTensor::kKey);
  value_cache_ = random_bf16(cache, RandomTensor::kValue);
}

AttentionProblem JobBatch::problem() const {
  const auto num_reqs = static_cast<std::int64_t>(seq_lens_.size());
  AttentionOp op;
  op.query = contiguous(query_.data(), DType::kBF16, {query_start_loc_.back(), kHeads, kHeadSize});
  op.query_start_loc = contiguous(query_start_loc_.data(), DType::kI32, {num_reqs + 1});
  op.seq_lens = contiguous(seq_lens_.data(), DType::kI32, {num_reqs});
  op.kv.layout = KvLayout::kPaged;
  op.kv.key =
      contiguous(key_cache_.data(), DType::kBF16, {num_blocks_, kBlockSize, kKvHeads, kHeadSize});
  op.kv.value =
      contiguous(value_cache_.data(), DType::kBF16, {num_blocks_, kBlockSize, kKvHeads, kHeadSize});
  op.kv.block_table = contiguous(block_table_.data(), DType::kI32, {num_reqs, max_blocks_});
  op.scale = 1.0 / std::sqrt(static_cast<double>(kHeadSize));
  op.mask.causal = true;
  return AttentionProblem(op);
}

double JobBatch::visible_flops() const {
  double pairs = 0.0;
  for (std::size_t r = 0; r < seq_lens_.size(); ++r) {
    const double rows = query_start_loc_[r + 1] - query_start_loc_[r];
    const double context = seq_lens_[r] - rows;
    pairs += rows * context + rows * (rows + 1) / 2;
  }
  return 4.0 * static_cast<double>(kHeadSize * kHeads) * pairs;
}

}  // namespace attn::bench
