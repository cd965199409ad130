// Relations of writes into caches, of heads and of latents.
#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "attn/random.h"
#include "property_tests/operation_property.h"

namespace attn::property_tests {
namespace {

bool is_small(DType dtype) { return bits(dtype) < 16; }

// What a cache of type `to` holds of a number: its bits in the same type, else the nearest.
std::uint64_t converted(DType to, DType from, std::uint64_t code) {
  if (to == from) return code;
  return encode(to, decode(from, code), is_small(to) ? Overflow::kSaturate : Overflow::kInfinity);
}

float f32_at(const TensorView& rows, std::int64_t token, std::int64_t head, std::int64_t dim) {
  return static_cast<float>(value_at(rows, token, head, dim));
}

float largest_of(const TensorView& rows, std::int64_t token, std::int64_t head) {
  float largest = 0.0F;
  for (std::int64_t d = 0; d < rows.shape[2]; ++d) {
    largest = std::max(largest, std::fabs(f32_at(rows, token, head, d)));
  }
  return largest;
}

// The value that is read after a write of element (token, head, dim), by the rules of the formats.
double rounded_value(const TensorView& rows, DType cache, KvEncoding encoding,
                     const TensorView& scale, std::int64_t token, std::int64_t head,
                     std::int64_t dim) {
  if (encoding == KvEncoding::kPerTokenHead) {
    const bool integer = cache == DType::kI8;
    const float step = std::max(largest_of(rows, token, head) / (integer ? 127.0F : 448.0F), 1e-6F);
    const float inverse = 1.0F / step;
    const float quotient = f32_at(rows, token, head, dim) * inverse;
    const double size = std::fabs(static_cast<double>(quotient));
    const double code = integer ? std::copysign(std::floor(size + 0.5), quotient) : quotient;
    return decode(cache, encode(cache, code, Overflow::kSaturate)) * static_cast<double>(step);
  }
  if (scale.present()) {
    const float step = static_cast<float>(value_at(scale, scale.shape[0] == 1 ? 0 : head));
    const std::uint64_t code =
        encode(cache, f32_at(rows, token, head, dim) / step, Overflow::kSaturate);
    return decode(cache, code) * static_cast<double>(step);
  }
  return decode(cache,
                converted(cache, rows.dtype, load_code(rows.dtype, rows.at(token, head, dim))));
}

std::vector<std::int64_t> written_tokens(const TensorView& slots) {
  std::vector<std::int64_t> tokens;
  for (std::int64_t t = 0; t < slots.shape[0]; ++t) {
    if (int_at(slots, t) >= 0) tokens.push_back(t);
  }
  return tokens;
}

// Blocks of one slot each: the same cache by another block size. Dense tensors only.
TensorView slot_by_slot(TensorView cache) {
  cache.shape[0] *= cache.shape[1];
  cache.shape[1] = 1;
  cache.stride_bytes[0] = cache.stride_bytes[1];
  return cache;
}

// Whatever no token addresses is as it was, bit for bit.
void expect_only_addressed_slots_changed(const TensorView& slots, const TensorView& before,
                                         const HostTensor& after) {
  std::set<std::int64_t> addressed;
  for (const std::int64_t t : written_tokens(slots)) addressed.insert(int_at(slots, t));
  const std::int64_t row = after.num_units() / (before.shape[0] * before.shape[1]);
  const std::int64_t inner = before.rank == 4 ? before.shape[3] : 1;
  for (std::int64_t i = 0; i < after.num_units(); ++i) {
    const std::int64_t slot = i / row;
    if (addressed.contains(slot)) continue;
    const std::int64_t block = slot / before.shape[1];
    const std::int64_t place = slot % before.shape[1];
    const std::int64_t in_row = i % row;
    const std::byte* unit = before.rank == 4
                                ? before.at(block, place, in_row / inner, in_row % inner)
                                : before.at(block, place, in_row);
    require(after.code(i) == load_code(before.dtype, unit), "a slot that nobody addressed");
  }
}

// A request of all written tokens in their order, over the cache's slots.
struct WrittenRequest {
  std::vector<std::int64_t> tokens;
  TensorView query_start_loc, seq_lens, block_table, identity_table, kv_start_loc;

