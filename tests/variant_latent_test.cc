// Latent caches that no operation takes, and a softmax over two of them.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <set>

#include "attn/error.h"
#include "attn/mla_rows.h"
#include "attn/random.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

std::byte byte(std::int64_t value) { return static_cast<std::byte>(value); }

// e4m3 codes 0x38, 0x40, 0x48, 0xB8 are 1, 2, 4, -1; element d has the code of d mod 4.
constexpr std::int64_t kCodes[] = {0x38, 0x40, 0x48, 0xB8};
constexpr double kValues[] = {1, 2, 4, -1};

// A page of 3 slots in which only slot 1 holds numbers; its 7 scales are 2^-3 ... 2^3.
std::vector<std::byte> v4_page() {
  std::vector<std::byte> page(2304, byte(0xFF));
  for (std::int64_t d = 0; d < 448; ++d)
    page[static_cast<std::size_t>(576 + d)] = byte(kCodes[d % 4]);
  for (std::int64_t d = 0; d < 64; ++d) {
    // bf16 of 2^(d - 32): exponent 127 + d - 32, no fraction.
    const std::int64_t code = (95 + d) << 7;
    page[static_cast<std::size_t>(1024 + 2 * d)] = byte(code & 0xFF);
    page[static_cast<std::size_t>(1025 + 2 * d)] = byte(code >> 8);
  }
  for (std::int64_t g = 0; g < 7; ++g) page[static_cast<std::size_t>(1736 + g)] = byte(124 + g);
  return page;
}

TEST(V4MlaCache, DecodesARowMadeByHand) {
  const V4MlaPage page{3};
  EXPECT_EQ(page.bytes(), 2304);  // 3 * 584 = 1752, padded to 4 * 576
  std::array<double, 512> row;
  decode_v4_mla_row(page, v4_page(), 1, row);
  for (std::size_t d = 0; d < 448; ++d) {
    EXPECT_EQ(row[d], std::ldexp(kValues[d % 4], static_cast<int>(d / 64) - 3)) << d;
  }
  for (std::size_t d = 0; d < 64; ++d)
    EXPECT_EQ(row[448 + d], std::ldexp(1.0, static_cast<int>(d) - 32));
}

TEST(V4MlaCache, ScaleCode255IsNaNForItsGroupOnly) {
  std::vector<std::byte> memory = v4_page();
  memory[1736 + 2] = byte(0xFF);
  std::array<double, 512> row;
  decode_v4_mla_row(V4MlaPage{3}, memory, 1, row);
  for (std::size_t d = 0; d < 512; ++d) EXPECT_EQ(std::isnan(row[d]), d >= 128 && d < 192) << d;
}

TEST(V4MlaCache, RejectsSlotsAndMemoryThatAreNotThere) {
  std::array<double, 512> row;
  const std::vector<std::byte> memory(2303);
  EXPECT_THROW(decode_v4_mla_row(V4MlaPage{3}, memory, 1, row), Error);
  EXPECT_THROW(decode_v4_mla_row(V4MlaPage{3}, v4_page(), 3, row), Error);
  EXPECT_THROW(decode_v4_mla_row(V4MlaPage{3}, v4_page(), -1, row), Error);
}

TEST(V41MlaCache, DecodesARowMadeByHand) {
  std::array<std::byte, 512> data;
  for (std::size_t d = 0; d < 512; ++d) data[d] = byte(kCodes[d % 4]);
  std::array<std::byte, 16> scales;
  for (std::size_t g = 0; g < 16; ++g) scales[g] = byte(static_cast<std::int64_t>(127 + g));
  scales[5] = byte(0xFF);
  std::array<double, 512> row;
  decode_v41_mla_row(data, scales, row);
  for (std::size_t d = 0; d < 512; ++d) {
    if (d / 32 == 5) {
      EXPECT_TRUE(std::isnan(row[d])) << d;
    } else {
      EXPECT_EQ(row[d], std::ldexp(kValues[d % 4], static_cast<int>(d / 32))) << d;
    }
  }
}

// 8 * (s mod 4) + floor(s / 4), worked out.
constexpr std::int64_t kPlaces[32] = {0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
                                      4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};

