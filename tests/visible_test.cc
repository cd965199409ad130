// visible_ranges: which keys one row sees, masks and biases together.
#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

#include "attn/reference.h"
#include "core/special_values.h"
#include "tests/small_problem.h"

namespace attn {

void PrintTo(const KeyRange& range, std::ostream* stream) {
  *stream << '[' << range.begin << ", " << range.end << ')';
}

namespace {

using Ranges = std::vector<KeyRange>;

TEST(VisibleRanges, OfCausalRowsEndWithThemselves) {
  SmallProblem p;  // rows at positions 3, 4 of 5 keys and 2 of 3
  EXPECT_EQ(visible_ranges(p.op, 0, 0, 0), (Ranges{{0, 4}}));
  EXPECT_EQ(visible_ranges(p.op, 0, 0, 1), (Ranges{{0, 5}}));
  EXPECT_EQ(visible_ranges(p.op, 1, 3, 0), (Ranges{{0, 3}}));
}

TEST(VisibleRanges, AreMaximalAndAscending) {
  SmallProblem p;
  p.op.mask.window_left = 1;
  p.op.mask.sink_token_length = 1;
  EXPECT_EQ(visible_ranges(p.op, 0, 0, 1), (Ranges{{0, 1}, {3, 5}}));
}

TEST(VisibleRanges, AreNoneForARowThatSeesNothing) {
  SmallProblem p;
  p.op.seq_lens = p.pool.values(DType::kI32, {2}, {1, 3});  // two rows, one key
  EXPECT_EQ(visible_ranges(p.op, 0, 0, 0), Ranges{});
  EXPECT_EQ(visible_ranges(p.op, 0, 0, 1), (Ranges{{0, 1}}));
}

TEST(VisibleRanges, LeaveOutWhatAttnMaskHidesForTheHead) {
  SmallProblem p;
  std::vector<double> bits(4 * 5, 1);
  bits[2 * 5 + 1] = 0;
  p.op.mask.attn_mask = p.pool.values(DType::kBool, {1, 4, 1, 5}, bits);
  EXPECT_EQ(visible_ranges(p.op, 0, 2, 1), (Ranges{{0, 1}, {2, 5}}));
  EXPECT_EQ(visible_ranges(p.op, 0, 1, 1), (Ranges{{0, 5}}));
}

TEST(VisibleRanges, LeaveOutWhatABiasOfMinusInfinityHides) {
  SmallProblem p;
  p.op.bias.attn_bias = p.pool.values(DType::kF32, {1, 1, 1, 5}, {-kInf, 0, 1e30, -1e30, 0});
  EXPECT_EQ(visible_ranges(p.op, 0, 0, 0), (Ranges{{1, 4}}));
  p.op.bias.qq_bias = p.pool.values(DType::kF32, {2, 2}, {0, 0, -kInf, 0});
  EXPECT_EQ(visible_ranges(p.op, 0, 0, 1), (Ranges{{1, 3}, {4, 5}}));  // column 0 is key 3
}

TEST(VisibleRanges, OutsideTheProblemAreAnError) {
  const SmallProblem p;
  const auto error_of = [&](std::int64_t request, std::int64_t head, std::int64_t row) {
    try {
      visible_ranges(p.op, request, head, row);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(error_of(2, 0, 0), "request 2 is outside [0, 2)");
  EXPECT_EQ(error_of(0, 4, 0), "head 4 is outside [0, 4)");
  EXPECT_EQ(error_of(0, 0, 2), "row 2 is outside [0, 2)");
  EXPECT_EQ(error_of(-1, 0, 0), "request -1 is outside [0, 2)");
}

}  // namespace
}  // namespace attn