  WrittenRequest(const TensorView& slots, std::int64_t query_len, TensorStore& memory)
      : tokens(written_tokens(slots)) {
    const auto count = static_cast<std::int64_t>(tokens.size());
    const auto n = static_cast<double>(count);
    std::vector<double> table;
    std::vector<double> identity;
    for (const std::int64_t t : tokens) {
      table.push_back(static_cast<double>(int_at(slots, t)));
      identity.push_back(static_cast<double>(identity.size()));
    }
    query_start_loc =
        memory.keep(HostTensor(DType::kI32, {2}, {0.0, static_cast<double>(query_len)}));
    seq_lens = memory.keep(HostTensor(DType::kI32, {1}, {n}));
    block_table = memory.keep(HostTensor(DType::kI32, {1, count}, table));
    identity_table = memory.keep(HostTensor(DType::kI32, {1, count}, identity));
    kv_start_loc = memory.keep(HostTensor(DType::kI32, {2}, {0.0, n}));
  }
};

HostTensor random_query(std::uint64_t seed, std::int64_t rows, std::int64_t heads,
                        std::int64_t size) {
  HostTensor query(DType::kF32, {rows, heads, size});
  for (std::int64_t i = 0; i < query.num_units(); ++i) {
    const Words words = random_words(seed, static_cast<std::uint64_t>(i), RandomTensor::kQuery, 1);
    query.set_code(i, encode(DType::kF32, bell(words), Overflow::kInfinity));
  }
  return query;
}

class CacheWrite : public OperationProperty {
 protected:
  static constexpr std::int64_t kQueryLen = 2;

  static CacheWriteOp over(const CacheWriteOp& op, const Tensors& after) {
    CacheWriteOp again = op;
    again.cache.layout = KvLayout::kPaged;
    again.cache.key = after.at("key_cache_after").view();
    again.cache.value = after.at("value_cache_after").view();
    if (op.cache.encoding != KvEncoding::kPerTokenHead) return again;
    again.cache.k_scale_cache = after.at("k_scale_cache_after").view();
    again.cache.v_scale_cache = after.at("v_scale_cache_after").view();
    return again;
  }