TEST(Nvfp4DsMlaCache, PlacesOfTheScalesAreAPermutation) {
  std::set<std::int64_t> places;
  for (std::int64_t group = 0; group < 32; ++group) {
    EXPECT_EQ(Nvfp4MlaRow::scale_place(group), kPlaces[group]);
    places.insert(Nvfp4MlaRow::scale_place(group));
  }
  EXPECT_EQ(places.size(), 32u);
  EXPECT_EQ(*places.begin(), 0);
  EXPECT_EQ(*places.rbegin(), 31);
}

TEST(Nvfp4DsMlaCache, DecodesARowMadeByHand) {
  std::array<std::byte, 352> bytes;
  // e2m1 codes 2 and 13 are 1 and -3.
  for (std::size_t i = 0; i < 256; ++i) bytes[i] = byte(0xD2);
  for (std::size_t d = 0; d < 64; ++d) bytes[256 + d] = byte(kCodes[d % 4]);
  // e4m3 codes 0x20 + g; value (8 + g mod 8) * 2^(floor(g / 8) + 4 - 10).
  for (std::int64_t g = 0; g < 32; ++g) {
    bytes[static_cast<std::size_t>(320 + kPlaces[g])] = byte(0x20 + g);
  }
  std::array<double, 576> row;
  decode_nvfp4_mla_row(bytes, row);
  for (std::size_t d = 0; d < 512; ++d) {
    const int g = static_cast<int>(d / 16);
    const double scale = std::ldexp(8 + g % 8, g / 8 - 6);
    EXPECT_EQ(row[d], (d % 2 == 0 ? 1.0 : -3.0) * scale) << d;
  }
  for (std::size_t d = 0; d < 64; ++d) EXPECT_EQ(row[512 + d], kValues[d % 4]) << d;
}

constexpr std::int64_t kLatent = 4;
constexpr std::int64_t kRope = 2;
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kTokens = 3;

// What a row may see of one cache: its slots, -1 for none, of which a prefix counts.
struct Listed {
  std::vector<std::vector<double>> slots;  // [token][k]
  std::vector<double> lens;                // [token]

  std::vector<double> flat() const {
    std::vector<double> all;
    for (const std::vector<double>& list : slots) all.insert(all.end(), list.begin(), list.end());
    return all;
  }
};

std::vector<double> random_values(std::int64_t count, RandomTensor which) {
  std::vector<double> x;
  for (std::int64_t i = 0; i < count; ++i) {
    x.push_back(static_cast<float>(bell(random_words(9, static_cast<std::uint64_t>(i), which, 7))));
  }
  return x;
}

// Three rows over a window cache of 2 blocks and a compressed one of 3, two slots each. The second
// row lists a slot twice and none of the window cache, the third nothing.
struct TwoCaches {
  const std::vector<double> window = random_values(4 * (kLatent + kRope), RandomTensor::kKey);
  const std::vector<double> compressed = random_values(6 * (kLatent + kRope), RandomTensor::kValue);
  const std::vector<double> query =
      random_values(kTokens * kHeads * (kLatent + kRope), RandomTensor::kQuery);
  const std::vector<double> sinks = {0.5, -1.0};
  const Listed in_window = {{{3, 0, 1}, {2, 2, 2}, {-1, -1, -1}}, {2, 0, 3}};
  const Listed in_compressed = {{{5, -1, 0, 1}, {4, 4, 2, -1}, {0, 1, 2, 3}}, {4, 4, 0}};

  // Over `cache` with `listed`; with sinks or without.
  MlaSparseOp op(TensorPool& pool, const std::vector<double>& cache, const Listed& listed,
                 bool with_sinks) const {
    const auto num_blocks = static_cast<std::int64_t>(cache.size()) / (2 * (kLatent + kRope));
    const auto k = static_cast<std::int64_t>(listed.slots[0].size());
    MlaSparseOp op;
    op.mla.kv_lora_rank = kLatent;
    op.mla.qk_rope_head_dim = kRope;
    op.mla.scale = 0.5;
    op.mla.query = pool.values(DType::kF32, {kTokens, kHeads, kLatent + kRope}, query);
    op.mla.query_start_loc = pool.values(DType::kI32, {2}, {0, kTokens});
    op.mla.seq_lens = pool.values(DType::kI32, {1}, {8});
    op.mla.kv_cache = pool.values(DType::kF32, {num_blocks, 2, kLatent + kRope}, cache);
    op.index_space = TopkIndexSpace::kSlot;
    op.topk_indices = pool.values(DType::kI32, {kTokens, k}, listed.flat());
    op.topk_lens = pool.values(DType::kI32, {kTokens}, listed.lens);
    if (with_sinks) op.sinks = pool.values(DType::kF32, {kHeads}, sinks);
    return op;
  }

