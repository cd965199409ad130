// Which keys a row sees, exactly: data that tell which keys took part, and data that must not tell.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "attn/reference.h"
#include "core/special_values.h"
#include "property_tests/definition.h"
#include "property_tests/draw_problem.h"
#include "property_tests/logical_edits.h"
#include "property_tests/problem_data.h"
#include "property_tests/property.h"

namespace attn::property_tests {
namespace {

// The keys that an answer to the family kMembership lists. All visible keys weigh 1/n, so lse is
// ln n, and n times dim d of out is a set of bits: keys 8 d to 8 d + 7.
KeySet listed_keys(const Answer& answer, std::int64_t token, std::int64_t head) {
  KeySet keys;
  const double lse = answer.lse_at(token, head);
  const double count = lse == -kInf ? 0.0 : std::exp(lse);
  const double n = std::nearbyint(count);
  expect_that(std::fabs(count - n) < 0.01, fmt::format("lse {} is no logarithm of a count", lse));
  for (std::int64_t d = 0; d < answer.head_size_v; ++d) {
    const double bits = n * answer.out_at(token, head, d);
    const auto set = static_cast<std::int64_t>(std::nearbyint(bits));
    expect_that(std::fabs(bits - static_cast<double>(set)) < 0.01 && set >= 0 && set < 256,
                fmt::format("{} times out is {}, no set of bits", n, bits));
    for (std::int64_t bit = 0; bit < 8; ++bit) {
      if ((set >> bit & 1) != 0) keys.insert(8 * d + bit);
    }
  }
  expect_that(static_cast<double>(keys.size()) == n,
              fmt::format("lse counts {} keys, out lists {}", n, fmt::join(keys, ",")));
  return keys;
}

// Calls body(request, head, row, token) for every row of a problem.
template <class Body>
void for_rows(const LogicalProblem& problem, const Body& body) {
  for (std::int64_t r = 0; r < static_cast<std::int64_t>(problem.requests.size()); ++r) {
    for (std::int64_t row = 0; row < problem.request(r).query_len(); ++row) {
      for (std::int64_t h = 0; h < problem.num_heads; ++h) {
        body(r, h, row, problem.first_token(r) + row);
      }
    }
  }
}

class Mask : public PropertyTest {
 protected:
  // Every row lists, under `smaller`, keys that it lists under `larger`.
  void expect_within(const ProblemConfig& config, const LogicalProblem& smaller,
                     const LogicalProblem& larger) const {
    const Answer few = answer(smaller, config.memory);
    const Answer many = answer(larger, config.memory);
    for_rows(smaller, [&](auto, auto h, auto row, auto token) {
      const KeySet a = listed_keys(few, token, h);
      const KeySet b = listed_keys(many, token, h);
      expect_that(
          std::includes(b.begin(), b.end(), a.begin(), a.end()),
          fmt::format("row {} sees {}, not within {}", row, fmt::join(a, ","), fmt::join(b, ",")));
    });
  }
};

INSTANTIATE_TEST_SUITE_P(, Mask, testing::ValuesIn(backends_under_test()), backend_name);

TEST_P(Mask, RowsSeeExactlyTheKeysOfTheDefinition) {
  ConfigSpace space = masks_only(Family::kMembership);
  space.attn_bias = {BiasKind::kNone, BiasKind::kSomeMasked};  // those of -inf only, below
  space.tree = true;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    for (HostTensor* bias : {&problem.attn_bias, &problem.qq_bias}) {
      for (std::int64_t i = 0; i < bias->num_units(); ++i) {
        if (std::isfinite(decode(bias->dtype(), bias->code(i)))) bias->set_code(i, 0);
      }
    }
    const Answer listed = answer(problem, config.memory);
    for_rows(problem, [&](auto r, auto h, auto row, auto token) {
      const KeySet expected = visible_keys(problem, r, h, row);
      const KeySet seen = listed_keys(listed, token, h);
      expect_that(seen == expected,
                  fmt::format("request {} row {} head {} sees {}, should see {}", r, row, h,
                              fmt::join(seen, ","), fmt::join(expected, ",")));
    });
  });
}

