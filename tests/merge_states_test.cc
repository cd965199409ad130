// Merging of partial states: the values of public reports about empty parts, bases and strides.
#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "core/special_values.h"
#include "tests/operation_answer.h"

namespace attn {
namespace {

struct Merged {
  double out;
  double lse;
};

// One row and head of one element, from (out, lse) pairs.
Merged merge(const std::vector<std::pair<double, double>>& parts, bool base_2 = false) {
  TensorPool pool;
  std::vector<double> out;
  std::vector<double> lse;
  for (const auto& [o, l] : parts) {
    out.push_back(o);
    lse.push_back(l);
  }
  const auto n = static_cast<std::int64_t>(parts.size());
  MergeStatesOp op;
  op.out_parts = pool.values(DType::kF64, {n, 1, 1, 1}, out);
  op.lse_parts = pool.values(DType::kF64, {n, 1, 1}, lse);
  op.lse_base_2 = base_2;
  const OperationAnswer answer{op};
  return {answer.values("out")[0], answer.values("lse")[0]};
}

TEST(MergeStates, TwoEmptyPartsAreEmpty) {
  const Merged m = merge({{0, -kInf}, {0, -kInf}});
  EXPECT_EQ(m.out, 0.0);
  EXPECT_EQ(m.lse, -kInf);
}

TEST(MergeStates, AnEmptyPartIsTheIdentityWhateverItHolds) {
  const double ln2 = std::log(2.0);
  for (const Merged& m : {merge({{3, ln2}, {kNaN, -kInf}}), merge({{kNaN, -kInf}, {3, ln2}})}) {
    EXPECT_EQ(m.out, 3.0);
    EXPECT_EQ(m.lse, ln2);
  }
}

TEST(MergeStates, PlusInfinityMarksAnEmptyPartToo) {
  const Merged m = merge({{1, std::log(3.0)}, {7, kInf}});
  EXPECT_EQ(m.out, 1.0);
  EXPECT_EQ(m.lse, std::log(3.0));
}

TEST(MergeStates, WeighsPartsByTheirSums) {
  const Merged m = merge({{1, std::log(3.0)}, {5, 0}});
  EXPECT_NEAR(m.out, 2.0, 1e-15);
  EXPECT_NEAR(m.lse, std::log(4.0), 1e-15);
}

TEST(MergeStates, ReadsTheDeclaredBase) {
  const std::vector<double> sums = {5, 1, 2};
  const std::vector<double> outs = {8, 0, 4};
  std::vector<std::pair<double, double>> natural;
  std::vector<std::pair<double, double>> base_2;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    natural.emplace_back(outs[i], std::log(sums[i]));
    base_2.emplace_back(outs[i], std::log2(sums[i]));
  }
  for (const Merged& m : {merge(natural), merge(base_2, true)}) {
    EXPECT_NEAR(m.out, 6.0, 1e-14);
    EXPECT_NEAR(m.lse, std::log(8.0), 1e-14);
  }
  // What the two mistakes give: values published in the report.
  EXPECT_NEAR(merge(natural, true).out, 5.447622, 1e-6);
  EXPECT_NEAR(merge(base_2).out, 6.643548, 1e-6);
}

TEST(MergeStates, ANaNLseMakesItsRowNaN) {
  const Merged m = merge({{1, kNaN}, {5, 0}});
  EXPECT_TRUE(std::isnan(m.out));
  EXPECT_TRUE(std::isnan(m.lse));
}

// Parts with a head stride of their own: heads all h + 1 with lse 0, and all 10(h + 1) with ln 3,
// the second padded by two NaN a head. (The views of the problem are strided, so each part is its
// own problem axis.)
TEST(MergeStates, ReadsPartsThroughTheirStrides) {
  TensorPool pool;
  std::vector<double> parts;
  for (const double factor : {1.0, 10.0}) {
    for (int h = 0; h < 2; ++h) {
      for (int d = 0; d < 6; ++d) parts.push_back(d < 4 ? factor * (h + 1) : kNaN);
    }
  }
  MergeStatesOp op;
  op.out_parts = slice(pool.values(DType::kF32, {2, 1, 2, 6}, parts), 3, 0, 4);
  op.lse_parts = pool.values(DType::kF64, {2, 2, 1}, {0, 0, std::log(3.0), std::log(3.0)});
  const OperationAnswer answer{op};
  const std::vector<double> out = answer.values("out");
  for (int d = 0; d < 4; ++d) {
    EXPECT_NEAR(out[static_cast<std::size_t>(d)], 7.75, 1e-14);
    EXPECT_NEAR(out[static_cast<std::size_t>(4 + d)], 15.5, 1e-14);
  }
  EXPECT_NEAR(answer.values("lse")[0], std::log(4.0), 1e-15);
}

}  // namespace
}  // namespace attn
