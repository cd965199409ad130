// Relations of the lists of sparse latent attention. How far two answers may be apart:
// drift_alarm.h.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "core/special_values.h"
#include "property_tests/drift_alarm.h"
#include "property_tests/latent_as_attention.h"
#include "property_tests/latent_property.h"

namespace attn::property_tests {
namespace {

DriftAlarm alarm_of(const Operation& operation) {
  return {operation, answer_operation(reference_backend(), operation, true)};
}

// How many places of its list a row keeps.
std::int64_t kept(const MlaSparseOp& op, std::int64_t token) {
  return op.topk_lens.present() ? int_at(op.topk_lens, token) : op.topk_indices.shape[1];
}

std::int64_t request_of(const MlaOp& op, std::int64_t token) {
  std::int64_t r = 0;
  while (token >= int_at(op.query_start_loc, r + 1)) ++r;
  return r;
}

using Lists = std::vector<std::vector<std::int64_t>>;  // of each token

Lists lists_of(const MlaSparseOp& op) {
  Lists lists;
  for (std::int64_t t = 0; t < op.topk_indices.shape[0]; ++t) {
    std::vector<std::int64_t>& list = lists.emplace_back();
    for (std::int64_t i = 0; i < kept(op, t); ++i) list.push_back(int_at(op.topk_indices, t, i));
  }
  return lists;
}

// The operation with other lists; rows that are shorter than the longest end with -1.
MlaSparseOp with_lists(MlaSparseOp op, const Lists& lists, TensorStore& memory) {
  std::size_t width = 0;
  for (const auto& list : lists) width = std::max(width, list.size());
  HostTensor indices(DType::kI32,
                     {static_cast<std::int64_t>(lists.size()), static_cast<std::int64_t>(width)});
  for (std::size_t t = 0; t < lists.size(); ++t) {
    for (std::size_t i = 0; i < width; ++i) {
      indices.set(i < lists[t].size() ? static_cast<double>(lists[t][i]) : -1.0, t, i);
    }
  }
  op.topk_indices = memory.keep(std::move(indices));
  op.topk_lens = {};
  return op;
}

// Every position of a token's request.
Lists all_positions(const MlaOp& op) {
  Lists lists;
  const std::int64_t tokens = int_at(op.query_start_loc, op.seq_lens.shape[0]);
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::vector<std::int64_t>& list = lists.emplace_back();
    for (std::int64_t k = 0; k < int_at(op.seq_lens, request_of(op, t)); ++k) list.push_back(k);
  }
  return lists;
}

TEST_P(Latent, ListOfAllPositionsIsNonCausalAttention) {
  for_all_finite<LatentConfig>([&](LatentConfig config) {
    config.expanded = false;
    config.causal = false;
    config.exec = {};
    DrawnOperation drawn = draw_operation(normalised(config));
    MlaSparseOp sparse;
    sparse.mla = drawn.as<MlaOp>();
    sparse = with_lists(sparse, all_positions(sparse.mla), drawn.memory);
    expect_close(drawn.operation, sparse);
  });
}

TEST_P(Latent, OrderOfTheListChangesNothing) {
  for_all<SparseConfig>([&](const SparseConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<MlaSparseOp>();
    Lists lists = lists_of(op);
    for (auto& list : lists) {
      std::reverse(list.begin(), list.end());
      if (list.size() > 2) std::swap(list[0], list[list.size() / 2]);
    }
    expect_close(op, with_lists(op, lists, drawn.memory));
  });
}

TEST_P(Latent, MinusOneIsNoPlaceOfTheList) {
  for_all<SparseConfig>([&](const SparseConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<MlaSparseOp>();
    Lists lists = lists_of(op);
    for (auto& list : lists) std::erase(list, -1);
    expect_same_bits(op, with_lists(op, lists, drawn.memory));
  });
}

TEST_P(Latent, SlotsAreThePositionsTheyHold) {
  for_all<SparseConfig>([&](SparseConfig config) {
    config.space = TopkIndexSpace::kRequest;
    DrawnOperation by_position = draw_operation(config);
    config.space = TopkIndexSpace::kSlot;
    const DrawnOperation by_slot = draw_operation(config);
    expect_same_bits(by_position.operation, by_slot.operation);
    const auto& op = by_position.as<MlaSparseOp>();
    const std::int64_t size = op.mla.kv_cache.shape[1];
    Lists lists = lists_of(op);
    for (std::size_t t = 0; t < lists.size(); ++t) {
      const std::int64_t r = request_of(op.mla, static_cast<std::int64_t>(t));
      for (std::int64_t& k : lists[t]) {
        if (k >= 0) k = int_at(op.mla.block_table, r, k / size) * size + k % size;
      }
    }
    MlaSparseOp converted = with_lists(op, lists, by_position.memory);
    converted.index_space = TopkIndexSpace::kSlot;
    HostTensor nobody_reads(DType::kI32,
                            {op.mla.block_table.shape[0], op.mla.block_table.shape[1]});
    nobody_reads.fill(2147480000);
    converted.mla.block_table = by_position.memory.keep(std::move(nobody_reads));
    expect_same_bits(op, converted);
  });
}

TEST_P(Latent, ListingEveryPlaceTwiceAddsTheLogarithmOfTwo) {
  for_all_finite<SparseConfig>([&](SparseConfig config) {
    config.sinks = SparseSinks::kNone;
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<MlaSparseOp>();
    Lists lists = lists_of(op);
    for (auto& list : lists) {
      const std::vector<std::int64_t> once = list;
      list.insert(list.end(), once.begin(), once.end());
    }
    Tensors expected = answer(op);
    HostTensor& lse = expected.at("lse");
    for (std::int64_t h = 0; h < lse.shape()[0]; ++h) {
      for (std::int64_t t = 0; t < lse.shape()[1]; ++t) {
        lse.set(lse.value(h, t) + std::log(2.0), h, t);
      }
    }
    require_none("once and twice", alarm_of(op).difference(
                                       expected, answer(with_lists(op, lists, drawn.memory)), 2.0));
  });
}

TEST_P(Latent, ListIsAttentionWithTheLogarithmOfHowOftenAKeyIsListedAsBias) {
  for_all_finite<SparseConfig>([&](SparseConfig config) {
    if (config.mla.cache == LatentCache::kFp8DsMla) config.mla.cache = LatentCache::kF16;
    config.space = TopkIndexSpace::kRequest;
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<MlaSparseOp>();
    AttentionOp attention = attention_over_latents(op.mla, drawn.memory);
    attention.mask.causal = false;
    attention.sinks = op.sinks;
    attention.lse_includes_sink = op.lse_includes_sink;
    std::int64_t rows = 1;
    std::int64_t keys = 1;
    for (std::int64_t r = 0; r < op.mla.seq_lens.shape[0]; ++r) {
      rows = std::max(rows, attention.query_len(r));
      keys = std::max(keys, attention.seq_len(r));
    }
    HostTensor bias(DType::kF64, {op.mla.seq_lens.shape[0], 1, rows, keys});
    bias.fill(encode(DType::kF64, -kInf, Overflow::kInfinity));
    const Lists lists = lists_of(op);
    for (std::size_t t = 0; t < lists.size(); ++t) {
      const std::int64_t r = request_of(op.mla, static_cast<std::int64_t>(t));
      const std::int64_t row = static_cast<std::int64_t>(t) - attention.query_start(r);
      for (const std::int64_t k : lists[t]) {
        const auto times = static_cast<double>(std::count(lists[t].begin(), lists[t].end(), k));
        if (k >= 0) bias.set(std::log(times), r, 0, row, k);
      }
    }
    attention.bias.attn_bias = drawn.memory.keep(std::move(bias));
    expect_close(attention, op);
  });
}

TEST_P(Latent, PartsOfTheListMergeToTheWhole) {
  for_all_finite<SparseConfig>([&](SparseConfig config) {
    config.sinks = SparseSinks::kNone;
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<MlaSparseOp>();
    const Tensors whole = answer(op);
    constexpr std::int64_t kParts = 3;
    std::vector<std::int64_t> shape = whole.at("out").shape();
    HostTensor outs(DType::kF64, {kParts, shape[0], shape[1], shape[2]});
    HostTensor lses(DType::kF64, {kParts, shape[1], shape[0]});
    for (std::int64_t part = 0; part < kParts; ++part) {  // short lists leave parts empty
      Lists lists = lists_of(op);
      for (auto& list : lists) {
        std::erase_if(list, [&](std::int64_t index) { return index % kParts != part; });
      }
      const Tensors own = answer(with_lists(op, lists, drawn.memory));
      const HostTensor& out = own.at("out");
      const HostTensor& lse = own.at("lse");
      copy_units(out, 0, out.num_units(), outs, part * out.num_units());
      copy_units(lse, 0, lse.num_units(), lses, part * lse.num_units());
    }
    MergeStatesOp merge;
    merge.out_parts = drawn.memory.keep(std::move(outs));
    merge.lse_parts = drawn.memory.keep(std::move(lses));
    require_none("parts and whole", alarm_of(op).difference(whole, answer(merge), 2.0));
  });
}

}  // namespace
}  // namespace attn::property_tests
