#include "attn/batch_rewrite.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/checks.h"

namespace attn {
namespace {

using checks::fail;

constexpr std::int64_t kMaxLength = std::numeric_limits<std::int32_t>::max();

void expect_length(std::string_view what, std::int64_t value) {
  if (value > kMaxLength) fail("{} is {}, more than an i32 holds", what, value);
}

void expect_multiple(std::string_view what, std::int64_t value, std::int64_t block_size) {
  checks::expect_at_least("block_size", block_size, 1);
  expect_length("block_size", block_size);
  expect_length(what, value);
  if (value < 0 || value % block_size != 0) {
    fail("{} {} is not a multiple of block_size {}", what, value, block_size);
  }
}

void expect_tables(const BatchTables& batch) {
  checks::expect_lengths(batch.query_start_loc.view(), batch.seq_lens.view());
  checks::expect_tensor("block_table", batch.block_table.view(), DType::kI32,
                        {batch.seq_lens.shape()[0], checks::kAny});
}

HostTensor i32(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values) {
  return {DType::kI32, std::move(shape), std::vector<double>(values.begin(), values.end())};
}

// Pieces of requests, in the order of their rows.
struct Pieces {
  std::vector<std::int64_t> query_start_loc = {0};
  std::vector<std::int64_t> seq_lens;
  std::vector<std::int64_t> blocks;  // row after row

  void add(std::int64_t query_len, std::int64_t seq_len) {
    query_start_loc.push_back(query_start_loc.back() + query_len);
    seq_lens.push_back(seq_len);
  }
};

// Columns of a virtual row: no piece has more keys than a chunk, or than a request.
std::int64_t columns_of_piece(const TensorView& table, std::int64_t block_size,
                              std::int64_t chunk_size) {
  return std::min(chunk_size / block_size, table.shape[1]);
}

void add_pieces(const BatchTables& batch, std::int64_t r, std::int64_t block_size,
                std::int64_t chunk_size, Pieces& pieces) {
  const TensorView starts = batch.query_start_loc.view();
  const TensorView table = batch.block_table.view();
  const std::int64_t query_len = int_at(starts, r + 1) - int_at(starts, r);
  const std::int64_t seq_len = int_at(batch.seq_lens.view(), r);
  if (seq_len < 1) fail("seq_lens[{}] is {}, must be at least 1", r, seq_len);
  if (query_len > seq_len) {
    fail("request {} has {} rows, but only {} keys", r, query_len, seq_len);
  }
  if (seq_len > table.shape[1] * block_size) {
    fail("block_table has {} columns of {} slots, seq_lens[{}] is {}", table.shape[1], block_size,
         r, seq_len);
  }
  for (const LocalPiece& piece : local_pieces(query_len, seq_len, chunk_size)) {
    pieces.add(piece.query_len, piece.seq_len);
    for (std::int64_t j = 0; j < columns_of_piece(table, block_size, chunk_size); ++j) {
      const std::int64_t column = piece.first_key / block_size + j;
      // Columns beyond the row's are those of no key.
      pieces.blocks.push_back(int_at(table, r, std::min(column, table.shape[1] - 1)));
    }
  }
}

}  // namespace

BatchTables with_static_sink(const BatchTables& batch, std::int64_t block_size,
                             std::int64_t num_sink_tokens) {
  expect_tables(batch);
  expect_multiple("num_sink_tokens", num_sink_tokens, block_size);
  const std::int64_t num_sink_blocks = num_sink_tokens / block_size;
  const TensorView table = batch.block_table.view();
  std::vector<std::int64_t> seq_lens;
  std::vector<std::int64_t> blocks;
  for (std::int64_t r = 0; r < table.shape[0]; ++r) {
    const std::int64_t seq_len = int_at(batch.seq_lens.view(), r);
    seq_lens.push_back(seq_len == 0 ? 0 : seq_len + num_sink_tokens);
    expect_length("a seq_len with sinks", seq_lens.back());
    for (std::int64_t block = 1; block <= num_sink_blocks; ++block) blocks.push_back(block);
    for (std::int64_t j = 0; j < table.shape[1]; ++j) blocks.push_back(int_at(table, r, j));
  }
  return {batch.query_start_loc, i32({table.shape[0]}, seq_lens),
          i32({table.shape[0], num_sink_blocks + table.shape[1]}, blocks)};
}

std::vector<LocalPiece> local_pieces(std::int64_t query_len, std::int64_t seq_len,
                                     std::int64_t chunk_size) {
  checks::expect_at_least("chunk_size", chunk_size, 1);
  checks::expect_at_least("seq_len", seq_len, 1);
  checks::expect_at_least("query_len", query_len, 0);
  if (query_len > seq_len) fail("a request has {} rows, but only {} keys", query_len, seq_len);
  std::vector<LocalPiece> pieces;
  std::int64_t position = seq_len - query_len;
  do {
    const std::int64_t chunk = std::min(position, seq_len - 1) / chunk_size;
    const std::int64_t end = std::min((chunk + 1) * chunk_size, seq_len);
    pieces.push_back({end - position, chunk * chunk_size, end - chunk * chunk_size});
    position = end;
  } while (position < seq_len);
  return pieces;
}

BatchTables local_chunks(const BatchTables& batch, std::int64_t block_size,
                         std::int64_t chunk_size) {
  expect_tables(batch);
  checks::expect_at_least("chunk_size", chunk_size, 1);
  expect_multiple("chunk_size", chunk_size, block_size);
  Pieces pieces;
  for (std::int64_t r = 0; r < batch.seq_lens.shape()[0]; ++r) {
    add_pieces(batch, r, block_size, chunk_size, pieces);
  }
  const auto num_pieces = static_cast<std::int64_t>(pieces.seq_lens.size());
  return {i32({num_pieces + 1}, pieces.query_start_loc), i32({num_pieces}, pieces.seq_lens),
          i32({num_pieces, columns_of_piece(batch.block_table.view(), block_size, chunk_size)},
              pieces.blocks)};
}

}  // namespace attn
