// Variants that are ordinary attention over other tables, other rows or other memory.
#include <algorithm>
#include <cstring>
#include <limits>

#include "tests/error_text.h"
#include "tests/variant_batch.h"

namespace attn {
namespace {

std::vector<std::int64_t> ints(const HostTensor& tensor) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    values.push_back(static_cast<std::int32_t>(tensor.code(i)));
  }
  return values;
}

bool causal(std::int64_t q, std::int64_t k) { return k <= q; }

TEST(StaticSinkSetup, PrependsBlocksAndGrowsLengthsButThoseOfZero) {
  const BatchTables batch = {index_tensor({4}, {0, 2, 2, 3}), index_tensor({3}, {6, 0, 4}),
                             index_tensor({3, 2}, {7, 5, 9, 9, 6, -1})};
  const BatchTables with_sink = with_static_sink(batch, 4, 8);
  EXPECT_EQ(ints(with_sink.query_start_loc), (std::vector<std::int64_t>{0, 2, 2, 3}));
  EXPECT_EQ(ints(with_sink.seq_lens), (std::vector<std::int64_t>{14, 0, 12}));
  EXPECT_EQ(with_sink.block_table.shape(), (std::vector<std::int64_t>{3, 4}));
  EXPECT_EQ(ints(with_sink.block_table),
            (std::vector<std::int64_t>{1, 2, 7, 5, 1, 2, 9, 9, 1, 2, 6, -1}));
}

TEST(StaticSinkSetup, EveryRowSeesTheSinkTokensAndItsOwnKeys) {
  // Sink tokens in blocks 1 and 2, two slots each.
  const PagedBatch batch({{2, 5}, {0, 0}, {3, 3}}, 2, 3);
  const BatchTables with_sink = with_static_sink(batch.tables, 2, 4);
  const auto slots = [&](std::int64_t window) {
    const SeenSlots own = slots_where(
        batch, [window](std::int64_t q, std::int64_t k) { return causal(q, k) && q - k < window; });
    // Rows count the sink tokens among their positions.
    return [own](std::int64_t r, std::int64_t q) {
      std::vector<std::int64_t> seen = own(r, q - 4);
      seen.insert(seen.end(), {2, 3, 4, 5});
      return seen;
    };
  };
  AttentionOp op = batch.op(with_sink);
  expect_rows(batch, with_sink, OperationAnswer{op}, slots(100));
  op.mask.window_left = 1;
  op.mask.sink_token_length = 4;
  expect_rows(batch, with_sink, OperationAnswer{op}, slots(2));
}

TEST(StaticSinkSetup, RejectsSinkTokensThatFillNoWholeBlock) {
  const PagedBatch batch({{1, 1}}, 4);
  EXPECT_EQ(error_of([&] { with_static_sink(batch.tables, 4, 6); }),
            "num_sink_tokens 6 is not a multiple of block_size 4");
}

TEST(ChunkedLocalRewrite, HasTheLengthsAndBlocksOfTheExample) {
  std::vector<double> table;
  for (const double first : {10, 20, 30}) {
    for (int j = 0; j < 9; ++j) table.push_back(first + j);
  }
  const BatchTables batch = {index_tensor({4}, {0, 4, 14, 19}), index_tensor({3}, {6, 17, 9}),
                             index_tensor({3, 9}, table)};
  const BatchTables local = local_chunks(batch, 2, 4);
  // Query lengths 2 2 | 1 4 4 1 | 4 1.
  EXPECT_EQ(ints(local.query_start_loc),
            (std::vector<std::int64_t>{0, 2, 4, 5, 9, 13, 14, 18, 19}));
  EXPECT_EQ(ints(local.seq_lens), (std::vector<std::int64_t>{4, 2, 4, 4, 4, 1, 4, 1}));
  EXPECT_EQ(local.block_table.shape(), (std::vector<std::int64_t>{8, 2}));
  EXPECT_EQ(ints(local.block_table), (std::vector<std::int64_t>{10, 11, 12, 13, 22, 23, 24, 25, 26,
                                                                27, 28, 28, 32, 33, 34, 35}));
}

