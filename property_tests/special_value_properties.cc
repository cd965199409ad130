// NaN, infinities and scores at the end of the range.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "core/special_values.h"
#include "property_tests/definition.h"
#include "property_tests/draw_problem.h"
#include "property_tests/logical_edits.h"
#include "property_tests/property.h"
#include "property_tests/rounding.h"

namespace attn::property_tests {
namespace {

class SpecialValues : public PropertyTest {
 protected:
  // `before` with NaN where poisoned(request, head, row) says so: lse when it is a key's NaN, and
  // the first `dims` of out.
  template <class Poisoned>
  static Answer with_nan(const LogicalProblem& problem, Answer before, Side side, std::int64_t dims,
                         const Poisoned& poisoned) {
    for (std::int64_t r = 0; r < static_cast<std::int64_t>(problem.requests.size()); ++r) {
      for (std::int64_t i = 0; i < problem.request(r).query_len() * problem.num_heads; ++i) {
        const std::int64_t row = i / problem.num_heads;
        const std::int64_t h = i % problem.num_heads;
        if (!poisoned(r, h, row)) continue;
        const std::int64_t token = problem.first_token(r) + row;
        if (side == Side::kKey) {
          before.lse[static_cast<std::size_t>(h * before.num_tokens + token)] = kNaN;
        }
        const std::int64_t first = (token * problem.num_heads + h) * problem.head_size_v;
        const std::int64_t count = side == Side::kKey ? problem.head_size_v : dims;
        for (std::int64_t d = 0; d < count; ++d) {
          before.out[static_cast<std::size_t>(first + d)] = kNaN;
        }
      }
    }
    return before;
  }

  // Poisons one key or value and expects NaN in exactly the rows that see it, every other bit kept.
  void expect_nan_reaches_its_readers(const ProblemConfig& config, Side side) const {
    LogicalProblem problem = draw_problem(config);
    const std::int64_t r = draw_below(config.seed, 0, config.num_reqs);
    if (problem.request(r).seq_len() == 0) return;
    const std::int64_t k = draw_below(config.seed, 1, problem.request(r).seq_len());
    const std::int64_t kv_head = draw_below(config.seed, 2, config.num_kv_heads);
    const Answer before = answer(problem, config.memory);
    const std::int64_t dims = put_nan(problem, side, r, k, kv_head);
    const Answer expected =
        with_nan(problem, before, side, dims, [&](auto request, auto h, auto row) {
          return request == r && h / config.group == kv_head &&
                 visible_keys(problem, r, h, row).contains(k);
        });
    expect_none(fmt::format("NaN in request {} key {} kv head {}", r, k, kv_head),
                bit_difference(expected, answer(problem, config.memory)));
  }
};

INSTANTIATE_TEST_SUITE_P(, SpecialValues, testing::ValuesIn(backends_under_test()), backend_name);

TEST_P(SpecialValues, NanInAKeyReachesExactlyTheRowsThatSeeIt) {
  ConfigSpace space;
  space.exec = true;
  for_all(space,
          [&](const ProblemConfig& config) { expect_nan_reaches_its_readers(config, Side::kKey); });
}

TEST_P(SpecialValues, NanInAValueReachesExactlyTheDimsOfTheRowsThatSeeIt) {
  ConfigSpace space;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    expect_nan_reaches_its_readers(config, Side::kValue);
  });
}

