// Any way of cutting the keys of a row into parts, or the rows of a request into chunks, gives the
// answer of one pass.
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

// Union of two disjoint parts of the keys of each row, by the formula. A part without keys has lse
// -inf; its out is not looked at.
Answer merged(const Answer& a, const Answer& b) {
  Answer both = a;
  for (std::int64_t token = 0; token < a.num_tokens; ++token) {
    for (std::int64_t head = 0; head < a.num_heads; ++head) {
      const double lse_a = a.lse_at(token, head);
      const double lse_b = b.lse_at(token, head);
      if (lse_b == -kInf) continue;
      const double top = std::max(lse_a, lse_b);
      const double weight_a = std::exp(lse_a - top);
      const double weight_b = std::exp(lse_b - top);
      const auto row = static_cast<std::size_t>(token * a.num_heads + head);
      both.lse[static_cast<std::size_t>(head * a.num_tokens + token)] =
          top + std::log(weight_a + weight_b);
      for (std::int64_t d = 0; d < a.head_size_v; ++d) {
        const std::size_t at =
            row * static_cast<std::size_t>(a.head_size_v) + static_cast<std::size_t>(d);
        both.out[at] = lse_a == -kInf
                           ? b.out[at]
                           : (weight_a * a.out[at] + weight_b * b.out[at]) / (weight_a + weight_b);
      }
    }
  }
  return both;
}

// A part that holds nothing but the sinks of `problem`.
Answer sink_part(const LogicalProblem& problem, const Answer& like) {
  Answer sinks = like;
  std::fill(sinks.out.begin(), sinks.out.end(), 0.0);
  for (std::size_t i = 0; i < sinks.lse.size(); ++i) {
    sinks.lse[i] = problem.sinks.present()
                       ? problem.sinks.value(i / static_cast<std::size_t>(like.num_tokens))
                       : -kInf;
  }
  return sinks;
}

// For answers merged from `parts` parts: as if an exec had asked for them.
Closeness merging_bound(LogicalProblem problem, DType dtype, std::int64_t parts) {
  problem.settings.exec = {};
  problem.settings.exec.num_splits = parts;
  return twice_rounding(problem, dtype);
}

class Partition : public PropertyTest {};

INSTANTIATE_TEST_SUITE_P(, Partition, testing::ValuesIn(backends_under_test()), backend_name);

TEST_P(Partition, PartsOfTheKeysMergeToTheWholeInAnyOrder) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    problem.settings.lse_includes_sink = true;
    const Answer whole = answer(problem, config.memory);
    std::vector<Answer> parts;
    for (std::int64_t part = 0; part < 3; ++part) {  // few keys: some parts are empty
      LogicalProblem keys = problem;
      keys.sinks = {};
      hide_keys(keys, [&](auto r, auto, auto, auto k) {
        return draw_below(config.seed, static_cast<std::uint64_t>(r * 100000 + k), 3) != part;
      });
      parts.push_back(answer(keys, config.memory));
    }
    const Answer sinks = sink_part(problem, whole);
    const Closeness allowed = merging_bound(problem, whole.dtype, 4);
    expect_none(
        "one pass and ((0 + 1) + 2) + sink",
        difference(whole, merged(merged(merged(parts[0], parts[1]), parts[2]), sinks), allowed));
    expect_none(
        "one pass and (sink + 2) + (1 + 0)",
        difference(whole, merged(merged(sinks, parts[2]), merged(parts[1], parts[0])), allowed));
  });
}

TEST_P(Partition, EmptyPartIsTheIdentityWhateverItsOutHolds) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    problem.sinks = {};
    const Answer whole = answer(problem, config.memory);
    LogicalProblem nothing = problem;
    hide_keys(nothing, [](auto, auto, auto, auto) { return true; });
    Answer empty = answer(nothing, config.memory);
    for (const double lse : empty.lse) expect_that(lse == -kInf, "lse of no keys is -inf");
    for (const double out : empty.out) expect_that(out == 0.0, "out of no keys is 0");
    std::fill(empty.out.begin(), empty.out.end(), kNaN);
    expect_none("whole + empty", bit_difference(merged(whole, empty), whole));
  });
}

TEST_P(Partition, HonouredExecGivesTheAnswerOfOnePass) {
  ConfigSpace space;
  space.exec = true;
  space.output_codes = true;
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem asked = draw_problem(config);
    LogicalProblem plain = asked;
    plain.settings.exec = {};
    const Answer parts = answer(asked, config.memory);
    expect_none("in parts and in one pass", difference(parts, answer(plain, config.memory),
                                                       twice_rounding(asked, parts.dtype)));
  });
}

TEST_P(Partition, PhysicalShardsMergeToTheWhole) {
  ConfigSpace space;
  turn_off(space.attn_bias);
  turn_off(space.alibi);
  space.tree = false;
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    const std::int64_t ranks = 1 + draw_below(config.seed, 0, 4);
    const std::int64_t interleave = 1 + draw_below(config.seed, 1, 3);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      LogicalProblem alone = request_alone(problem, r);
      alone.settings.lse_includes_sink = true;
      const Answer whole = answer(alone, config.memory);
      const VisibleKeys visible(alone);
      Answer sum = sink_part(alone, whole);
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        std::vector<std::int64_t> positions;
        for (std::int64_t k = 0; k < alone.request(0).seq_len(); ++k) {
          if (k / interleave % ranks == rank) positions.push_back(k);
        }
        LogicalProblem shard = alone;  // what it shows is decided here, key by key
        shard.settings.mask = {};
        shard.causal_per_request = false;
        shard.has_mm_ranges = false;
        shard.attn_mask = {};
        shard.sinks = {};
        keep_keys(shard.request(0), positions);
        hide_keys(shard, [&](auto, auto h, auto row, auto k) {
          return !visible.of(0, h, row).contains(positions[static_cast<std::size_t>(k)]);
        });
        sum = merged(sum, answer(shard, config.memory));
      }
      expect_none(fmt::format("request {} whole and on {} ranks", r, ranks),
                  difference(whole, sum, merging_bound(alone, whole.dtype, ranks + 1)));
    }
  });
}