  // One side of the cache as it should read, [tokens, heads, size] in F64.
  static HostTensor rounded_rows(const TensorView& rows, const TensorView& cache,
                                 KvEncoding encoding, const TensorView& scale,
                                 const std::vector<std::int64_t>& tokens) {
    HostTensor values(DType::kF64,
                      {static_cast<std::int64_t>(tokens.size()), rows.shape[1], rows.shape[2]});
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      for (std::int64_t h = 0; h < rows.shape[1]; ++h) {
        for (std::int64_t d = 0; d < rows.shape[2]; ++d) {
          values.set(rounded_value(rows, cache.dtype, encoding, scale, tokens[i], h, d), i, h, d);
        }
      }
    }
    return values;
  }
};

INSTANTIATE_TEST_SUITE_P(, CacheWrite, testing::ValuesIn(reference_names()), reference_name);

TEST_P(CacheWrite, WritingTwiceIsWritingOnce) {
  for_all<CacheWriteConfig>([&](const CacheWriteConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const Tensors once = answer(drawn.operation);
    const Tensors twice = answer(over(drawn.as<CacheWriteOp>(), once));
    require_none("once and twice", bit_difference(once, twice));
  });
}

TEST_P(CacheWrite, OnlyAddressedSlotsChange) {
  for_all<CacheWriteConfig>([&](const CacheWriteConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<CacheWriteOp>();
    const Tensors after = answer(op);
    const auto check = [&](const char* name, const TensorView& before) {
      if (before.present()) {
        expect_only_addressed_slots_changed(op.slot_mapping, before, after.at(name));
      }
    };
    check("key_cache_after", op.cache.key);
    check("value_cache_after", op.cache.value);
    check("k_scale_cache_after", op.cache.k_scale_cache);
    check("v_scale_cache_after", op.cache.v_scale_cache);
  });
}

TEST_P(CacheWrite, TokensWithoutASlotAndRowsBehindAreNotThere) {
  for_all<CacheWriteConfig>([&](const CacheWriteConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<CacheWriteOp>();
    Tensors one_by_one = answer(op);
    CacheWriteOp step = op;
    step.slot_mapping = slice(op.slot_mapping, 0, 0, 0);
    Tensors now = answer(step);  // nothing written yet
    for (const std::int64_t t : written_tokens(op.slot_mapping)) {
      step = over(op, now);
      step.slot_mapping = slice(op.slot_mapping, 0, t, 1);
      step.key = slice(op.key, 0, t, 1);
      step.value = slice(op.value, 0, t, 1);
      now = answer(step);
    }
    require_none("together and one by one", bit_difference(one_by_one, now));
  });
}

TEST_P(CacheWrite, AttentionAfterwardsSeesTheRoundedValues) {
  for_all<CacheWriteConfig>([&](const CacheWriteConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    TensorStore& memory = drawn.memory;
    const auto& op = drawn.as<CacheWriteOp>();
    const WrittenRequest request(op.slot_mapping, kQueryLen, memory);
    const Tensors after = answer(op);
    AttentionOp written;
    written.query =
        memory.keep(random_query(config.seed, kQueryLen, 2 * config.num_heads, config.head_size));
    written.query_start_loc = request.query_start_loc;
    written.seq_lens = request.seq_lens;
    written.mask.causal = false;
    written.kv = over(op, after).cache;
    written.kv.block_table = request.block_table;
    for (TensorView* view : {&written.kv.key, &written.kv.value, &written.kv.k_scale_cache,
                             &written.kv.v_scale_cache}) {
      if (view->present()) *view = slot_by_slot(*view);
    }
    AttentionOp expected = written;
    expected.kv = {};
    expected.kv.kv_start_loc = request.kv_start_loc;
    const KvEncoding encoding = op.cache.encoding;
    expected.kv.key =
        memory.keep(rounded_rows(op.key, op.cache.key, encoding, op.cache.k_scale, request.tokens));
    expected.kv.value = memory.keep(
        rounded_rows(op.value, op.cache.value, encoding, op.cache.v_scale, request.tokens));
    require_none("written and rounded", bit_difference(answer(expected), answer(written)));
  });
}

TEST_P(CacheWrite, NumbersOfAnFp8TypeTimesAPowerOfTwoComeBackExactly) {
  for_all<CacheWriteConfig>([&](CacheWriteConfig config) {
    const bool e5m2 = config.seed % 2 == 0;
    config.cache = e5m2 ? KvFormat::kF8E5M2 : KvFormat::kF8E4M3FN;
    config.input = DType::kF32;
    config.scales = ScaleShape::kOne;
    DrawnOperation drawn = draw_operation(normalised(config));
    auto& op = drawn.as<CacheWriteOp>();
    const double scale = std::ldexp(1.0, static_cast<int>(config.seed / 2 % 11) - 5);
    op.cache.k_scale = drawn.memory.keep(HostTensor(DType::kF32, {1}, {scale}));
    const DType dtype = dtype_of(config.cache);
    HostTensor key(DType::kF32, {op.key.shape[0], op.key.shape[1], op.key.shape[2]});
    std::vector<std::uint64_t> codes;
    for (std::int64_t i = 0; i < key.num_units(); ++i) {
      const Words words =
          random_words(config.seed, static_cast<std::uint64_t>(i), RandomTensor::kNeedle, 2);
      std::uint64_t code = words[0] >> 24;
      if (!std::isfinite(decode(dtype, code))) code &= 0x80;
      codes.push_back(code);
      key.set_code(i, encode(DType::kF32, decode(dtype, code) * scale, Overflow::kInfinity));
    }
    op.key = drawn.memory.keep(std::move(key));
    const HostTensor after = answer(op).at("key_cache_after");
    const std::int64_t row = op.key.shape[1] * op.key.shape[2];
    for (const std::int64_t t : written_tokens(op.slot_mapping)) {
      for (std::int64_t i = 0; i < row; ++i) {
        require(after.code(int_at(op.slot_mapping, t) * row + i) ==
                    codes[static_cast<std::size_t>(t * row + i)],
                "the code that was written");
      }
    }
  });
}

class LatentWrite : public OperationProperty {};

INSTANTIATE_TEST_SUITE_P(, LatentWrite, testing::ValuesIn(reference_names()), reference_name);

TEST_P(LatentWrite, WritingTwiceIsWritingOnce) {
  for_all<LatentWriteConfig>([&](const LatentWriteConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const Tensors once = answer(drawn.operation);
    MlaCacheWriteOp again = drawn.as<MlaCacheWriteOp>();
    again.kv_cache = once.at("kv_cache_after").view();
    require_none("once and twice", bit_difference(once, answer(again)));
  });
}

TEST_P(LatentWrite, OnlyAddressedSlotsChange) {
  for_all<LatentWriteConfig>([&](const LatentWriteConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const auto& op = drawn.as<MlaCacheWriteOp>();
    expect_only_addressed_slots_changed(op.slot_mapping, op.kv_cache,
                                        answer(op).at("kv_cache_after"));
  });
}

// A latent row as it should read.
std::vector<double> rounded_latent(const MlaCacheWriteOp& op, std::int64_t token) {
  constexpr std::int64_t kGroup = 128;
  const bool ds_mla = op.encoding == KvEncoding::kFp8DsMla;
  std::vector<double> row;
  for (const TensorView* part : {&op.kv_c, &op.k_pe}) {
    for (std::int64_t d = 0; d < part->shape[1]; ++d) {
      const std::uint64_t code = load_code(part->dtype, part->at(token, d));
      const double x = decode(part->dtype, code);
      if (ds_mla && part == &op.k_pe) {
        row.push_back(x);
      } else if (ds_mla || op.k_scale.present()) {
        float step = ds_mla ? 0.0F : static_cast<float>(value_at(op.k_scale, 0));
        const std::int64_t first = d / kGroup * kGroup;
        for (std::int64_t i = first; ds_mla && i < first + kGroup; ++i) {
          step = std::max(step, std::fabs(static_cast<float>(value_at(*part, token, i))) / 448.0F);
        }
        if (ds_mla) step = std::max(step, 0x1p-126F);
        const std::uint64_t rounded =
            encode(DType::kF8E4M3FN, static_cast<float>(x) / step, Overflow::kSaturate);
        row.push_back(decode(DType::kF8E4M3FN, rounded) * static_cast<double>(step));
      } else {
        row.push_back(decode(op.kv_cache.dtype, converted(op.kv_cache.dtype, part->dtype, code)));
      }
    }
  }
  return row;
}

TEST_P(LatentWrite, AttentionAfterwardsSeesTheRoundedValues) {
  for_all<LatentWriteConfig>([&](const LatentWriteConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    TensorStore& memory = drawn.memory;
    const auto& op = drawn.as<MlaCacheWriteOp>();
    const WrittenRequest request(op.slot_mapping, 2, memory);
    const Tensors after = answer(op);
    MlaOp written;
    written.kv_lora_rank = config.latent;
    written.qk_rope_head_dim = config.rope;
    written.query = memory.keep(random_query(config.seed, 2, 2, config.latent + config.rope));
    written.query_start_loc = request.query_start_loc;
    written.seq_lens = request.seq_lens;
    written.causal = false;
    written.encoding = op.encoding;
    written.k_scale = op.k_scale;
    written.kv_cache = slot_by_slot(after.at("kv_cache_after").view());
    written.block_table = request.block_table;
    MlaOp expected = written;
    expected.encoding = KvEncoding::kPlain;
    expected.k_scale = {};
    std::vector<double> rows;
    for (const std::int64_t t : request.tokens) {
      const std::vector<double> row = rounded_latent(op, t);
      rows.insert(rows.end(), row.begin(), row.end());
    }
    expected.kv_cache = memory.keep(HostTensor(
        DType::kF64,
        {static_cast<std::int64_t>(request.tokens.size()), 1, config.latent + config.rope}, rows));
    expected.block_table = request.identity_table;
    require_none("written and rounded", bit_difference(answer(expected), answer(written)));
  });
}

}  // namespace
}  // namespace attn::property_tests