// However little the key weighs.
TEST_P(SpecialValues, InfinityInAValueReachesExactlyTheDimOfTheRowsThatSeeIt) {
  ConfigSpace space;
  space.kv = {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kF8E5M2};
  space.families = {Family::kBell, Family::kNegativeLogits, Family::kLargeLogits};
  turn_off(space.scales);
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    const std::int64_t r = draw_below(config.seed, 0, config.num_reqs);
    if (problem.request(r).seq_len() == 0) return;
    const std::int64_t k = draw_below(config.seed, 1, problem.request(r).seq_len());
    const std::int64_t kv_head = draw_below(config.seed, 2, config.num_kv_heads);
    add_bias(problem, [&](auto request, auto, auto, auto key) {
      return request == r && key == k ? -static_cast<double>(draw_below(config.seed, 3, 2000))
                                      : 0.0;
    });
    Answer expected = answer(problem, config.memory);
    const double infinity = draw_below(config.seed, 4, 2) == 0 ? kInf : -kInf;
    problem.request(r).value.set(infinity, k, kv_head, 0);
    const Answer actual = answer(problem, config.memory);
    for (std::int64_t i = 0; i < problem.request(r).query_len() * config.group; ++i) {
      const std::int64_t row = i / config.group;
      const std::int64_t h = kv_head * config.group + i % config.group;
      if (!visible_keys(problem, r, h, row).contains(k)) continue;
      const std::int64_t line = (problem.first_token(r) + row) * problem.num_heads + h;
      expected.out[static_cast<std::size_t>(line * problem.head_size_v)] = infinity;
    }
    expect_none(fmt::format("infinity in request {} key {} kv head {}", r, k, kv_head),
                bit_difference(expected, actual));
  });
}

// dim 0 of these families' queries is 4, so that of a key decides the sign.
TEST_P(SpecialValues, KeyOfScoreMinusInfinityIsHidden) {
  ConfigSpace space;
  space.kv = {KvFormat::kF32, KvFormat::kF16, KvFormat::kBF16, KvFormat::kF8E5M2};
  space.families = {Family::kNegativeLogits, Family::kLargeLogits};
  turn_off(space.scales);
  space.soft_cap = false;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    if (problem.settings.scale == 0.0) return;
    const auto infinite = [&](std::int64_t r, std::int64_t k) {
      return draw_below(config.seed, static_cast<std::uint64_t>(r * 1000 + k), 3) == 0;
    };
    LogicalProblem hidden = problem;
    hide_keys(hidden, [&](auto r, auto, auto, auto k) { return infinite(r, k); });
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      for (std::int64_t k = 0; k < problem.request(r).seq_len(); ++k) {
        for (std::int64_t h = 0; h < config.num_kv_heads && infinite(r, k); ++h) {
          problem.request(r).key.set(problem.settings.scale > 0.0 ? -kInf : kInf, k, h, 0);
        }
      }
    }
    expect_none("keys of score -inf and hidden ones",
                bit_difference(answer(problem, config.memory), answer(hidden, config.memory)));
  });
}

TEST_P(SpecialValues, NanInAQueryReachesExactlyItsRow) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    const std::int64_t r = draw_below(config.seed, 0, config.num_reqs);
    if (problem.request(r).query_len() == 0) return;
    const std::int64_t row = draw_below(config.seed, 1, problem.request(r).query_len());
    const std::int64_t head = draw_below(config.seed, 2, problem.num_heads);
    const Answer before = answer(problem, config.memory);
    problem.request(r).query.set(kNaN, row, head, 0);
    const Answer expected =
        with_nan(problem, before, Side::kKey, 0, [&](auto request, auto h, auto i) {
          return request == r && h == head && i == row && !visible_keys(problem, r, h, row).empty();
        });
    expect_none(fmt::format("NaN in request {} row {} head {}", r, row, head),
                bit_difference(expected, answer(problem, config.memory)));
  });
}

TEST_P(SpecialValues, NanInASinkReachesExactlyItsHead) {
  ConfigSpace space;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    if (!problem.sinks.present()) problem.sinks = HostTensor(DType::kF32, {problem.num_heads});
    const std::int64_t head = draw_below(config.seed, 0, problem.num_heads);
    const Answer before = answer(problem, config.memory);
    problem.sinks.set(kNaN, head);
    const Answer expected =
        with_nan(problem, before, Side::kKey, 0, [&](auto, auto h, auto) { return h == head; });
    expect_none(fmt::format("NaN in the sink of head {}", head),
                bit_difference(expected, answer(problem, config.memory)));
  });
}

TEST_P(SpecialValues, SinkOfPlusInfinityTakesAllTheWeight) {
  ConfigSpace space;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    problem.sinks = {};
    problem.settings.lse_includes_sink = config.lse_includes_sink;
    Answer expected = answer(problem, config.memory);
    for (double& out : expected.out) out = 0.0;
    for (double& lse : expected.lse) lse = config.lse_includes_sink ? kInf : lse;
    problem.sinks = HostTensor(DType::kF32, {problem.num_heads});
    for (std::int64_t h = 0; h < problem.num_heads; ++h) problem.sinks.set(kInf, h);
    expect_none("sinks of +inf", bit_difference(expected, answer(problem, config.memory)));
  });
}

