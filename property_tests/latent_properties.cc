// Relations of multi-head latent attention, dense and sparse: forms, exec, memory, batches.
#include <fmt/core.h>

#include "property_tests/drift_alarm.h"
#include "property_tests/latent_as_attention.h"
#include "property_tests/latent_property.h"
#include "tests/scoped_workers.h"

namespace attn::property_tests {
namespace {

// The absorbed query of an expanded problem: q_nope * w_uk ‖ q_rope, in F64.
HostTensor absorbed_query(const MlaOp& op) {
  const std::int64_t nope = op.qk_nope_head_dim;
  HostTensor query(DType::kF64,
                   {op.query.shape[0], op.query.shape[1], op.kv_lora_rank + op.qk_rope_head_dim});
  const std::int64_t tokens = int_at(op.query_start_loc, op.seq_lens.shape[0]);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t h = 0; h < op.query.shape[1]; ++h) {
      for (std::int64_t l = 0; l < op.kv_lora_rank; ++l) {
        long double sum = 0.0L;
        for (std::int64_t p = 0; p < nope; ++p) {
          sum += static_cast<long double>(value_at(op.query, t, h, p)) * value_at(op.w_uk, l, h, p);
        }
        query.set(static_cast<double>(sum), t, h, l);
      }
      for (std::int64_t d = 0; d < op.qk_rope_head_dim; ++d) {
        query.set(value_at(op.query, t, h, nope + d), t, h, op.kv_lora_rank + d);
      }
    }
  }
  return query;
}

// out * w_uv of an absorbed answer.
HostTensor projected_out(const MlaOp& op, const HostTensor& latent) {
  HostTensor out(DType::kF64, {latent.shape()[0], latent.shape()[1], op.w_uv.shape[2]});
  for (std::int64_t t = 0; t < out.shape()[0]; ++t) {
    for (std::int64_t h = 0; h < out.shape()[1]; ++h) {
      for (std::int64_t j = 0; j < out.shape()[2]; ++j) {
        long double sum = 0.0L;
        for (std::int64_t l = 0; l < op.kv_lora_rank; ++l) {
          sum += static_cast<long double>(latent.value(t, h, l)) * value_at(op.w_uv, l, h, j);
        }
        out.set(static_cast<double>(sum), t, h, j);
      }
    }
  }
  return out;
}

const TensorView& query_start_loc(const Operation& operation) {
  const auto* sparse = std::get_if<MlaSparseOp>(&operation);
  return sparse != nullptr ? sparse->mla.query_start_loc
                           : std::get<MlaOp>(operation).query_start_loc;
}

template <class Config>
void expect_requests_alone_as_in_the_batch(const Backend& backend, const Config& config,
                                           int num_reqs) {
  const DrawnOperation batch = draw_operation(config);
  const Tensors together = answer_operation(backend, batch.operation);
  const TensorView& starts = query_start_loc(batch.operation);
  for (int r = 0; r < num_reqs; ++r) {
    const DrawnOperation alone = draw_operation(config, r);
    require_none(
        fmt::format("request {} in the batch and alone", r),
        bit_difference(together, int_at(starts, r), answer_operation(backend, alone.operation), 0,
                       int_at(starts, r + 1) - int_at(starts, r)));
  }
}

INSTANTIATE_TEST_SUITE_P(, Latent, testing::ValuesIn(reference_names()), reference_name);

TEST_P(Latent, AbsorbedQueryGivesTheAnswerOfTheExpandedForm) {
  for_all_finite<LatentConfig>([&](LatentConfig config) {
    config.expanded = true;
    DrawnOperation drawn = draw_operation(config);
    const MlaOp& expanded = drawn.as<MlaOp>();
    MlaOp absorbed = expanded;
    absorbed.form = MlaForm::kAbsorbed;
    absorbed.query = drawn.memory.keep(absorbed_query(expanded));
    absorbed.qk_nope_head_dim = 0;
    absorbed.w_uk = absorbed.w_uv = {};
    const Tensors latent = answer(absorbed);
    const Tensors projected = {{"lse", latent.at("lse")},
                               {"out", projected_out(expanded, latent.at("out"))}};
    const DriftAlarm alarm(expanded, answer_operation(reference_backend(), expanded, true));
    require_none("expanded and absorbed", alarm.difference(answer(expanded), projected, 2.0));
  });
}