  // Both caches behind one another.
  MlaSparseOp concatenated(TensorPool& pool) const {
    std::vector<double> cache = window;
    cache.insert(cache.end(), compressed.begin(), compressed.end());
    Listed listed;
    for (std::size_t t = 0; t < kTokens; ++t) {
      std::vector<double> slots;
      for (std::size_t i = 0; i < in_window.slots[t].size(); ++i) {
        slots.push_back(static_cast<double>(i) < in_window.lens[t] ? in_window.slots[t][i] : -1);
      }
      for (const double slot : in_compressed.slots[t]) slots.push_back(slot < 0 ? -1 : slot + 4);
      listed.slots.push_back(slots);
      listed.lens.push_back(3 + in_compressed.lens[t]);
    }
    return op(pool, cache, listed, true);
  }
};

// Adds the listed rows of one cache to a joint softmax.
void accumulate(const TwoCaches& p, const std::vector<double>& cache, const Listed& listed,
                std::size_t t, std::size_t h, double& sum, std::vector<double>& out) {
  constexpr std::size_t kRow = kLatent + kRope;
  for (std::size_t i = 0; static_cast<double>(i) < listed.lens[t]; ++i) {
    if (listed.slots[t][i] < 0) continue;
    const double* row = &cache[kRow * static_cast<std::size_t>(listed.slots[t][i])];
    double s = 0.0;
    for (std::size_t d = 0; d < kRow; ++d) s += p.query[(t * kHeads + h) * kRow + d] * row[d];
    sum += std::exp(0.5 * s);
    for (std::size_t d = 0; d < kLatent; ++d) out[d] += std::exp(0.5 * s) * row[d];
  }
}

void expect_joint_softmax(const TwoCaches& p, const OperationAnswer& answer) {
  for (std::size_t t = 0; t < kTokens; ++t) {
    for (std::size_t h = 0; h < kHeads; ++h) {
      double sum = std::exp(p.sinks[h]);
      std::vector<double> out(kLatent, 0.0);
      accumulate(p, p.window, p.in_window, t, h, sum, out);
      accumulate(p, p.compressed, p.in_compressed, t, h, sum, out);
      for (std::size_t d = 0; d < kLatent; ++d) {
        EXPECT_NEAR(value_at(answer.view("out"), t, h, d), out[d] / sum, 1e-13) << t << " " << h;
      }
      EXPECT_NEAR(value_at(answer.view("lse"), h, t), std::log(sum), 1e-13) << t << " " << h;
    }
  }
}

TEST(JointTwoCaches, IsMlaSparseOverTheCachesBehindOneAnother) {
  const TwoCaches p;
  TensorPool pool;
  expect_joint_softmax(p, OperationAnswer{p.concatenated(pool)});
}

TEST(JointTwoCaches, IsTheMergeOfBothWithTheSinkInOne) {
  const TwoCaches p;
  TensorPool pool;
  const OperationAnswer window{p.op(pool, p.window, p.in_window, true)};
  const OperationAnswer compressed{p.op(pool, p.compressed, p.in_compressed, false)};
  std::vector<double> out = window.values("out");
  std::vector<double> lse = window.values("lse");
  for (const double x : compressed.values("out")) out.push_back(x);
  for (const double x : compressed.values("lse")) lse.push_back(x);
  MergeStatesOp merge;
  merge.out_parts = pool.values(DType::kF64, {2, kTokens, kHeads, kLatent}, out);
  merge.lse_parts = pool.values(DType::kF64, {2, kHeads, kTokens}, lse);
  expect_joint_softmax(p, OperationAnswer{merge});
}

}  // namespace
}  // namespace attn