// Scores near the end of float32: dim 0 holds powers of two whose product is 2^120, the rest 0.
LogicalProblem with_huge_scores(const ProblemConfig& config, LogicalProblem problem) {
  problem.settings.scale = 1.0;
  for (LogicalRequest& request : problem.requests) {
    const auto fill = [&](HostTensor& tensor, std::uint64_t salt) {
      const std::int64_t size = problem.head_size;
      for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
        const bool negative = draw_below(config.seed ^ salt, static_cast<std::uint64_t>(i), 2) == 0;
        const double value = i % size == 0 ? (negative ? -0x1p60 : 0x1p60) : 0.0;
        tensor.set_code(i, encode(tensor.dtype(), value, Overflow::kSaturate));
      }
    };
    fill(request.query, 1);
    fill(request.key, 2);
  }
  return problem;
}

ConfigSpace wide_types() {
  ConfigSpace space;
  space.query_dtypes = {DType::kF32, DType::kBF16};
  space.kv = {KvFormat::kF32, KvFormat::kBF16};
  turn_off(space.scales);
  return space;
}

TEST_P(SpecialValues, HugeScoresSaturateTheSoftCap) {
  ConfigSpace space = wide_types();
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem huge = with_huge_scores(config, draw_problem(config));
    huge.settings.logits_soft_cap = 4.0;
    LogicalProblem saturated = huge;  // cap * tanh of them is the cap with their sign
    saturated.settings.logits_soft_cap = 0.0;
    for (LogicalRequest& request : saturated.requests) {
      for (HostTensor* tensor : {&request.query, &request.key}) {
        for (std::int64_t i = 0; i < tensor->num_units(); ++i) {
          const double sign = decode(tensor->dtype(), tensor->code(i)) / 0x1p60;
          tensor->set_code(i, encode(tensor->dtype(), 2.0 * sign, Overflow::kSaturate));
        }
      }
    }
    const Answer capped = answer(huge, config.memory);
    expect_none("capped and already saturated",
                difference(capped, answer(saturated, config.memory),
                           twice_rounding(saturated, capped.dtype)));
  });
}

// In one pass: the lse of a part would have lost how many keys it counts.
TEST_P(SpecialValues, HugeScoresShareTheWeightAmongTheLargest) {
  ConfigSpace space = wide_types();
  turn_off(space.alibi);  // lost beside 2^120 in float32, not in exact arithmetic
  turn_off(space.attn_bias);
  space.tree = false;
  space.soft_cap = false;
  turn_off(space.sinks);
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem huge = with_huge_scores(config, draw_problem(config));
    const VisibleKeys visible(huge);
    const auto is_positive = [&](std::int64_t r, std::int64_t h, std::int64_t row, std::int64_t k) {
      return query_value(huge, r, row, h, 0) * key_value(huge, r, k, h / config.group, 0) > 0.0;
    };
    LogicalProblem uniform = huge;  // the largest of a row weigh alike, the others nothing
    hide_keys(uniform, [&](std::int64_t r, std::int64_t h, std::int64_t row, std::int64_t k) {
      const KeySet& keys = visible.of(r, h, row);
      const bool any = std::any_of(keys.begin(), keys.end(), [&](std::int64_t other) {
        return is_positive(r, h, row, other);
      });
      return any && !is_positive(r, h, row, k);
    });
    for (LogicalRequest& request : uniform.requests) request.query.fill(0);
    const Answer actual = answer(huge, config.memory);
    Answer expected = answer(uniform, config.memory);
    expected.lse = actual.lse;
    expect_none("huge scores and equal ones",
                difference(actual, expected, twice_rounding(uniform, actual.dtype)));
    for (const double lse : actual.lse) {
      expect_that(lse == -kInf || std::fabs(lse) == 0x1p120, fmt::format("lse is {}", lse));
    }
  });
}

}  // namespace
}  // namespace attn::property_tests
