#include "golden/questions/hand_attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>
#include <variant>

namespace attn::questions {
namespace {

std::vector<std::int64_t> lengths(const HandAttention& hand, std::int64_t HandRequest::*length) {
  std::vector<std::int64_t> all;
  all.reserve(hand.requests.size());
  for (const HandRequest& request : hand.requests) all.push_back(request.*length);
  return all;
}

HostTensor query_rows(const HandAttention& hand) {
  const std::vector<std::int64_t> query_lens = lengths(hand, &HandRequest::query_len);
  const auto num_tokens = std::accumulate(query_lens.begin(), query_lens.end(), std::int64_t{0});
  HostTensor rows(DType::kF32, {num_tokens, hand.num_heads, hand.head_size});
  std::int64_t row = 0;
  for (std::size_t r = 0; r < hand.requests.size(); ++r) {
    const HandRequest& request = hand.requests[r];
    for (std::int64_t i = 0; i < request.query_len; ++i, ++row) {
      Place at = {static_cast<std::int64_t>(r), request.seq_len - request.query_len + i, 0, 0};
      for (at.head = 0; at.head < hand.num_heads; ++at.head) {
        for (at.dim = 0; at.dim < hand.head_size; ++at.dim) {
          rows.set(hand.query(at), row, at.head, at.dim);
        }
      }
    }
  }
  return rows;
}

// Block tables are two wider than the longest request needs, so that something lies beyond.
HostTensor block_table(const HandAttention& hand) {
  std::size_t width = 0;
  for (const HandRequest& request : hand.requests) width = std::max(width, request.blocks.size());
  width += 2;
  HostTensor table(DType::kI32, {static_cast<std::int64_t>(hand.requests.size()),
                                 static_cast<std::int64_t>(width)});
  for (std::size_t r = 0; r < hand.requests.size(); ++r) {
    const std::vector<std::int32_t>& blocks = hand.requests[r].blocks;
    for (std::size_t i = 0; i < width; ++i) {
      table.set(i < blocks.size() ? blocks[i] : hand.unused_entry, r, i);
    }
  }
  return table;
}

// Writes every addressed key or value through `set(place, block or row, slot, value)`.
template <class Set>
void for_each_key(const HandAttention& hand, const HandElement& element, const Set& set) {
  std::int64_t row = 0;
  for (std::size_t r = 0; r < hand.requests.size(); ++r) {
    const HandRequest& request = hand.requests[r];
    for (std::int64_t k = 0; k < request.seq_len; ++k, ++row) {
      Place at = {static_cast<std::int64_t>(r), k, 0, 0};
      const KvSlot to =
          hand.layout == KvLayout::kVarlen
              ? KvSlot{row, 0}
              : KvSlot{request.blocks.at(static_cast<std::size_t>(k / hand.block_size)),
                       k % hand.block_size};
      for (at.head = 0; at.head < hand.num_kv_heads; ++at.head) {
        for (at.dim = 0; at.dim < hand.head_size; ++at.dim) set(to, at, element(at));
      }
    }
  }
}

HostTensor varlen_rows(const HandAttention& hand, const HandElement& element) {
  const std::vector<std::int64_t> seq_lens = lengths(hand, &HandRequest::seq_len);
  const auto num_rows = std::accumulate(seq_lens.begin(), seq_lens.end(), std::int64_t{0});
  HostTensor rows(hand.kv_dtype, {num_rows, hand.num_kv_heads, hand.head_size});
  for_each_key(hand, element, [&](const KvSlot& to, const Place& at, double value) {
    rows.set(value, to.block, at.head, at.dim);
  });
  return rows;
}

// Dims [first, first + head_size) of every row of `cache`.
void fill_cache(const HandAttention& hand, const HandElement& element,
                const std::function<double(std::int64_t)>& unaddressed, std::int64_t first,
                HostTensor& cache) {
  for (std::int64_t block = 0; block < hand.num_blocks; ++block) {
    for (std::int64_t slot = 0; slot < hand.block_size; ++slot) {
      for (std::int64_t head = 0; head < hand.num_kv_heads; ++head) {
        for (std::int64_t d = 0; d < hand.head_size; ++d) {
          cache.set(unaddressed(block), block, slot, head, first + d);
        }
      }
    }
  }
  for_each_key(hand, element, [&](const KvSlot& to, const Place& at, double value) {
    cache.set(value, to.block, to.slot, at.head, first + at.dim);
  });
}

HostTensor empty_cache(const HandAttention& hand, std::int64_t row) {
  return {hand.kv_dtype, {hand.num_blocks, hand.block_size, hand.num_kv_heads, row}};
}

KvCacheView cache_view(const HandAttention& hand, TensorStore& memory) {
  KvCacheView kv;
  kv.layout = hand.layout;
  if (hand.layout == KvLayout::kVarlen) {
    kv.key = memory.keep(varlen_rows(hand, hand.key));
    kv.value = memory.keep(varlen_rows(hand, hand.value));
    kv.kv_start_loc = memory.keep(starts(lengths(hand, &HandRequest::seq_len)));
    return kv;
  }
  kv.block_table = memory.keep(block_table(hand));
  const std::int64_t size = hand.head_size;
  if (hand.layout == KvLayout::kPacked) {
    HostTensor rows = empty_cache(hand, 2 * size);
    fill_cache(hand, hand.key, hand.unaddressed_key, 0, rows);
    fill_cache(hand, hand.value, hand.unaddressed_value, size, rows);
    const TensorView packed = memory.keep(std::move(rows));
    kv.key = slice(packed, 3, 0, size);
    kv.value = slice(packed, 3, size, size);
    return kv;
  }
  HostTensor keys = empty_cache(hand, size);
  fill_cache(hand, hand.key, hand.unaddressed_key, 0, keys);
  kv.key = memory.keep(std::move(keys));
  HostTensor values = empty_cache(hand, size);
  fill_cache(hand, hand.value, hand.unaddressed_value, 0, values);
  kv.value = memory.keep(std::move(values));
  return kv;
}

}  // namespace

HandElement constant(double value) {
  return [value](const Place&) { return value; };
}

HandElement listed(std::vector<double> by_position) {
  return [values = std::move(by_position)](const Place& at) {
    return values.at(static_cast<std::size_t>(at.position));
  };
}

HandElement first_dim(HandElement element) {
  return [inner = std::move(element)](const Place& at) { return at.dim == 0 ? inner(at) : 0.0; };
}

double power_of_two(const Place& at) { return std::ldexp(1.0, static_cast<int>(at.position)); }

double own_position(const Place& at) { return static_cast<double>(at.position); }

double arbitrary(const Place& at) {
  const std::int64_t mixed = 7 * at.position + 5 * at.head + 3 * at.dim + 11 * at.request;
  return static_cast<double>(mixed % 13 - 6) / 8.0;
}

HandElement logs(const std::vector<double>& weights) {
  std::vector<double> scores;
  scores.reserve(weights.size());
  for (const double weight : weights) scores.push_back(std::log(weight));
  return first_dim(listed(std::move(scores)));
}

Question hand_attention(QuestionText text, const HandAttention& hand) {
  Question question = question_of(std::move(text), "by hand");
  AttentionOp op;
  op.query = question.memory.keep(query_rows(hand));
  op.query_start_loc = question.memory.keep(starts(lengths(hand, &HandRequest::query_len)));
  op.seq_lens = question.memory.keep(int_tensor(lengths(hand, &HandRequest::seq_len)));
  op.kv = cache_view(hand, question.memory);
  op.mask.causal = true;
  question.operation = op;
  return question;
}

AttentionOp& attention_of(Question& question) { return std::get<AttentionOp>(question.operation); }

TensorView keep_floats(Question& question, const std::vector<double>& values) {
  const auto size = static_cast<std::int64_t>(values.size());
  return question.memory.keep(HostTensor(DType::kF32, {size}, values));
}

}  // namespace attn::questions
