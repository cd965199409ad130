// Identities of softmax attention: linear in V, shifts of the scores, sinks, copies of keys and
// heads.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "attn/random.h"
#include "core/special_values.h"
#include "property_tests/draw_problem.h"
#include "property_tests/logical_edits.h"
#include "property_tests/property.h"
#include "property_tests/rounding.h"

namespace attn::property_tests {
namespace {

// An answer with every out and lse replaced.
template <class Out, class Lse>
Answer changed(const Answer& answer, const Out& out, const Lse& lse) {
  Answer result = answer;
  for (std::int64_t token = 0; token < answer.num_tokens; ++token) {
    for (std::int64_t head = 0; head < answer.num_heads; ++head) {
      result.lse[static_cast<std::size_t>(head * answer.num_tokens + token)] = lse(token, head);
      for (std::int64_t d = 0; d < answer.head_size_v; ++d) {
        const std::int64_t at = (token * answer.num_heads + head) * answer.head_size_v + d;
        result.out[static_cast<std::size_t>(at)] = out(token, head, d);
      }
    }
  }
  return result;
}

// Values v(request, key, kv head, dim) in float32.
template <class Value>
void set_values(LogicalProblem& problem, const Value& v) {
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(problem.requests.size()); ++r) {
    HostTensor& value = problem.request(r).value;
    for (std::int64_t k = 0; k < problem.request(r).seq_len(); ++k) {
      for (std::int64_t h = 0; h < problem.num_kv_heads; ++h) {
        for (std::int64_t d = 0; d < problem.head_size_v; ++d) value.set(v(r, k, h, d), k, h, d);
      }
    }
  }
}

// Without what a request, row or head would have to be looked up for.
ConfigSpace in_float32() {
  ConfigSpace space;
  space.kv = {KvFormat::kF32};
  turn_off(space.scales);
  space.exec = true;
  return space;
}

class Algebra : public PropertyTest {};

INSTANTIATE_TEST_SUITE_P(, Algebra, testing::ValuesIn(backends_under_test()), backend_name);

TEST_P(Algebra, OutputIsLinearInTheValues) {
  for_all(in_float32(), [&](const ProblemConfig& config) {
    constexpr double kFactor = -3.0;
    const auto integer = [&](std::uint64_t seed) {
      return [seed](std::int64_t r, std::int64_t k, std::int64_t h, std::int64_t d) {
        return small_integer(random_words(seed, random_index(r, k, h, d), RandomTensor::kValue, 7));
      };
    };
    const auto first = integer(config.seed);
    const auto second = integer(config.seed ^ 1);
    LogicalProblem problem = draw_problem(config);
    set_values(problem, first);
    const Answer a = answer(problem, config.memory);
    set_values(problem, second);
    const Answer b = answer(problem, config.memory);
    set_values(problem, [&](auto r, auto k, auto h, auto d) {
      return first(r, k, h, d) + kFactor * second(r, k, h, d);
    });
    const Answer sum = changed(
        a, [&](auto t, auto h, auto d) { return a.out_at(t, h, d) + kFactor * b.out_at(t, h, d); },
        [&](auto t, auto h) { return a.lse_at(t, h); });
    const Answer at_once = answer(problem, config.memory);
    set_values(problem, [](auto, auto, auto, auto) { return 32.0; });  // no |value| is larger
    expect_none("f(v1 - 3 v2) and f(v1) - 3 f(v2)",
                difference(at_once, sum, twice_rounding(problem, a.dtype)));
  });
}

TEST_P(Algebra, ConstantValuesComeBackLessTheShareOfTheSink) {
  ConfigSpace space;
  space.families = {Family::kConstantValues};
  space.kv = {KvFormat::kF32, KvFormat::kBF16, KvFormat::kF16, KvFormat::kF8E4M3FN};
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    problem.settings.lse_includes_sink = true;
    const Answer constant = answer(problem, config.memory);
    const Closeness allowed = twice_rounding(problem, constant.dtype);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      for (std::int64_t i = 0; i < problem.request(r).query_len() * problem.num_heads; ++i) {
        const std::int64_t token = problem.first_token(r) + i / problem.num_heads;
        const std::int64_t h = i % problem.num_heads;
        const double sink = problem.sinks.present() ? problem.sinks.value(h) : -kInf;
        const double lse = constant.lse_at(token, h);
        const double share = lse == -kInf ? 1.0 : std::exp(sink - lse);
        for (std::int64_t d = 0; d < problem.head_size_v; ++d) {
          if (problem.request(r).seq_len() == 0) continue;
          const double c = value_value(problem, r, 0, h / problem.num_queries_per_kv(), d);
          const double expected = c * (1.0 - share);
          expect_that(std::fabs(constant.out_at(token, h, d) - expected) <= allowed.out,
                      fmt::format("token {} head {}: out {} of a constant {} less {}", token, h,
                                  constant.out_at(token, h, d), c, share));
        }
      }
    }
  });
}

