// The reference's reader of caches against the definition of every encoding in core, on random
// codes, scales, tables and strides.
#include "reference/gather.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "tests/tensor_pool.h"

namespace attn::reference {
namespace {

constexpr std::int64_t kBlocks = 7, kBlockSize = 3, kHeads = 2, kSeqLen = 8;

struct Form {
  KvLayout layout;
  KvEncoding encoding;
  DType type;
  bool hnd = false;
  int scale_rank = 0;  // 0 absent, 1 [1], 2 [heads], 3 [requests, heads]

  std::string text() const {
    return std::string(name(layout)) + '_' + std::string(name(encoding)) + '_' +
           std::string(name(type)) + (hnd ? "_HND" : "_NHD") + "_scale" +
           std::to_string(scale_rank);
  }
};

std::vector<Form> forms() {
  std::vector<Form> all;
  for (const KvLayout layout : {KvLayout::kVarlen, KvLayout::kPaged, KvLayout::kPacked}) {
    for (const DType type : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kF8E4M3FN,
                             DType::kF8E4M3FNUZ, DType::kF8E5M2}) {
      for (int scale_rank = 0; scale_rank < 4; ++scale_rank) {
        const bool hnd = layout != KvLayout::kVarlen && scale_rank % 2 == 1;
        all.push_back({layout, KvEncoding::kPlain, type, hnd, scale_rank});
      }
    }
    if (layout == KvLayout::kVarlen) continue;
    for (const bool hnd : {false, true}) {
      all.push_back({layout, KvEncoding::kPerTokenHead, DType::kI8, hnd});
      all.push_back({layout, KvEncoding::kPerTokenHead, DType::kF8E4M3FN, hnd});
      if (layout == KvLayout::kPaged) {
        all.push_back({layout, KvEncoding::kNvfp4, DType::kF4E2M1, hnd});
      }
    }
  }
  return all;
}

class Gather : public testing::TestWithParam<Form> {
 protected:
  Gather() {
    op_.query_start_loc = pool_.values(DType::kI32, {3}, {0, 1, 2});
    op_.seq_lens = pool_.values(DType::kI32, {2}, {kSeqLen, kSeqLen});
    op_.query = pool_.zeros(DType::kF32, {2, 2 * kHeads, head_size_});
    op_.kv.layout = form_.layout;
    op_.kv.encoding = form_.encoding;
    make_cache();
    make_scales();
  }

  TensorView random_codes(DType type, const std::vector<std::int64_t>& shape) {
    const MutableTensorView view = pool_.zeros(type, shape);
    auto* byte = static_cast<unsigned char*>(view.data);
    for (std::int64_t i = 0; i < view.num_units() * unit_bytes(type); ++i) {
      *byte++ = static_cast<unsigned char>(random_());
    }
    return view;
  }
  TensorView random_scales(const std::vector<std::int64_t>& shape) {
    const auto count = std::accumulate(shape.begin(), shape.end(), std::int64_t{1},
                                       std::multiplies<std::int64_t>());
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(std::ldexp(static_cast<double>(random_() % 1000) - 500, -7));
    }
    return pool_.values(DType::kF32, shape, values);
  }
  // [blocks, block_size, heads, units], in either memory order.
  TensorView paged(std::int64_t units) {
    if (!form_.hnd) return random_codes(form_.type, {kBlocks, kBlockSize, kHeads, units});
    return swap_axes(random_codes(form_.type, {kBlocks, kHeads, kBlockSize, units}), 1, 2);
  }

  void make_cache() {
    const std::int64_t units = elements_per_unit(form_.type);
    if (form_.layout == KvLayout::kVarlen) {
      op_.kv.kv_start_loc = pool_.values(DType::kI32, {3}, {0, kSeqLen, 2 * kSeqLen});
      op_.kv.key = random_codes(form_.type, {2 * kSeqLen, kHeads, head_size_});
      op_.kv.value = random_codes(form_.type, {2 * kSeqLen, kHeads, head_size_v_});
      return;
    }
    op_.kv.block_table = pool_.values(DType::kI32, {2, 4}, {6, 0, 3, -1, 2, 5, 3, 2147480000});
    if (form_.layout == KvLayout::kPaged) {
      op_.kv.key = paged(head_size_ / units);
      op_.kv.value = paged(head_size_v_ / units);
    } else {
      const TensorView rows = paged(head_size_ + head_size_v_);
      op_.kv.key = slice(rows, 3, 0, head_size_);
      op_.kv.value = slice(rows, 3, head_size_, head_size_v_);
    }
  }

