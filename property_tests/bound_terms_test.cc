// Every term of the error bound is needed: a kernel that keeps its contract is within the bound and
// beyond what is left of it without the term. The same kernels turn red when the term is missing in
// judge/, or is much too small there: `least` is how near to the bound they come.
//
// Terms without a case, because nothing that the software model may do needs them:
//  - Products of two errors: the Delta terms, 1 + c of one error times another, R and e^X, 2X and
//    2 D1 of the log-sum-exp. They are a theorem's, not visible beside the first order.
//  - `fused`: the first addition to an empty sum is exact, so rounded products are one rounding of
//  n
//    already counted. So is the one block more of a shifted grid. The one matrix step more of a
//    shifted grid counts kappa + 2 errors, but all steps together align each product once.
//  - The score's and logit_roundings' own underflow, omega: the weights' omega V1 / l is as large.
//    Underflow of the quotient, of ln and of the difference's operands: W has ten times that. A
//    value read as 0 likewise.
//  - gamma(nb u) a of several biases: |score| <= b_max + |logit|, and C_u |u| counts the logit.
//  - exp.abs times T and D_m: what is lost once is not lost again.
//  - merge.depth c_e in beta: the maxima of merges only rise, arguments telescope as in tiles. The
//    quantum of merge.lse: lambda times its unit is larger. The 2 of normalize_roundings + 2, and
//    one of the two quanta of a stored part: the model's merges store each part, and each result,
//    once.
#include <gtest/gtest.h>

#include "property_tests/bound_case.h"

namespace attn::property_tests {
namespace {

class BoundTerm : public testing::TestWithParam<BoundCase> {};

TEST_P(BoundTerm, IsNeeded) {
  const BoundRatios ratios = ratios_of(GetParam());
  EXPECT_LE(ratios.full, 1.0);
  EXPECT_GT(ratios.full, GetParam().least);
  EXPECT_GT(ratios.without_term, 1.0);
}

std::string name_of(const testing::TestParamInfo<BoundCase>& info) { return info.param.term; }

INSTANTIATE_TEST_SUITE_P(Scores, BoundTerm, testing::ValuesIn(score_terms()), name_of);
INSTANTIATE_TEST_SUITE_P(Logits, BoundTerm, testing::ValuesIn(logit_terms()), name_of);
INSTANTIATE_TEST_SUITE_P(Exponents, BoundTerm, testing::ValuesIn(exponent_terms()), name_of);
INSTANTIATE_TEST_SUITE_P(Weights, BoundTerm, testing::ValuesIn(weight_terms()), name_of);
INSTANTIATE_TEST_SUITE_P(Sums, BoundTerm, testing::ValuesIn(sum_terms()), name_of);
INSTANTIATE_TEST_SUITE_P(Merges, BoundTerm, testing::ValuesIn(merge_terms()), name_of);
INSTANTIATE_TEST_SUITE_P(Answers, BoundTerm, testing::ValuesIn(answer_terms()), name_of);
INSTANTIATE_TEST_SUITE_P(Latents, BoundTerm, testing::ValuesIn(latent_terms()), name_of);

}  // namespace
}  // namespace attn::property_tests