TEST(ChunkedLocalRewrite, ARequestWithoutRowsKeepsTheChunkOfItsLastKey) {
  const BatchTables batch = {index_tensor({2}, {0, 0}), index_tensor({1}, {8}),
                             index_tensor({1, 4}, {5, 6, 7, 8})};
  const BatchTables local = local_chunks(batch, 2, 4);
  EXPECT_EQ(ints(local.query_start_loc), (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(ints(local.seq_lens), (std::vector<std::int64_t>{4}));
  EXPECT_EQ(ints(local.block_table), (std::vector<std::int64_t>{7, 8}));
}

TEST(ChunkedLocalRewrite, AnswersAsTheMaskDoes) {
  for (const std::vector<RequestLengths>& lengths :
       {std::vector<RequestLengths>{{4, 6}, {10, 17}, {5, 9}},
        std::vector<RequestLengths>{{1, 8}, {0, 4}, {1, 9}, {16, 16}, {3, 4}, {1, 1}}}) {
    const PagedBatch batch(lengths);
    const BatchTables local = local_chunks(batch.tables, 2, 4);
    const OperationAnswer rewritten{batch.op(local)};
    AttentionOp masked = batch.op();
    masked.mask.attention_chunk_size = 4;
    const OperationAnswer mask_form{masked};
    EXPECT_EQ(rewritten.codes("out"), mask_form.codes("out"));
    EXPECT_EQ(rewritten.codes("lse"), mask_form.codes("lse"));
    expect_rows(batch, batch.tables, rewritten,
                slots_where(batch, [](std::int64_t q, std::int64_t k) {
                  return causal(q, k) && k / 4 == q / 4;
                }));
  }
}

TEST(ChunkedLocalRewrite, RejectsWhatHasNoVirtualRequests) {
  const PagedBatch batch({{1, 5}});
  EXPECT_EQ(error_of([&] { local_chunks(batch.tables, 2, 3); }),
            "chunk_size 3 is not a multiple of block_size 2");
  BatchTables tables = batch.tables;
  tables.seq_lens = index_tensor({1}, {0});
  EXPECT_EQ(error_of([&] { local_chunks(tables, 2, 4); }), "seq_lens[0] is 0, must be at least 1");
  tables.seq_lens = index_tensor({1}, {9});
  EXPECT_EQ(error_of([&] { local_chunks(tables, 2, 4); }),
            "block_table has 4 columns of 2 slots, seq_lens[0] is 9");
  tables = batch.tables;
  tables.query_start_loc = index_tensor({2}, {0, 6});
  EXPECT_EQ(error_of([&] { local_chunks(tables, 2, 4); }), "request 0 has 6 rows, but only 5 keys");
}

// The caches after a layer offered `count` keys and values, all elements `filler`, for `slots`.
OperationAnswer offered(const PagedBatch& batch, double filler, const std::vector<double>& slots) {
  const auto count = static_cast<std::int64_t>(slots.size());
  const HostTensor rows(DType::kF32, {count, 1, 4},
                        std::vector<double>(static_cast<std::size_t>(4 * count), filler));
  const HostTensor mapping(DType::kI64, {count}, slots);
  CacheWriteOp op;
  op.key = op.value = rows.view();
  op.slot_mapping = mapping.view();
  op.cache.layout = KvLayout::kPaged;
  op.cache.key = batch.key.view();
  op.cache.value = batch.value.view();
  return OperationAnswer(op);
}

bool holds_bytes_of(const TensorView& view, const HostTensor& tensor) {
  return std::memcmp(view.data, tensor.bytes().data(), tensor.bytes().size()) == 0;
}

OperationAnswer attention_over(const PagedBatch& batch, const OperationAnswer& caches) {
  AttentionOp op = batch.op();
  op.kv.key = caches.view("key_cache_after");
  op.kv.value = caches.view("value_cache_after");
  return OperationAnswer(op);
}

TEST(KvSharing, OwnKeysAndValuesOfASharingLayerChangeNoBit) {
  const PagedBatch batch({{2, 5}, {1, 3}});
  const OperationAnswer target{batch.op()};
  for (const double own : {3.0, -1e30, std::numeric_limits<double>::quiet_NaN()}) {
    // A layer that shares the cache of another has nowhere to write.
    const OperationAnswer caches = offered(batch, own, {-1, -1, -1});
    EXPECT_TRUE(holds_bytes_of(caches.view("key_cache_after"), batch.key));
    EXPECT_TRUE(holds_bytes_of(caches.view("value_cache_after"), batch.value));
    const OperationAnswer shared = attention_over(batch, caches);
    EXPECT_EQ(shared.codes("out"), target.codes("out"));
    EXPECT_EQ(shared.codes("lse"), target.codes("lse"));
  }
  // The same keys with a slot of their own do change it.
  const OperationAnswer written = attention_over(batch, offered(batch, 3.0, {8, -1, -1}));
  EXPECT_NE(written.codes("out"), target.codes("out"));
}

TEST(AdaptiveVerification, RowsBelongToTheRequestOfTheTensorsNotOfTheTotals) {
  // Equal totals, longest queries and sequences; only the lengths per request differ.
  const PagedBatch batch({{3, 7}, {1, 6}});
  BatchTables verified = batch.tables;
  verified.query_start_loc = index_tensor({3}, {0, 1, 4});
  const OperationAnswer scheduled{batch.op()};
  const OperationAnswer other{batch.op(verified)};
  expect_rows(batch, batch.tables, scheduled, slots_where(batch, causal));
  expect_rows(batch, verified, other, slots_where(batch, causal));
  EXPECT_NE(scheduled.codes("out"), other.codes("out"));
}

// Rows [begin, end) of the only request, as a request that ends with its last row: absolute
// positions stay. Keys are those of all ranks.
BatchTables rows_of(const PagedBatch& batch, std::int64_t begin, std::int64_t end) {
  const AttentionOp op = batch.op();
  return {index_tensor({2}, {0, static_cast<double>(end - begin)}),
          index_tensor({1}, {static_cast<double>(op.context_len(0) + end)}),
          batch.tables.block_table};
}

void turn_on(AttentionOp& op, int mask, const HostTensor& slopes) {
  if (mask == 1) op.mask.window_left = 2;
  if (mask == 2) op.mask.attention_chunk_size = 3;
  if (mask == 3) {
    op.bias.alibi_form = AlibiForm::kRow;
    op.bias.alibi_slopes = slopes.view();
  }
}

TEST(Pcp, RowsAnsweredApartAreThoseAnsweredTogether) {
  const PagedBatch batch({{8, 11}});
  const HostTensor slopes(DType::kF32, {2}, {0.5, 0.25});
  for (int mask = 0; mask < 4; ++mask) {
    AttentionOp whole = batch.op();
    turn_on(whole, mask, slopes);
    const std::vector<std::uint64_t> together = OperationAnswer(whole).codes("out");
    std::vector<std::uint64_t> apart(together.size());
    // Balanced over two ranks: the first and the last quarter, the two between.
    for (const std::vector<std::int64_t>& quarters : {std::vector<std::int64_t>{0, 3}, {1, 2}}) {
      for (const std::int64_t quarter : quarters) {
        const BatchTables tables = rows_of(batch, 2 * quarter, 2 * quarter + 2);
        AttentionOp op = batch.op(tables);
        op.query = slice(op.query, 0, 2 * quarter, 2);
        turn_on(op, mask, slopes);
        const std::vector<std::uint64_t> rows = OperationAnswer(op).codes("out");
        std::copy(rows.begin(), rows.end(),
                  apart.begin() + static_cast<std::ptrdiff_t>(quarter * 2 * 2 * 4));
      }
    }
    EXPECT_EQ(apart, together) << "mask " << mask;
  }
}

// Rotates both halves of a vector by its position, as a rotary embedding does.
void rotate(HostTensor& tensor, std::int64_t first, std::int64_t position) {
  for (std::int64_t d = 0; d < 2; ++d) {
    const double x = decode(DType::kF32, tensor.code(first + d));
    const double y = decode(DType::kF32, tensor.code(first + d + 2));
    const double angle = static_cast<double>(position) / (1.0 + static_cast<double>(d));
    const double turned[] = {x * std::cos(angle) - y * std::sin(angle),
                             x * std::sin(angle) + y * std::cos(angle)};
    for (std::int64_t i = 0; i < 2; ++i) {
      tensor.set_code(first + d + 2 * i, encode(DType::kF32, turned[i], Overflow::kSaturate));
    }
  }
}

// The last row's answer over keys placed in another order; their positions are rotated in or not.
std::vector<double> last_row(bool reversed, bool rotary) {
  PagedBatch batch({{1, 6}}, 1);
  if (reversed) batch.tables.block_table = index_tensor({1, 7}, {0, 1, 2, 3, 4, 5, -7});
  if (rotary) {
    for (std::int64_t k = 0; k < 6; ++k) {
      rotate(batch.key, 4 * static_cast<std::int64_t>(batch.tables.block_table.value(0, k)), k);
    }
    for (std::int64_t h = 0; h < PagedBatch::kHeads; ++h) rotate(batch.query, 4 * h, 5);
  }
  return OperationAnswer(batch.op()).values("out");
}

double farthest(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
  return largest;
}

TEST(NopeLayers, ARowThatSeesAllKeysDoesNotKnowTheirOrder) {
  EXPECT_LT(farthest(last_row(false, false), last_row(true, false)), 1e-14);
  EXPECT_GT(farthest(last_row(false, true), last_row(true, true)), 1e-2);
}

TEST(PrefixLm, PrefixSeesItselfBothWaysAndTheRestIsCausal) {
  const PagedBatch batch({{6, 6}, {3, 5}});
  // Prefixes of 4 and 3 tokens; no window.
  const HostTensor ranges = index_tensor({2, 1, 2}, {0, 3, 0, 2});
  AttentionOp op = batch.op();
  op.mask.mm_prefix_ranges = ranges.view();
  const OperationAnswer answer{op};
  const double prefix[] = {4, 3};
  expect_rows(batch, batch.tables, answer, [&](std::int64_t r, std::int64_t q) {
    return slots_where(batch, [&](std::int64_t row, std::int64_t k) {
      const double p = prefix[r];
      return k <= row || (static_cast<double>(row) < p && static_cast<double>(k) < p);
    })(r, q);
  });
  op.mask.mm_prefix_clamp = true;  // there is no window to clamp to
  EXPECT_EQ(OperationAnswer(op).codes("out"), answer.codes("out"));
}

}  // namespace
}  // namespace attn