class VisibleRanges : public PropertyTest {};

INSTANTIATE_TEST_SUITE_P(, VisibleRanges, testing::Values("REFERENCE"), backend_name);

TEST_P(VisibleRanges, AreTheKeysOfTheDefinitionInMaximalRanges) {
  for_all(ConfigSpace(), [](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const ProblemData data(problem, config.memory);
    for_rows(problem, [&](auto r, auto h, auto row, auto) {
      KeySet keys;
      std::int64_t last_end = -1;
      for (const KeyRange& range : visible_ranges(data.op(), r, h, row)) {
        expect_that(last_end < range.begin && range.begin < range.end,
                    fmt::format("range [{}, {}) after {}", range.begin, range.end, last_end));
        for (std::int64_t k = range.begin; k < range.end; ++k) keys.insert(k);
        last_end = range.end;
      }
      expect_that(keys == visible_keys(problem, r, h, row),
                  fmt::format("request {} row {} head {}: {}", r, row, h, fmt::join(keys, ",")));
    });
  });
}

TEST_P(Mask, ClampedRangesAreWithinUnclampedWithinNonCausal) {
  ConfigSpace space = masks_only(Family::kMembership);
  space.masks = {MaskKind::kRangesClamped};
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem clamped = draw_problem(config);
    LogicalProblem unclamped = clamped;
    unclamped.settings.mask.mm_prefix_clamp = false;
    LogicalProblem all = clamped;
    all.settings.mask = {};
    all.has_mm_ranges = false;
    expect_within(config, clamped, unclamped);
    expect_within(config, unclamped, all);
  });
}

TEST_P(Mask, WindowIsWithinCausal) {
  ConfigSpace space = masks_only(Family::kMembership);
  space.masks = {MaskKind::kWindow, MaskKind::kWindowSinkTokens, MaskKind::kChunked,
                 MaskKind::kRswa};
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem limited = draw_problem(config);
    LogicalProblem causal = limited;
    causal.settings.mask = {};
    causal.settings.mask.causal = true;
    expect_within(config, limited, causal);
  });
}

TEST_P(Mask, WindowOfWShowsTheLastWKeysWithTheRowsOwn) {
  ConfigSpace space = masks_only(Family::kMembership);
  space.masks = {MaskKind::kWindow};
  space.attn_mask = false;
  space.lengths = {Lengths::kEqual, Lengths::kRagged};
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const Answer listed = answer(problem, config.memory);
    for_rows(problem, [&](auto r, auto h, auto row, auto token) {
      const std::int64_t q = problem.request(r).context_len() + row;
      const KeySet seen = listed_keys(listed, token, h);
      expect_that(!seen.empty() && *seen.rbegin() == q &&
                      static_cast<std::int64_t>(seen.size()) ==
                          std::min<std::int64_t>(config.window, q + 1),
                  fmt::format("row at {} sees {} with a window of {}", q, fmt::join(seen, ","),
                              config.window));
    });
  });
}

TEST_P(Mask, DisjointImagesNeverSeeALaterImage) {
  ConfigSpace space = masks_only(Family::kMembership);
  space.masks = {MaskKind::kRanges};
  space.lengths = {Lengths::kEqual, Lengths::kRagged};
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    for (LogicalRequest& request : problem.requests) {
      const int start = static_cast<int>(draw_below(config.seed, 3, 6));
      const int size = 2 + static_cast<int>(draw_below(config.seed, 4, 5));
      request.mm_ranges = {{start, start + size - 1}, {start + size, start + 2 * size - 1}};
    }
    const Answer listed = answer(problem, config.memory);
    for_rows(problem, [&](auto r, auto h, auto row, auto token) {
      const LogicalRequest& request = problem.request(r);
      const std::int64_t q = request.context_len() + row;
      const KeySet seen = listed_keys(listed, token, h);
      const int second_image = request.mm_ranges[1].first;
      expect_that(q >= second_image || seen.lower_bound(second_image) == seen.end(),
                  fmt::format("row at {} sees {}", q, fmt::join(seen, ",")));
    });
  });
}

