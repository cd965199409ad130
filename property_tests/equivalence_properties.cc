// Options at the end of their range, or said in another way, are the plain thing.
#include <cmath>

#include "core/contains.h"
#include "core/special_values.h"
#include "property_tests/draw_problem.h"
#include "property_tests/logical_edits.h"
#include "property_tests/property.h"
#include "property_tests/rounding.h"

namespace attn::property_tests {
namespace {

class Equivalence : public PropertyTest {
 protected:
  // A config of the space gives the same bits after `change`. `change` may alter both sides.
  void for_all_same_bits(ConfigSpace space,
                         const std::function<void(const ProblemConfig&, LogicalProblem&,
                                                  LogicalProblem&)>& change) const {
    space.exec = true;
    for_all(space, [&](const ProblemConfig& config) {
      LogicalProblem one = draw_problem(config);
      LogicalProblem other = one;
      change(config, one, other);
      expect_none("both ways",
                  bit_difference(answer(one, config.memory), answer(other, config.memory)));
    });
  }

  static ConfigSpace with_mask(std::vector<MaskKind> masks) {
    ConfigSpace space;
    space.masks = std::move(masks);
    return space;
  }

  // No smaller than any distance between a row and a key of the problem.
  static std::int64_t whole_length(const ProblemConfig& config, const LogicalProblem& problem) {
    return problem.max_seq_len() + draw_below(config.seed, 11, 2);
  }
};

INSTANTIATE_TEST_SUITE_P(, Equivalence, testing::ValuesIn(backends_under_test()), backend_name);

TEST_P(Equivalence, WindowOfAllKeysIsNoWindow) {
  for_all_same_bits(with_mask({MaskKind::kWindow, MaskKind::kRangesClamped, MaskKind::kLeftWindow}),
                    [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
                      one.settings.mask.window_left =
                          std::max<std::int64_t>(whole_length(config, one) - 1, 0);
                      other.settings.mask.window_left = MaskSpec::kUnbounded;
                    });
}

TEST_P(Equivalence, SinkTokensOfAllKeysAreNoWindow) {
  for_all_same_bits(with_mask({MaskKind::kWindow}),
                    [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
                      one.settings.mask.sink_token_length = whole_length(config, one);
                      other.settings.mask.window_left = MaskSpec::kUnbounded;
                    });
}

TEST_P(Equivalence, RightBoundOfZeroIsCausal) {
  for_all_same_bits(with_mask({MaskKind::kNone, MaskKind::kLeftWindow}),
                    [](const ProblemConfig&, LogicalProblem& one, LogicalProblem& other) {
                      one.settings.mask.window_right = 0;
                      other.settings.mask.causal = true;
                    });
}

TEST_P(Equivalence, ChunkOfAllKeysIsCausal) {
  for_all_same_bits(with_mask({MaskKind::kChunked}),
                    [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
                      one.settings.mask.attention_chunk_size =
                          std::max<std::int64_t>(whole_length(config, one), 1);
                      other.settings.mask.attention_chunk_size = 0;
                      other.settings.mask.attention_chunk_lookback = 0;
                    });
}

TEST_P(Equivalence, LookbackOverAllChunksIsCausal) {
  for_all_same_bits(with_mask({MaskKind::kChunked}),
                    [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
                      one.settings.mask.attention_chunk_lookback = whole_length(config, one);
                      other.settings.mask.attention_chunk_size = 0;
                      other.settings.mask.attention_chunk_lookback = 0;
                    });
}

TEST_P(Equivalence, SoftCapFarAboveEveryScoreIsNoCap) {
  for_all_same_bits(ConfigSpace(),
                    [](const ProblemConfig&, LogicalProblem& one, LogicalProblem& other) {
                      // A power of two: s / c and c * tanh(s / c) = c * (s / c) are exact.
                      one.settings.logits_soft_cap = 0x1p80;
                      other.settings.logits_soft_cap = 0.0;
                    });
}

TEST_P(Equivalence, RangesThatHoldNothingAreNoRanges) {
  for_all_same_bits(
      with_mask({MaskKind::kRanges, MaskKind::kRangesWindow, MaskKind::kRangesClamped}),
      [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
        for (LogicalRequest& request : one.requests) {
          const auto first = static_cast<int>(draw_below(config.seed, 5, 9));
          request.mm_ranges = {{0, 0}, {first, first}, {first, first - 1}, {-1, 3}};
          request.mm_ranges.resize(static_cast<std::size_t>(draw_below(config.seed, 6, 5)));
        }
        other.has_mm_ranges = false;
      });
}

TEST_P(Equivalence, ClampWithoutAWindowChangesNothing) {
  for_all_same_bits(with_mask({MaskKind::kRanges}),
                    [](const ProblemConfig&, LogicalProblem&, LogicalProblem& other) {
                      other.settings.mask.mm_prefix_clamp = true;
                    });
}

TEST_P(Equivalence, RswaWithAllKeysInThePrefixIsCausal) {
  for_all_same_bits(with_mask({MaskKind::kRswa}), [](const ProblemConfig& config,
                                                     LogicalProblem& one, LogicalProblem& other) {
    for (LogicalRequest& request : one.requests) {
      request.rswa_prefix_len = static_cast<std::int32_t>(whole_length(config, one));
    }
    other.settings.mask.rswa_window = 0;
  });
}

TEST_P(Equivalence, RswaWithoutAPrefixIsASlidingWindow) {
  for_all_same_bits(with_mask({MaskKind::kRswa}),
                    [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
                      for (LogicalRequest& request : one.requests) request.rswa_prefix_len = 0;
                      other.settings.mask.rswa_window = 0;
                      other.settings.mask.window_left = config.window - 1;
                    });
}

TEST_P(Equivalence, EqualFlagsPerRequestAreOneFlag) {
  for_all_same_bits(with_mask({MaskKind::kCausalPerRequest}),
                    [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
                      const bool causal = draw_below(config.seed, 8, 2) == 1;
                      for (LogicalRequest& request : one.requests) request.causal = causal;
                      other.causal_per_request = false;
                      other.settings.mask.causal = causal;
                    });
}

TEST_P(Equivalence, ChainOfDraftsIsCausal) {
  ConfigSpace space = with_mask({MaskKind::kNone});
  space.tree = false;
  space.lengths = {Lengths::kEqual, Lengths::kRagged};  // rows before position 0 see past a tree
  for_all_same_bits(space, [](const ProblemConfig&, LogicalProblem& one, LogicalProblem& other) {
    const std::int64_t n = one.max_query_len();
    one.qq_bias = HostTensor(DType::kF32, {n, n});
    for (std::int64_t i = 0; i < n * n; ++i) {
      if (i % n > i / n) one.qq_bias.set(-kInf, i / n, i % n);
    }
    other.settings.mask.causal = true;
  });
}

TEST_P(Equivalence, MaskOfTrueIsNoMask) {
  ConfigSpace space;
  space.attn_mask = false;
  for_all_same_bits(space, [](const ProblemConfig&, LogicalProblem& one, LogicalProblem&) {
    hide_keys(one, [](auto, auto, auto, auto) { return false; });
  });
}

TEST_P(Equivalence, BiasOfMinusInfinityIsAMask) {
  ConfigSpace space;
  turn_off(space.attn_bias);
  for_all_same_bits(
      space, [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
        const auto hidden = [&](std::int64_t r, std::int64_t h, std::int64_t row, std::int64_t k) {
          const std::int64_t place = ((r * 16 + h) * 256 + row) * 512 + k;
          return draw_below(config.seed, static_cast<std::uint64_t>(place), 3) == 0;
        };
        hide_keys(one, hidden);
        add_bias(other, [&](auto r, auto h, auto row, auto k) {
          return hidden(r, h, row, k) ? -kInf : 0.0;
        });
      });
}

TEST_P(Equivalence, AxesOfLengthOneStandForAllTheirIndices) {
  ConfigSpace space;
  for_all_same_bits(space, [](const ProblemConfig&, LogicalProblem&, LogicalProblem& other) {
    if (other.attn_mask.present()) {
      hide_keys(other, [](auto, auto, auto, auto) { return false; });
    }
    if (other.attn_bias.present()) {
      add_bias(other, [](auto, auto, auto, auto) { return 0.0; });
    }
  });
}

TEST_P(Equivalence, SinkOfMinusInfinityIsNoSink) {
  ConfigSpace space;
  turn_off(space.sinks);
  for_all_same_bits(space, [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem&) {
    one.sinks = HostTensor(DType::kF32, {one.num_heads});
    for (std::int64_t h = 0; h < one.num_heads; ++h) one.sinks.set(-kInf, h);
    one.settings.lse_includes_sink = draw_below(config.seed, 9, 2) == 1;
  });
}

TEST_P(Equivalence, OutDoesNotDependOnWhetherLseCountsTheSink) {
  ConfigSpace space;
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    LogicalProblem problem = draw_problem(config);
    problem.settings.lse_includes_sink = true;
    const Answer with = answer(problem, config.memory);
    problem.settings.lse_includes_sink = false;
    Answer without = answer(problem, config.memory);
    without.lse = with.lse;
    expect_none("out", bit_difference(with, without));
  });
}

