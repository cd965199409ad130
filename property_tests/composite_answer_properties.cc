// What composites answer: the chosen child's answer and no other, with one cache.
//
// The long run, every batch under every policy:
//
//   RC_PARAMS="seed=S max_success=100000 max_size=100" attn_composite_properties_run
//     --gtest_filter='*ChosenChild*'
#include <fmt/core.h>

#include <iostream>
#include <map>
#include <optional>

#include "attn/composite.h"
#include "attn/executable_backend.h"
#include "attn/problem_composite.h"
#include "property_tests/composite_parts.h"
#include "property_tests/draw_problem.h"
#include "property_tests/drawn_batch.h"
#include "property_tests/judged_tensors.h"
#include "property_tests/operation_answer.h"
#include "property_tests/property.h"

namespace attn::property_tests {
namespace {

Tensors tensors_of(const Answer& answer) {
  Tensors tensors;
  tensors["out"] = HostTensor(
      answer.dtype, {answer.num_tokens, answer.num_heads, answer.head_size_v}, answer.out);
  tensors["lse"] = HostTensor(answer.dtype, {answer.num_heads, answer.num_tokens}, answer.lse);
  return tensors;
}

// The answers of both children to the problem behind a batch, asked directly.
class DirectAnswers {
 public:
  explicit DirectAnswers(const AttentionOp& op) : op_(op) {}

  const Answer& of(const std::string& child) {
    const auto found = answers_.find(child);
    if (found != answers_.end()) return found->second;
    return answers_.emplace(child, answer(backend_under_test(child), op_)).first->second;
  }

  void expect_right(const std::string& child) {
    const AttentionProblem problem(op_);
    if (!expected_) expected_ = answer_operation(backend_under_test("REFERENCE"), op_, true);
    const Judgement judgement =
        judge_tensors(problem, *expected_, backend_under_test("REFERENCE").contract(problem),
                      tensors_of(of(child)), backend_under_test(child).contract(problem));
    expect_that(judgement.verdict != Verdict::kFail,
                fmt::format("{} before the judge: {}", child, judgement.reason));
  }

 private:
  const AttentionOp& op_;
  std::map<std::string, Answer> answers_;
  std::optional<Tensors> expected_;
};

class CompositeAnswer : public PropertyTest {};
INSTANTIATE_TEST_SUITE_P(, CompositeAnswer, testing::Values("REFERENCE_CPU"), backend_name);

TEST_P(CompositeAnswer, IsTheChosenChildsBitForBitAndRightByTheJudge) {
  std::map<std::string, int> answered;
  for_all(batch_space(), [&](const ProblemConfig& config) {
    const DrawnBatch drawn = draw_batch(config);
    DirectAnswers direct(drawn.data.op());
    for (const NamedPolicy& policy : policies_of_two()) {
      const AttentionBackendPtr composite =
          composite_of({reference_child(), cpu_child()}, policy.policy, policy.name);
      const MetadataPtr metadata =
          composite->make_builder(drawn.group)->build(0, drawn.batch, false);
      const std::string child = leaf_of(*metadata).backend().name();
      const Answer routed = forward_answer(*composite->make_impl(drawn.layer), *metadata, drawn,
                                           direct.of(child).dtype);
      expect_none(fmt::format("{} answers under {}", child, policy.name),
                  bit_difference(routed, direct.of(child)));
      ++answered[policy.name + " " + child];
    }
    direct.expect_right("CPU");
  });
  for (const auto& [what, count] : answered) std::cout << fmt::format("{:32} {}\n", what, count);
}

TEST_P(CompositeAnswer, OfAWholeProblemIsTheChosenChilds) {
  const auto left = std::make_shared<StandIn>("LEFT", shared_cpu());
  const auto right = std::make_shared<StandIn>("RIGHT", shared_cpu());
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    const ProblemData data(draw_problem(config), config.memory);
    const AttentionProblem problem = data.problem();
    const Answer direct = property_tests::answer(*shared_cpu(), data.op());
    for (const NamedPolicy& policy : policies_of_two()) {
      const auto composite = make_problem_composite({left, right}, policy.policy);
      const ProblemRoute route = composite->route(problem);
      expect_that(composite->contract(problem) == shared_cpu()->contract(problem), "the contract");
      const int before[] = {left->num_answers(), right->num_answers()};
      const Answer routed = property_tests::answer(*composite, data.op());
      expect_none(fmt::format("an answer under {}", policy.name), bit_difference(routed, direct));
      const int ran = right->num_answers() - before[1];
      expect_that(left->num_answers() - before[0] == 1 - ran && route.path == std::vector<int>{ran},
                  fmt::format("child {} ran under {}", ran, policy.name));
    }
  });
}

// A child without image masks may be sent any batch by mm_prefix, and by `supports`.
TEST_P(CompositeAnswer, OfAChildWithoutImageMasksIsRight) {
  const auto plain = std::make_shared<StandIn>("CPU_WITHOUT_IMAGES", shared_cpu(),
                                               static_cast<std::uint32_t>(Feature::kMmPrefix));
  const AttentionBackendPtr child = make_executable_backend(plain, shared_reference());
  for_all(batch_space(), [&](const ProblemConfig& config) {
    const DrawnBatch drawn = draw_batch(config);
    for (const NamedPolicy& policy : policies_of_two()) {
      if (policy.sees_images_everywhere) continue;
      const AttentionBackendPtr composite =
          composite_of({reference_child(), child}, policy.policy, policy.name);
      const MetadataPtr metadata =
          composite->make_builder(drawn.group)->build(0, drawn.batch, false);
      const bool general = leaf_of(*metadata).backend().name() == "REFERENCE";
      const int before = plain->num_answers();
      const Answer routed = forward_answer(*composite->make_impl(drawn.layer), *metadata, drawn,
                                           general ? DType::kF64 : DType::kF32);
      expect_that(plain->num_answers() == before + (general ? 0 : 1), "the leaf that built runs");
      if (general) continue;
      const AttentionProblem problem = drawn.data.problem();
      const Judgement judgement = judge_tensors(
          problem, answer_operation(backend_under_test("REFERENCE"), drawn.data.op(), true),
          backend_under_test("REFERENCE").contract(problem), tensors_of(routed),
          plain->contract(problem));
      expect_that(judgement.verdict != Verdict::kFail,
                  fmt::format("{}: {}", policy.name, judgement.reason));
    }
  });
}

}  // namespace
}  // namespace attn::property_tests