TEST_P(Mask, ChangingHiddenKeysNeverChangesABitOfARow) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    ProblemConfig other_seed = config;
    other_seed.lengths = Lengths::kEqual;  // at least as many keys of every request
    other_seed.seed ^= 1;
    const LogicalProblem other = draw_problem(other_seed);
    const Answer before = answer(problem, config.memory);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      const LogicalRequest& request = problem.request(r);
      if (request.query_len() == 0) continue;
      const auto draw = static_cast<std::uint64_t>(r);
      const std::int64_t row = draw_below(config.seed, draw, request.query_len());
      LogicalProblem changed = problem;
      KeySet seen;
      for (std::int64_t h = 0; h < problem.num_heads; ++h) {
        seen.merge(visible_keys(problem, r, h, row));
      }
      for (std::int64_t k = 0; k < request.seq_len(); ++k) {
        if (!seen.contains(k)) replace_key_and_value(changed, other, r, k);
      }
      const std::int64_t token = problem.first_token(r) + row;
      expect_none(fmt::format("request {} row {} with other hidden keys", r, row),
                  bit_difference(before, token, answer(changed, config.memory), token, 1));
    }
  });
}

TEST_P(Mask, ChangingAVisibleValueChangesTheRowByItsShare) {
  ConfigSpace space = masks_only(Family::kExactLane);
  space.kv = {KvFormat::kF32};
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    if (problem.request(0).seq_len() == 0) return;
    const std::int64_t key = draw_below(config.seed, 0, problem.request(0).seq_len());
    constexpr double kStep = 4096.0;
    LogicalProblem changed = problem;
    for (std::int64_t h = 0; h < problem.num_kv_heads; ++h) {
      HostTensor& value = changed.request(0).value;
      value.set(value.value(key, h, 0) + kStep, key, h, 0);
    }
    const Answer before = answer(problem, config.memory);
    const Answer after = answer(changed, config.memory);
    for_rows(problem, [&](auto r, auto h, auto row, auto token) {
      const KeySet keys = visible_keys(problem, r, h, row);
      const bool sees = r == 0 && keys.contains(key);
      const double expected = sees ? kStep / static_cast<double>(keys.size()) : 0.0;
      const double step = after.out_at(token, h, 0) - before.out_at(token, h, 0);
      // Either answer is at most 4096 + 8, rounded to float32 a few times.
      const double allowed = sees ? 0x1p-20 * kStep : 0.0;
      expect_that(std::fabs(step - expected) <= allowed,
                  fmt::format("request {} row {} head {}: key {} changes out by {}, should by {}",
                              r, row, h, key, step, expected));
    });
  });
}

TEST_P(Mask, RowsWithoutKeysAnswerZeroAndTheSink) {
  ConfigSpace space;
  space.lengths = {Lengths::kBeyond, Lengths::kRagged};
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const Answer all = answer(problem, config.memory);
    bool any = false;
    for_rows(problem, [&](auto r, auto h, auto row, auto token) {
      if (!visible_keys(problem, r, h, row).empty()) return;
      any = true;
      const bool sink = problem.sinks.present() && problem.settings.lse_includes_sink;
      const double lse = sink ? problem.sinks.value(h) : -kInf;
      expect_that(all.lse_at(token, h) == lse,
                  fmt::format("lse {} instead of {}", all.lse_at(token, h), lse));
      for (std::int64_t d = 0; d < problem.head_size_v; ++d) {
        expect_that(all.out_at(token, h, d) == 0.0, "out of a row without keys is not 0");
      }
    });
    RC_CLASSIFY(any, "rows without keys");
  });
}

TEST_P(Mask, RequestThatSeesNothingChangesNoBitOfTheOthers) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    LogicalProblem all = draw_problem(config);
    LogicalProblem without_first = all;
    hide_keys(all, [](auto, auto, auto, auto) { return false; });
    hide_keys(without_first, [](auto r, auto, auto, auto) { return r == 0; });
    const std::int64_t first = all.request(0).query_len();
    expect_none("the other requests", bit_difference(answer(all, config.memory), first,
                                                     answer(without_first, config.memory), first,
                                                     all.num_tokens() - first));
  });
}

}  // namespace
}  // namespace attn::property_tests