TEST_P(Equivalence, GroupedHeadsAreHeadsWithCopiesOfTheirKeysAndValues) {
  for_all(ConfigSpace(), [&](const ProblemConfig& config) {
    const LogicalProblem grouped = draw_problem(config);
    LogicalProblem repeated = grouped;
    repeat_kv_heads(repeated);
    const Answer a = answer(grouped, config.memory);
    expect_none("grouped and repeated",
                difference(a, answer(repeated, config.memory), twice_rounding(grouped, a.dtype)));
  });
}

TEST_P(Equivalence, QuantisedCacheIsItsDecodedValues) {
  ConfigSpace space;
  space.kv = {KvFormat::kF8E4M3FN,         KvFormat::kF8E4M3FNUZ,      KvFormat::kF8E5M2,
              KvFormat::kInt8PerTokenHead, KvFormat::kFp8PerTokenHead, KvFormat::kNvfp4};
  space.families = {Family::kBell, Family::kAllCodes};
  space.exec = true;
  for_all(space, [&](const ProblemConfig& config) {
    const LogicalProblem stored = draw_problem(config);
    const std::vector<DType>& types = backend().capabilities().kv_dtypes;
    const bool f64 = contains(types, DType::kF64);
    LogicalProblem decoded = stored;
    decode_cache(decoded, f64 ? DType::kF64 : DType::kF32);  // float32: one more rounding
    const Answer a = answer(stored, config.memory);
    expect_none("codes and values",
                difference(a, answer(decoded, config.memory), twice_rounding(stored, a.dtype)));
  });
}