TEST_P(Latent, HonouredExecGivesTheAnswerOfOnePass) {
  for_all_finite<LatentConfig>([&](const LatentConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    MlaOp one_pass = drawn.as<MlaOp>();
    one_pass.exec = {};
    expect_close(one_pass, drawn.operation);
  });
}

TEST_P(Latent, OrderOfPhysicalBlocksKeepsEveryBit) {
  for_all<LatentConfig>([&](const LatentConfig& config) {
    LatentConfig other = config;
    other.memory.block_order = config.seed | 1;
    other.memory.spare_blocks += 2;
    expect_same_bits(draw_operation(config).operation, draw_operation(other).operation);
  });
}

TEST_P(Latent, OrderOfPhysicalBlocksKeepsEveryBitOfSparseRows) {
  for_all<SparseConfig>([&](const SparseConfig& config) {
    SparseConfig other = config;
    other.mla.memory.block_order = config.mla.seed | 1;
    other.mla.memory.spare_blocks += 2;
    expect_same_bits(draw_operation(config).operation, draw_operation(other).operation);
  });
}

TEST_P(Latent, MemoryThatNoRowAddressesNeverEntersTheAnswer) {
  for_all<LatentConfig>([&](LatentConfig config) {
    config.memory.fill = Fill::kZero;
    const DrawnOperation clean = draw_operation(config);
    for (const Fill fill : {Fill::kNaN, Fill::kMinusInfinity, Fill::kLargest}) {
      config.memory.fill = fill;
      expect_same_bits(clean.operation, draw_operation(config).operation);
    }
  });
}

TEST_P(Latent, MemoryThatNoListAddressesNeverEntersTheAnswer) {
  for_all<SparseConfig>([&](SparseConfig config) {
    config.mla.memory.fill = Fill::kZero;
    const DrawnOperation clean = draw_operation(config);
    for (const Fill fill : {Fill::kNaN, Fill::kMinusInfinity, Fill::kLargest}) {
      config.mla.memory.fill = fill;
      expect_same_bits(clean.operation, draw_operation(config).operation);
    }
  });
}

TEST_P(Latent, RequestAloneHasTheBitsItHasInTheBatch) {
  for_all<LatentConfig>([&](const LatentConfig& config) {
    expect_requests_alone_as_in_the_batch(backend(), config, config.num_reqs);
  });
}

TEST_P(Latent, SparseRequestAloneHasTheBitsItHasInTheBatch) {
  for_all<SparseConfig>([&](const SparseConfig& config) {
    expect_requests_alone_as_in_the_batch(backend(), config, config.mla.num_reqs);
  });
}

TEST_P(Latent, NumberOfWorkersKeepsEveryBit) {
  for_all<SparseConfig>([&](const SparseConfig& config) {
    const DrawnOperation sparse = draw_operation(config);
    const DrawnOperation dense = draw_operation(config.mla);
    const Tensors one_sparse = answer(sparse.operation);
    const Tensors one_dense = answer(dense.operation);
    const ScopedWorkers workers(3);
    require_none("sparse rows by one worker and three",
                 bit_difference(one_sparse, answer(sparse.operation)));
    require_none("dense rows by one worker and three",
                 bit_difference(one_dense, answer(dense.operation)));
  });
}

TEST_P(Latent, IsAttentionOfAllHeadsOverOneLatentHead) {
  for_all_finite<LatentConfig>([&](LatentConfig config) {
    if (config.cache == LatentCache::kFp8DsMla) config.cache = LatentCache::kBF16;
    config.expanded = false;
    DrawnOperation drawn = draw_operation(normalised(config));
    const AttentionOp attention = attention_over_latents(drawn.as<MlaOp>(), drawn.memory);
    expect_close(attention, drawn.operation);
  });
}

}  // namespace
}  // namespace attn::property_tests
