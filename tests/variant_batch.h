// A paged batch of random float32 data, and its answer in plain loops over a predicate.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "attn/batch_rewrite.h"
#include "attn/operation.h"
#include "attn/random.h"
#include "tests/operation_answer.h"

namespace attn {

struct RequestLengths {
  std::int64_t query_len = 0;
  std::int64_t seq_len = 0;
};

inline HostTensor index_tensor(const std::vector<std::int64_t>& shape,
                               const std::vector<double>& values) {
  return {DType::kI32, shape, values};
}

inline HostTensor random_tensor(std::vector<std::int64_t> shape, RandomTensor which) {
  HostTensor tensor(DType::kF32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    const double x = bell(random_words(11, static_cast<std::uint64_t>(i), which, 3));
    tensor.set_code(i, encode(DType::kF32, x, Overflow::kSaturate));
  }
  return tensor;
}

// 2 heads on 1 KV head of size 4. Block ids descend from the highest; ids below `first_block` and
// the last column of the table belong to no request.
struct PagedBatch {
  static constexpr std::int64_t kHeads = 2;
  static constexpr std::int64_t kHeadSize = 4;

  explicit PagedBatch(const std::vector<RequestLengths>& lengths, std::int64_t slots_of_block = 2,
                      std::int64_t first_block = 0)
      : block_size(slots_of_block) {
    std::vector<double> starts = {0};
    std::vector<double> seq_lens;
    std::int64_t width = 1;
    std::int64_t num_blocks = first_block;
    for (const RequestLengths& r : lengths) {
      starts.push_back(starts.back() + static_cast<double>(r.query_len));
      seq_lens.push_back(static_cast<double>(r.seq_len));
      width = std::max(width, blocks_of(r) + 1);
      num_blocks += blocks_of(r);
    }
    std::vector<double> table;
    auto next = static_cast<double>(num_blocks);
    for (const RequestLengths& r : lengths) {
      for (std::int64_t j = 0; j < width; ++j) table.push_back(j < blocks_of(r) ? --next : -7);
    }
    const auto num_reqs = static_cast<std::int64_t>(lengths.size());
    tables = {index_tensor({num_reqs + 1}, starts), index_tensor({num_reqs}, seq_lens),
              index_tensor({num_reqs, width}, table)};
    query = random_tensor({static_cast<std::int64_t>(starts.back()), kHeads, kHeadSize},
                          RandomTensor::kQuery);
    const std::vector<std::int64_t> cache = {num_blocks, block_size, 1, kHeadSize};
    key = random_tensor(cache, RandomTensor::kKey);
    value = random_tensor(cache, RandomTensor::kValue);
  }

  std::int64_t blocks_of(const RequestLengths& r) const {
    return (r.seq_len + block_size - 1) / block_size;
  }

  // The batch's data under some tables; causal. Views of both must stay alive.
  AttentionOp op(const BatchTables& under) const {
    AttentionOp op;
    op.query = query.view();
    op.query_start_loc = under.query_start_loc.view();
    op.seq_lens = under.seq_lens.view();
    op.kv.layout = KvLayout::kPaged;
    op.kv.key = key.view();
    op.kv.value = value.view();
    op.kv.block_table = under.block_table.view();
    op.scale = 0.5;
    op.mask.causal = true;
    return op;
  }
  AttentionOp op() const { return op(tables); }

  std::int64_t block_size;
  BatchTables tables;
  HostTensor query;       // [num_tokens, kHeads, kHeadSize]
  HostTensor key, value;  // [num_blocks, block_size, 1, kHeadSize]
};

// Cache slots (block * block_size + offset) that a row sees.
using SeenSlots = std::function<std::vector<std::int64_t>(std::int64_t request, std::int64_t q)>;

// Every row of `out` is the softmax of the definition over `slots`; no row where there are none.
inline void expect_rows(const PagedBatch& batch, const BatchTables& tables,
                        const OperationAnswer& answer, const SeenSlots& slots) {
  const AttentionOp op = batch.op(tables);
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t i = 0; i < op.query_len(r); ++i) {
      const std::int64_t token = op.query_start(r) + i;
      for (std::int64_t h = 0; h < PagedBatch::kHeads; ++h) {
        double sum = 0.0;
        std::vector<double> out(PagedBatch::kHeadSize, 0.0);
        for (const std::int64_t slot : slots(r, op.context_len(r) + i)) {
          const std::int64_t block = slot / batch.block_size;
          const std::int64_t offset = slot % batch.block_size;
          double s = 0.0;
          for (std::int64_t d = 0; d < PagedBatch::kHeadSize; ++d) {
            s += batch.query.value(token, h, d) * batch.key.value(block, offset, 0, d);
          }
          const double weight = std::exp(op.scale * s);
          sum += weight;
          for (std::size_t d = 0; d < out.size(); ++d) {
            out[d] += weight * batch.value.value(block, offset, 0, static_cast<std::int64_t>(d));
          }
        }
        for (std::size_t d = 0; d < out.size(); ++d) {
          EXPECT_NEAR(value_at(answer.view("out"), token, h, d), sum == 0 ? 0 : out[d] / sum, 1e-13)
              << "request " << r << " row " << i << " head " << h;
        }
      }
    }
  }
}

// Slots of the positions k of a request for which `sees` holds.
inline SeenSlots slots_where(const PagedBatch& batch,
                             const std::function<bool(std::int64_t q, std::int64_t k)>& sees) {
  return [&batch, sees](std::int64_t r, std::int64_t q) {
    std::vector<std::int64_t> slots;
    const auto seq_len = static_cast<std::int64_t>(batch.tables.seq_lens.value(r));
    for (std::int64_t k = 0; k < seq_len; ++k) {
      if (!sees(q, k)) continue;
      const double block = batch.tables.block_table.value(r, k / batch.block_size);
      slots.push_back(static_cast<std::int64_t>(block) * batch.block_size + k % batch.block_size);
    }
    return slots;
  };
}

}  // namespace attn