TEST_P(Algebra, OutputLiesWithinTheValues) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const Answer any = answer(problem, config.memory);
    const double slack = rounding_bound(problem, any.dtype).out;
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      const LogicalRequest& request = problem.request(r);
      for (std::int64_t h = 0; h < problem.num_heads; ++h) {
        for (std::int64_t d = 0; d < problem.head_size_v; ++d) {
          double low = 0.0;  // of a row without keys, and of a sink's share
          double high = 0.0;
          for (std::int64_t k = 0; k < request.seq_len(); ++k) {
            const double v = value_value(problem, r, k, h / problem.num_queries_per_kv(), d);
            low = std::min(low, v);
            high = std::max(high, v);
          }
          for (std::int64_t row = 0; row < request.query_len(); ++row) {
            const double out = any.out_at(problem.first_token(r) + row, h, d);
            expect_that(low - slack <= out && out <= high + slack,
                        fmt::format("out {} outside [{}, {}]", out, low, high));
          }
        }
      }
    }
  });
}

TEST_P(Algebra, ConstantAddedToARowsScoresShiftsItsLseOnly) {
  ConfigSpace space = in_float32();
  turn_off(space.attn_bias);
  for_all(space, [&](const ProblemConfig& config) {
    // With a sink the constant is one of the head, and the sink shifts too.
    const bool sinks = config.sinks != SinkKind::kNone;
    const auto shift = [&](std::int64_t r, std::int64_t h, std::int64_t row) {
      const std::int64_t place = sinks ? h : (r * 100 + h) * 1000 + row;
      return static_cast<double>(draw_below(config.seed, static_cast<std::uint64_t>(place), 16)) -
             8.0;
    };
    const LogicalProblem problem = draw_problem(config);
    LogicalProblem shifted = problem;
    add_bias(shifted, [&](auto r, auto h, auto row, auto) { return shift(r, h, row); });
    for (std::int64_t h = 0; sinks && h < problem.num_heads; ++h) {
      shifted.sinks.set(problem.sinks.value(h) + shift(0, h, 0), h);
    }
    const Answer before = answer(problem, config.memory);
    Answer back = answer(shifted, config.memory);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      for (std::int64_t i = 0; i < problem.request(r).query_len() * problem.num_heads; ++i) {
        const std::int64_t row = i / problem.num_heads;
        const std::int64_t h = i % problem.num_heads;
        back.lse[static_cast<std::size_t>(h * back.num_tokens + problem.first_token(r) + row)] -=
            shift(r, h, row);
      }
    }
    expect_none("before and after the shift",
                difference(before, back, twice_rounding(shifted, before.dtype)));
  });
}

TEST_P(Algebra, SinkIsOneMoreKeyWithoutValue) {
  ConfigSpace space;
  space.lengths = {Lengths::kEqual, Lengths::kRagged};
  space.masks = {MaskKind::kCausal, MaskKind::kNone};
  turn_off(space.alibi);
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem with_sink = draw_problem(config);
    with_sink.settings.lse_includes_sink = true;
    if (!with_sink.sinks.present()) {
      with_sink.sinks = HostTensor(DType::kF32, {with_sink.num_heads});
      with_sink.sinks.set(1.5, 0);
    }
    LogicalProblem with_key = with_sink;
    with_key.sinks = {};
    prepend_zero_key(with_key, [&](std::int64_t h) { return with_sink.sinks.value(h); });
    const Answer sink = answer(with_sink, config.memory);
    expect_none("a sink and a key of its score", difference(sink, answer(with_key, config.memory),
                                                            twice_rounding(with_key, sink.dtype)));
  });
}

TEST_P(Algebra, SinkTakesItsShareOfTheWeight) {
  ConfigSpace space;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem with = draw_problem(config);
    if (!with.sinks.present()) {
      with.sinks = HostTensor(DType::kF32, {with.num_heads});
      for (std::int64_t h = 0; h < with.num_heads; ++h) with.sinks.set(0.5 * double(h) - 1.0, h);
    }
    LogicalProblem without = with;
    without.sinks = {};
    without.settings.lse_includes_sink = true;
    const Answer bare = answer(without, config.memory);
    const auto sink = [&](std::int64_t h) { return with.sinks.value(h); };
    const Answer expected = changed(
        bare,
        [&](auto t, auto h, auto d) {
          const double lse = bare.lse_at(t, h);
          return lse == -kInf ? 0.0 : bare.out_at(t, h, d) / (1.0 + std::exp(sink(h) - lse));
        },
        [&](auto t, auto h) {
          const double lse = bare.lse_at(t, h);
          if (!with.settings.lse_includes_sink) return lse;
          const double top = std::max(lse, sink(h));
          return top == -kInf ? top : top + std::log(std::exp(lse - top) + std::exp(sink(h) - top));
        });
    expect_none(
        "with a sink, computed from without",
        difference(answer(with, config.memory), expected, twice_rounding(with, bare.dtype)));
  });
}

