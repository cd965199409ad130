// Relations of the indexer's logits. How far two answers may be apart: drift_alarm.h.
#include <vector>

#include "core/special_values.h"
#include "property_tests/drift_alarm.h"
#include "property_tests/operation_property.h"
#include "tests/scoped_workers.h"

namespace attn::property_tests {
namespace {

class Indexer : public OperationProperty {};

INSTANTIATE_TEST_SUITE_P(, Indexer, testing::ValuesIn(reference_names()), reference_name);

TEST_P(Indexer, RangeShowsItsKeysAndHidesTheRest) {
  for_all<IndexerConfig>([&](const IndexerConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<IndexerOp>();
    const Tensors ranged = answer(op);
    IndexerOp everything = op;
    everything.k_start = drawn.memory.keep(HostTensor(DType::kI32, {config.num_tokens}));
    everything.k_end = drawn.memory.keep(HostTensor(
        DType::kI32, {config.num_tokens},
        std::vector<double>(static_cast<std::size_t>(config.num_tokens), config.num_keys)));
    Tensors expected = answer(everything);
    HostTensor& logits = expected.at("logits");
    for (std::int64_t t = 0; t < config.num_tokens; ++t) {
      for (std::int64_t n = 0; n < config.num_keys; ++n) {
        const bool inside = int_at(op.k_start, t) <= n && n < int_at(op.k_end, t);
        if (!inside) logits.set(-kInf, t, n);
      }
    }
    require_none("the range's part of all logits", bit_difference(expected, ranged));
  });
}

TEST_P(Indexer, PositiveScaleOfAKeyMultipliesItsLogits) {
  for_all_finite<IndexerConfig>([&](const IndexerConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& scaled = drawn.as<IndexerOp>();
    IndexerOp plain = scaled;
    plain.k_scale = {};
    Tensors expected = answer(plain);
    HostTensor& logits = expected.at("logits");
    for (std::int64_t t = 0; t < config.num_tokens; ++t) {
      for (std::int64_t n = 0; n < config.num_keys; ++n) {
        double scale = 1.0;
        if (config.k_scale == IndexScale::kRow) scale = value_at(scaled.k_scale, n);
        if (config.k_scale == IndexScale::kColumn) scale = value_at(scaled.k_scale, n, 0);
        logits.set(logits.value(t, n) * scale, t, n);
      }
    }
    const DriftAlarm alarm(scaled, answer_operation(reference_backend(), scaled, true));
    require_none("before and after", alarm.difference(expected, answer(scaled), 2.0));
  });
}

TEST_P(Indexer, LogitsOfSingleHeadsAddUp) {
  for_all_finite<IndexerConfig>([&](const IndexerConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<IndexerOp>();
    Tensors sum = answer(op);
    HostTensor& total = sum.at("logits");
    const Tensors together = sum;
    for (std::int64_t i = 0; i < total.num_units(); ++i) {
      if (decode(DType::kF64, total.code(i)) != -kInf) total.set_code(i, 0);
    }
    for (std::int64_t h = 0; h < config.num_heads; ++h) {
      IndexerOp one = op;
      one.query = slice(op.query, 1, h, 1);
      one.weights = slice(op.weights, 1, h, 1);
      const Tensors own = answer(one);
      for (std::int64_t t = 0; t < config.num_tokens; ++t) {
        for (std::int64_t n = 0; n < config.num_keys; ++n) {
          if (total.value(t, n) == -kInf) continue;
          total.set(total.value(t, n) + own.at("logits").value(t, n), t, n);
        }
      }
    }
    const DriftAlarm alarm(op, answer_operation(reference_backend(), op, true));
    require_none("heads apart and together", alarm.difference(sum, together, 2.0));
  });
}

TEST_P(Indexer, NumberOfWorkersKeepsEveryBit) {
  for_all<IndexerConfig>([&](const IndexerConfig& config) {
    const DrawnOperation drawn = draw_operation(config);
    const Tensors one = answer(drawn.operation);
    const ScopedWorkers workers(3);
    require_none("one worker and three", bit_difference(one, answer(drawn.operation)));
  });
}

}  // namespace
}  // namespace attn::property_tests
