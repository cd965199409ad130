// Relations of differential attention. How far two answers may be apart: drift_alarm.h.
#include <fmt/core.h>

#include <cmath>
#include <vector>

#include "property_tests/drift_alarm.h"
#include "property_tests/operation_property.h"
#include "property_tests/problem_data.h"
#include "tests/scoped_workers.h"

namespace attn::property_tests {
namespace {

// Entries 0, 2, 4, ... of an axis; of length 1 it stands for all.
TensorView even_entries(TensorView view, int axis) {
  if (!view.present() || view.shape[axis] == 1) return view;
  view.shape[axis] /= 2;
  view.stride_bytes[axis] *= 2;
  return view;
}

// The first softmax as a problem of its own: even heads, with the values of both heads of a pair.
AttentionOp first_softmax(const AttentionOp& op, TensorStore& memory) {
  const std::int64_t pairs = op.num_kv_heads() / 2;
  const std::int64_t size = op.head_size_v();
  const std::int64_t rows = int_at(op.kv.kv_start_loc, op.num_reqs());
  HostTensor key(DType::kF64, {rows, pairs, op.head_size()});
  HostTensor value(DType::kF64, {rows, pairs, 2 * size});
  std::int64_t row = 0;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t k = 0; k < op.seq_len(r); ++k, ++row) {
      for (std::int64_t pair = 0; pair < pairs; ++pair) {
        for (std::int64_t d = 0; d < op.head_size(); ++d) {
          key.set(decode_key(op.kv, r, k, 2 * pair, d), row, pair, d);
        }
        for (std::int64_t d = 0; d < 2 * size; ++d) {
          value.set(decode_value(op.kv, r, k, 2 * pair + d / size, d % size), row, pair, d);
        }
      }
    }
  }
  AttentionOp first = op;
  first.query = even_entries(op.query, 1);
  first.q_scale = even_entries(op.q_scale, 0);
  first.bias.alibi_slopes = even_entries(op.bias.alibi_slopes, 0);
  first.bias.attn_bias = even_entries(op.bias.attn_bias, 1);
  first.mask.attn_mask = even_entries(op.mask.attn_mask, 1);
  first.kv.key = memory.keep(std::move(key));
  first.kv.value = memory.keep(std::move(value));
  first.kv.k_scale = first.kv.v_scale = {};
  return first;
}

class Differential : public OperationProperty {};

INSTANTIATE_TEST_SUITE_P(, Differential, testing::ValuesIn(reference_names()), reference_name);

TEST_P(Differential, WithoutLambdaAndNormItIsAttentionOfTheEvenHeads) {
  for_all<DifferentialConfig>([&](DifferentialConfig config) {
    config.norm = false;
    const ProblemData data(draw_paired_heads(config), config.attention.memory);
    DrawnOperation drawn = draw_difference(config, data.op());
    auto& op = drawn.as<DifferentialOp>();
    op.lambda = 0.0;
    op.lambda_init = 0.0;
    const AttentionOp first = first_softmax(op.attention, drawn.memory);
    Tensors expected = answer(first);
    expected.erase("lse");
    const DriftAlarm alarm(first, answer_operation(reference_backend(), first, true));
    require_none("attention and differential", alarm.difference(expected, answer(op), 2.0));
  });
}

TEST_P(Differential, LambdaInitMultipliesTheOutput) {
  for_all<DifferentialConfig>([&](const DifferentialConfig& config) {
    const ProblemData data(draw_paired_heads(config), config.attention.memory);
    DrawnOperation drawn = draw_difference(config, data.op());
    DifferentialOp whole = drawn.as<DifferentialOp>();
    whole.lambda_init = 0.0;
    Tensors expected = answer(whole);
    DifferentialOp quarter = whole;
    quarter.lambda_init = 0.75;
    HostTensor& out = expected.at("out");
    for (std::int64_t i = 0; i < out.num_units(); ++i) {
      out.set_code(
          i, encode(DType::kF64, decode(DType::kF64, out.code(i)) / 4.0, Overflow::kInfinity));
    }
    require_none("a quarter", bit_difference(expected, answer(quarter)));
  });
}

TEST_P(Differential, NormedRowsHaveTheRootMeanSquareOfTheirWeights) {
  for_all<DifferentialConfig>([&](DifferentialConfig config) {
    config.norm = true;
    const ProblemData data(draw_paired_heads(config), config.attention.memory);
    DrawnOperation drawn = draw_difference(config, data.op());
    DifferentialOp op = drawn.as<DifferentialOp>();
    op.eps = 0.0;
    op.lambda_init = 0.0;
    op.lambda = 0.0;  // nothing cancels
    const std::int64_t size = op.norm_weight.shape[0];
    op.norm_weight = drawn.memory.keep(
        HostTensor(DType::kF32, {size}, std::vector<double>(static_cast<std::size_t>(size), 1.0)));
    const Tensors normed = answer(op);
    const HostTensor& out = normed.at("out");
    for (std::int64_t first = 0; first < out.num_units(); first += size) {
      double square = 0.0;
      for (std::int64_t j = first; j < first + size; ++j) {
        const double z = decode(DType::kF64, out.code(j));
        square += z * z / static_cast<double>(size);
      }
      // A row of zeros has no direction: 0 / 0.
      require(std::isnan(square) || std::fabs(square - 1.0) <= 0x1p-40, "the mean square is 1");
    }
  });
}

TEST_P(Differential, RequestAloneHasTheBitsItHasInTheBatch) {
  for_all<DifferentialConfig>([&](const DifferentialConfig& config) {
    const LogicalProblem problem = draw_paired_heads(config);
    const ProblemData data(problem, config.attention.memory);
    const Tensors batch = answer(draw_difference(config, data.op()).operation);
    for (std::int64_t r = 0; r < config.attention.num_reqs; ++r) {
      const ProblemData alone(request_alone(problem, r), config.attention.memory);
      require_none(fmt::format("request {} in the batch and alone", r),
                   bit_difference(batch, problem.first_token(r),
                                  answer(draw_difference(config, alone.op()).operation), 0,
                                  problem.request(r).query_len()));
    }
  });
}

TEST_P(Differential, NumberOfWorkersKeepsEveryBit) {
  for_all<DifferentialConfig>([&](const DifferentialConfig& config) {
    const ProblemData data(draw_paired_heads(config), config.attention.memory);
    const DrawnOperation drawn = draw_difference(config, data.op());
    const Tensors one = answer(drawn.operation);
    const ScopedWorkers workers(3);
    require_none("one worker and three", bit_difference(one, answer(drawn.operation)));
  });
}

}  // namespace
}  // namespace attn::property_tests