TEST_P(Algebra, KeyTwiceWeighsAsMuchAsABiasOfLnTwo) {
  ConfigSpace space = in_float32();
  space.masks = {MaskKind::kNone};
  space.attn_mask = false;
  turn_off(space.attn_bias);
  turn_off(space.alibi);
  space.tree = false;
  space.lengths = {Lengths::kEqual, Lengths::kRagged};
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    LogicalProblem twice = problem;
    LogicalProblem biased = problem;
    std::vector<std::int64_t> doubled;
    for (LogicalRequest& request : twice.requests) {
      std::vector<std::int64_t> positions;
      for (std::int64_t k = 0; k < request.seq_len(); ++k) positions.push_back(k);
      doubled.push_back(
          request.seq_len() == 0 ? -1 : draw_below(config.seed, doubled.size(), request.seq_len()));
      if (doubled.back() >= 0) positions.push_back(doubled.back());
      keep_keys(request, positions);
    }
    const float ln_2 = std::log(2.0f);  // the bias is float32: off by 2^-26 of itself at most
    add_bias(biased, [&](auto r, auto, auto, auto k) {
      return k == doubled[static_cast<std::size_t>(r)] ? ln_2 : 0.0f;
    });
    const Answer a = answer(twice, config.memory);
    Closeness allowed = twice_rounding(biased, a.dtype);
    const double bias_error = std::fabs(static_cast<double>(ln_2) - std::log(2.0));
    allowed.out += 2.0 * bias_error * largest_value(problem);
    allowed.lse += 2.0 * bias_error;
    expect_none("a key twice and once with ln 2",
                difference(a, answer(biased, config.memory), allowed));
  });
}

TEST_P(Algebra, OrderOfTheKeysDoesNotMatterWithoutPositions) {
  ConfigSpace space;
  space.masks = {MaskKind::kNone};
  space.attn_mask = false;
  turn_off(space.attn_bias);
  turn_off(space.alibi);
  space.tree = false;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    LogicalProblem shuffled = problem;
    for (LogicalRequest& request : shuffled.requests) {
      const std::vector<std::int32_t> order = random_permutation(
          config.seed, static_cast<std::int32_t>(request.seq_len()), RandomTensor::kBlockTable, 0);
      keep_keys(request, std::vector<std::int64_t>(order.begin(), order.end()));
    }
    const Answer a = answer(problem, config.memory);
    expect_none("two orders of the keys",
                difference(a, answer(shuffled, config.memory), twice_rounding(problem, a.dtype)));
  });
}

// Of values into the answer, of keys against the scale. In the smallest codes of the type: a
// backend that takes subnormal ones for 0 loses them.
TEST_P(Algebra, PowersOfTwoComeOutOfTheCache) {
  ConfigSpace space;
  space.kv = {KvFormat::kF16, KvFormat::kF8E4M3FN, KvFormat::kF8E4M3FNUZ, KvFormat::kF8E5M2};
  turn_off(space.scales);
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem usual = draw_problem(config);
    LogicalProblem smallest = usual;
    const double unit = decode(usual.kv_dtype, 1);
    const auto set_integers = [&](LogicalProblem& problem, double factor) {
      for (LogicalRequest& request : problem.requests) {
        for (HostTensor* tensor : {&request.key, &request.value}) {
          const RandomTensor which =
              tensor == &request.key ? RandomTensor::kKey : RandomTensor::kValue;
          for (std::int64_t i = 0; i < tensor->num_units(); ++i) {
            const double integer =
                small_integer(random_words(config.seed, static_cast<std::uint64_t>(i), which, 7));
            tensor->set_code(i, encode(tensor->dtype(), factor * integer, Overflow::kSaturate));
          }
        }
      }
    };
    set_integers(usual, 1.0);
    set_integers(smallest, unit);
    smallest.settings.scale /= unit;
    const Answer a = answer(smallest, config.memory);
    const Answer back = changed(
        a, [&](auto t, auto h, auto d) { return a.out_at(t, h, d) / unit; },
        [&](auto t, auto h) { return a.lse_at(t, h); });
    expect_none("integers and the smallest codes",
                difference(answer(usual, config.memory), back, twice_rounding(usual, a.dtype)));
  });
}

TEST_P(Algebra, ScaleOfTwiceTheQueryIsHalfTheScale) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    LogicalProblem other = problem;
    other.settings.scale *= 0.25;
    other.q_scale = HostTensor(DType::kF32, {problem.num_kv_heads});
    for (std::int64_t h = 0; h < problem.num_kv_heads; ++h) {
      double scale = 4.0;
      if (problem.q_scale.present()) {
        scale *= problem.q_scale.value(problem.q_scale.shape()[0] == 1 ? 0 : h);
      }
      other.q_scale.set(scale, h);
    }
    // Powers of two only move exponents.
    expect_none("scale / 4 and q_scale * 4",
                bit_difference(answer(problem, config.memory), answer(other, config.memory)));
  });
}

}  // namespace
}  // namespace attn::property_tests