TEST_P(Partition, CommonPrefixThenTheRestGivesTheWhole) {
  ConfigSpace space;
  space.lengths = {Lengths::kEqual, Lengths::kRagged};
  space.masks = {MaskKind::kCausal, MaskKind::kNone};
  turn_off(space.alibi);
  space.attn_mask = false;
  turn_off(space.attn_bias);
  space.tree = false;
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      LogicalProblem alone = request_alone(problem, r);
      alone.settings.lse_includes_sink = true;
      const LogicalRequest& request = alone.request(0);
      const std::int64_t common = draw_below(config.seed, 7, request.context_len() + 1);
      const Answer whole = answer(alone, config.memory);
      LogicalProblem prefix = part_of(alone, 0, 0, request.query_len(), common);
      prefix.settings.mask.causal = false;
      LogicalProblem rest = alone;
      rest.sinks = {};
      std::vector<std::int64_t> positions;
      for (std::int64_t k = common; k < request.seq_len(); ++k) positions.push_back(k);
      keep_keys(rest.request(0), positions);
      expect_none(
          fmt::format("request {} whole and cut at key {}", r, common),
          difference(whole, merged(answer(prefix, config.memory), answer(rest, config.memory)),
                     merging_bound(alone, whole.dtype, 2)));
    }
  });
}

// Masks under which a row's answer does not depend on the rows behind it.
ConfigSpace chunkable() {
  ConfigSpace space;
  space.masks = {MaskKind::kCausal, MaskKind::kWindow, MaskKind::kWindowSinkTokens,
                 MaskKind::kChunked, MaskKind::kRswa};
  space.alibi = {AlibiForm::kNone, AlibiForm::kRow, AlibiForm::kZero, AlibiForm::kAbs,
                 AlibiForm::kSqrt};
  space.tree = false;
  return space;
}

// Rows of a request in chunks that end before the local rows `cuts`, each with the keys there are
// at that time.
void expect_chunks_give_the_rows(const LogicalProblem& alone, const std::vector<std::int64_t>& cuts,
                                 const std::function<Answer(const LogicalProblem&)>& answer) {
  const LogicalRequest& request = alone.request(0);
  const Answer whole = answer(alone);
  std::int64_t first = 0;
  std::vector<std::int64_t> ends = cuts;
  ends.push_back(request.query_len());
  for (const std::int64_t end : ends) {
    const std::int64_t keys = std::max<std::int64_t>(request.context_len() + end, 0);
    const Answer chunk = answer(part_of(alone, 0, first, end - first, keys));
    expect_none(
        fmt::format("rows from {} in one pass and as a chunk", first),
        difference(whole, first, chunk, 0, end - first, twice_rounding(alone, whole.dtype)));
    first = end;
  }
}

TEST_P(Partition, ChunkedPrefillGivesTheRowsOfOnePass) {
  for_all(chunkable(), [&](const ProblemConfig& config) {
    const LogicalProblem problem = draw_problem(config);
    for (std::int64_t r = 0; r < config.num_reqs; ++r) {
      const LogicalProblem alone = request_alone(problem, r);
      std::vector<std::int64_t> cuts;
      for (std::int64_t row = 1; row < alone.request(0).query_len(); ++row) {
        if (draw_below(config.seed, static_cast<std::uint64_t>(row), 4) == 0) cuts.push_back(row);
      }
      expect_chunks_give_the_rows(
          alone, cuts, [&](const LogicalProblem& part) { return answer(part, config.memory); });
    }
  });
}

TEST_P(Partition, DecodeRowByRowGivesTheRowsOfOnePass) {
  for_all(chunkable(), [&](const ProblemConfig& config) {
    const LogicalProblem alone = request_alone(draw_problem(config), 0);
    std::vector<std::int64_t> cuts;
    for (std::int64_t row = 1; row < alone.request(0).query_len(); ++row) cuts.push_back(row);
    expect_chunks_give_the_rows(
        alone, cuts, [&](const LogicalProblem& part) { return answer(part, config.memory); });
  });
}

TEST_P(Partition, ChunksThatCutNoImageRangeGiveTheRowsOfOnePass) {
  ConfigSpace space = chunkable();
  space.lengths = {Lengths::kEqual, Lengths::kRagged};
  space.masks = {MaskKind::kRanges, MaskKind::kRangesWindow, MaskKind::kRangesClamped};
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem alone = request_alone(draw_problem(config), 0);
    const LogicalRequest& request = alone.request(0);
    std::vector<std::int64_t> cuts;
    for (std::int64_t row = 1; row < request.query_len(); ++row) {
      const std::int64_t position = request.context_len() + row;
      const bool cut = std::any_of(request.mm_ranges.begin(), request.mm_ranges.end(),
                                   [position](const auto& range) {
                                     return range.first < position && position <= range.second;
                                   });
      if (!cut && draw_below(config.seed, static_cast<std::uint64_t>(row), 3) == 0) {
        cuts.push_back(row);
      }
    }
    expect_chunks_give_the_rows(
        alone, cuts, [&](const LogicalProblem& part) { return answer(part, config.memory); });
  });
}

}  // namespace
}  // namespace attn::property_tests