TEST_P(Equivalence, PowersOfTwoAsScalesOfFp8AreUnquantisedValues) {
  ConfigSpace space;
  space.kv = {KvFormat::kF8E4M3FN, KvFormat::kF8E5M2};
  space.query_dtypes = {DType::kF32};
  turn_off(space.scales);
  for_all_same_bits(space,
                    [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
                      const auto scale = [&](std::uint64_t i) {
                        return std::ldexp(1.0, static_cast<int>(draw_below(config.seed, i, 7)) - 4);
                      };
                      one.k_scale = HostTensor(DType::kF32, {1}, {scale(0)});
                      one.v_scale = HostTensor(DType::kF32, {1}, {scale(1)});
                      other = one;
                      decode_cache(other, DType::kF32);
                    });
}

TEST_P(Equivalence, OneScaleIsTheSameForEveryHeadAndRequest) {
  ConfigSpace space;
  space.kv = {KvFormat::kF8E4M3FN, KvFormat::kF32, KvFormat::kBF16};
  turn_off(space.scales);
  for_all_same_bits(
      space, [](const ProblemConfig& config, LogicalProblem& one, LogicalProblem& other) {
        const double k = 0.25 + static_cast<double>(draw_below(config.seed, 0, 16)) / 8.0;
        const double v = -0.5 - static_cast<double>(draw_below(config.seed, 1, 16)) / 8.0;
        const std::int64_t heads = one.num_kv_heads;
        const auto reqs = static_cast<std::int64_t>(one.requests.size());
        const auto copies = [](std::int64_t n, double scale) {
          return std::vector<double>(static_cast<std::size_t>(n), scale);
        };
        one.k_scale = one.q_scale = HostTensor(DType::kF32, {1}, {k});
        one.v_scale = HostTensor(DType::kF32, {1}, {v});
        other.k_scale = HostTensor(DType::kF32, {reqs, heads}, copies(reqs * heads, k));
        other.v_scale = HostTensor(DType::kF32, {heads}, copies(heads, v));
        other.q_scale = HostTensor(DType::kF32, {heads}, copies(heads, k));
      });
}

}  // namespace
}  // namespace attn::property_tests