  void make_scales() {
    KvCacheView& kv = op_.kv;
    if (form_.encoding == KvEncoding::kPerTokenHead) {
      kv.k_scale_cache = random_scales({kBlocks, kBlockSize, kHeads});
      kv.v_scale_cache = random_scales({kBlocks, kBlockSize, kHeads});
    } else if (form_.encoding == KvEncoding::kNvfp4) {
      kv.k_block_scale =
          random_codes(DType::kF8E4M3FN, {kBlocks, kBlockSize, kHeads, head_size_ / 16});
      kv.v_block_scale =
          random_codes(DType::kF8E4M3FN, {kBlocks, kBlockSize, kHeads, head_size_v_ / 16});
      kv.k_global_scale = random_scales({1});
      kv.v_global_scale = random_scales({1});
    } else if (form_.scale_rank != 0) {
      const std::vector<std::int64_t> shapes[] = {{1}, {kHeads}, {2, kHeads}};
      kv.k_scale = random_scales(shapes[form_.scale_rank - 1]);
      kv.v_scale = random_scales(shapes[form_.scale_rank - 1]);
    }
  }

  const Form form_ = GetParam();
  const std::int64_t head_size_ = form_.encoding == KvEncoding::kNvfp4 ? 32 : 5;
  const std::int64_t head_size_v_ = form_.encoding == KvEncoding::kNvfp4 ? 48 : 11;
  std::mt19937 random_{static_cast<std::uint32_t>(std::hash<std::string>()(form_.text()))};
  TensorPool pool_;
  AttentionOp op_;
};

bool same(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

const std::vector<std::int64_t> kPositions = {0, 2, 3, 5, 7};

TEST_P(Gather, ReadsWhatTheEncodingDefines) {
  for (std::int64_t request = 0; request < 2; ++request) {
    for (std::int64_t head = 0; head < kHeads; ++head) {
      const RowMatrix keys = gather_keys(op_, request, head, kPositions);
      const RowMatrix values = gather_values(op_, request, head, kPositions);
      for (std::size_t i = 0; i < kPositions.size(); ++i) {
        const auto row = static_cast<Eigen::Index>(i);
        for (std::int64_t d = 0; d < head_size_; ++d) {
          EXPECT_TRUE(same(keys(row, d), decode_key(op_.kv, request, kPositions[i], head, d)))
              << request << ' ' << head << ' ' << kPositions[i] << ' ' << d;
        }
        for (std::int64_t d = 0; d < head_size_v_; ++d) {
          EXPECT_TRUE(same(values(row, d), decode_value(op_.kv, request, kPositions[i], head, d)))
              << request << ' ' << head << ' ' << kPositions[i] << ' ' << d;
        }
      }
    }
  }
}

TEST_P(Gather, PadsRowsWithZerosToAMultipleOfLanes) {
  const RowMatrix keys = gather_keys(op_, 0, 1, kPositions);
  EXPECT_EQ(keys.cols() % kLanes, 0);
  EXPECT_GE(keys.cols(), head_size_);
  EXPECT_LT(keys.cols(), head_size_ + kLanes);
  EXPECT_TRUE((keys.rightCols(keys.cols() - head_size_).array() == 0.0).all());
}

INSTANTIATE_TEST_SUITE_P(Forms, Gather, testing::ValuesIn(forms()), [](const auto& form) {
  std::string text = form.param.text();
  std::replace(text.begin(), text.end(), '-', '_');
  return text;
});

TEST(GatherQuery, ReadsATokenTimesItsScale) {
  TensorPool pool;
  std::vector<double> values(2 * 4 * 3);
  std::iota(values.begin(), values.end(), 0.0);
  const TensorView query = pool.values(DType::kBF16, {2, 4, 3}, values);
  const RowMatrix plain = gather_query(query, TensorView{}, 1, 2, 1);  // elements 18, 19, 20
  EXPECT_EQ(plain(0, 0), 18);
  EXPECT_EQ(plain(0, 2), 20);
  EXPECT_EQ(plain.cols(), kLanes);
  EXPECT_EQ(plain(0, 3), 0);
  const TensorView one = pool.values(DType::kF32, {1}, {0.5});
  EXPECT_EQ(gather_query(query, one, 1, 2, 1)(0, 1), 9.5);
  const TensorView by_head = pool.values(DType::kF32, {2}, {0.5, -2});
  EXPECT_EQ(gather_query(query, by_head, 1, 2, 1)(0, 1), -38);
  EXPECT_EQ(gather_query(query, by_head, 0, 1, 0)(0, 0), 1.5);
}

}  // namespace
}  // namespace attn::reference
