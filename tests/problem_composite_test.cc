#include "attn/problem_composite.h"

#include <gtest/gtest.h>

#include <string>

#include "attn/cpu_backend.h"
#include "attn/error.h"
#include "attn/executable_backend.h"
#include "attn/reference.h"
#include "tests/small_problem.h"

namespace attn {
namespace {

using Children = std::vector<std::shared_ptr<const Backend>>;

const std::shared_ptr<const Backend> kReference = make_reference_backend();
const std::shared_ptr<const Backend> kCpu = make_cpu_backend();

// Requests of 2 tokens of 5 keys and 1 token of 3 keys; images as start, end per request.
struct ImageProblem : SmallProblem {
  explicit ImageProblem(const std::vector<double>& ranges) {
    op.mask.mm_prefix_ranges = pool.values(DType::kI32, {2, 1, 2}, ranges);
  }
};

std::string refusal(const Children& children, const RoutingPolicyPtr& policy) {
  try {
    make_problem_composite(children, policy);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ProblemComposite, RoutesByItsPolicyAndNamesTheRequest) {
  const auto composite = make_problem_composite({kReference, kCpu}, mm_prefix_policy());
  EXPECT_EQ(composite->name(), "COMPOSITE(REFERENCE,CPU)");
  const ProblemRoute text = composite->route(SmallProblem().problem());
  EXPECT_EQ(text.child->name(), "CPU");
  EXPECT_EQ(text.path, std::vector<int>{1});
  const ProblemRoute past = composite->route(ImageProblem({0, 3, 0, 2}).problem());
  EXPECT_EQ(past.child->name(), "CPU") << past.route.reason;
  const ImageProblem image({2, 4, 0, 0});
  const ProblemRoute route = composite->route(image.problem());
  EXPECT_EQ(route.child->name(), "REFERENCE");
  ASSERT_EQ(route.route.forced_by.size(), 1U);
  EXPECT_EQ(route.route.forced_by[0].row, 0);
  EXPECT_EQ(route.route.forced_by[0].reason, "tokens 3..4 are inside image [2,4]");
  const std::vector<Route> alone = composite->request_routes(image.problem());
  ASSERT_EQ(alone.size(), 2U);
  EXPECT_EQ(alone[0].child, 0);
  EXPECT_EQ(alone[1].child, 1);
  EXPECT_EQ(alone[1].reason, "no image range");
}

TEST(ProblemComposite, WindowOfTheProblemCountsAsUnclampedWithoutMmPrefixClamp) {
  const auto composite = make_problem_composite({kReference, kCpu}, mm_prefix_policy());
  ImageProblem problem({0, 3, 0, 0});  // the first of two tokens at 3 and 4 is the image's last
  EXPECT_EQ(composite->route(problem.problem()).path, std::vector<int>{1});
  problem.op.mask.window_left = 1;
  EXPECT_EQ(composite->route(problem.problem()).path, std::vector<int>{0});
  problem.op.mask.mm_prefix_clamp = true;
  EXPECT_EQ(composite->route(problem.problem()).path, std::vector<int>{1});
}

TEST(ProblemComposite, NestedPathHasOneIndexALevel) {
  const auto inner = make_problem_composite({kCpu, kReference}, constant_policy(1, 1));
  const auto composite = make_problem_composite({kReference, inner}, mm_prefix_policy());
  const ProblemRoute route = composite->route(SmallProblem().problem());
  EXPECT_EQ(route.path, (std::vector<int>{1, 1}));
  EXPECT_EQ(route.child->name(), "REFERENCE");
  EXPECT_EQ(composite->contract(SmallProblem().problem()).name, "reference");
}

TEST(ProblemComposite, OtherOperationsAreForChildZero) {
  const auto composite = make_problem_composite({kCpu, kReference}, constant_policy(1, 1));
  MergeStatesOp op;
  TensorPool pool;
  op.out_parts = pool.zeros(DType::kF32, {2, 1, 1, 1});
  op.lse_parts = pool.zeros(DType::kF32, {2, 1, 1});
  const AttentionProblem problem(op);
  EXPECT_EQ(composite->route(problem).path, std::vector<int>{0});
  EXPECT_EQ(composite->supports(problem),
            std::vector<std::string>{"operation merge_states not supported"});
  EXPECT_TRUE(composite->request_routes(problem).empty());
}

TEST(ProblemComposite, MisuseIsRefused) {
  EXPECT_EQ(refusal({kCpu}, mm_prefix_policy()), "a composite needs at least 2 children, got 1");
  EXPECT_EQ(refusal({kCpu, make_cpu_backend()}, mm_prefix_policy()), "a composite has CPU twice");
  EXPECT_EQ(refusal({kCpu, nullptr}, mm_prefix_policy()), "a child of a composite is null");
  EXPECT_EQ(refusal({kCpu, kReference}, nullptr), "a composite has no policy");
  const auto composite = make_problem_composite({kCpu, kReference}, constant_policy(2, 2));
  EXPECT_THROW(composite->supports(SmallProblem().problem()), Error);
}

TEST(ProblemComposite, PlanIsForTheChildItWasPreparedFor) {
  const auto composite = make_problem_composite({kReference, kCpu}, mm_prefix_policy());
  const ImageProblem image({2, 4, 0, 0});
  const auto plan = composite->prepare(image.problem(), {});
  HostTensor out(DType::kF64, {3, 4, 16});
  Outputs outputs;
  outputs.out = out.view();
  plan->run(image.problem(), outputs);
  const ImageProblem past({0, 3, 0, 0});
  EXPECT_THROW(plan->run(past.problem(), outputs), Error);
}

TEST(ProblemBatch, HoldsLengthsTablesAndImages) {
  const ImageProblem problem({2, 4, 3, 3});
  const CommonAttentionMetadata batch = batch_of(problem.op);
  EXPECT_EQ(batch.query_start_loc, (std::vector<std::int32_t>{0, 2, 3}));
  EXPECT_EQ(batch.query_start_loc_cpu, batch.query_start_loc);
  EXPECT_EQ(batch.seq_lens, (std::vector<std::int32_t>{5, 3}));
  EXPECT_EQ(batch.seq_lens_cpu_upper_bound, batch.seq_lens);
  EXPECT_EQ(batch.max_query_len, 2);
  EXPECT_EQ(batch.max_seq_len, 5);
  EXPECT_EQ(batch.slot_mapping, (std::vector<std::int64_t>{15, 4, 18}));
  EXPECT_EQ(batch.mm_req_doc_ranges, (std::vector<RowImages>{{0, {{2, 4}}}}));
  EXPECT_EQ(batch.is_prefilling, (std::vector<bool>{true, false}));
  validate(batch);
  EXPECT_EQ(batch_of_request(problem.op, 1).query_start_loc, (std::vector<std::int32_t>{0, 1}));
  ImageProblem varlen({2, 4, 3, 3});
  varlen.make_varlen();
  EXPECT_EQ(batch_of(varlen.op).block_table, BlockTable());
  EXPECT_EQ(batch_of(varlen.op).slot_mapping, (std::vector<std::int64_t>{-1, -1, -1}));
}

}  // namespace
}  // namespace attn
