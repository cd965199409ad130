// Random problems of multi-head latent attention, dense and sparse, in a few numbers.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>

#include "attn/operation.h"
#include "property_tests/drawn_operation.h"
#include "property_tests/memory_form.h"
#include "property_tests/problem_config.h"

namespace attn::property_tests {

enum class LatentCache : std::uint8_t { kF32, kBF16, kF16, kF8E4M3FN, kFp8DsMla };
DType dtype_of(LatentCache cache);

struct LatentConfig {
  Family family = Family::kUniform;  // kLargeLogits: as kBell, the query times 8
  std::uint64_t seed = 0;
  bool specials = false;  // one element in 64 of query and cache is infinite or NaN

  int num_reqs = 1;
  Lengths lengths = Lengths::kEqual;
  int query_len = 1;
  int context_len = 0;

  int num_heads = 1;
  int latent = 1;  // kFp8DsMla: 512 and 64
  int rope = 0;
  DType query_dtype = DType::kF32;
  LatentCache cache = LatentCache::kF32;
  bool k_scale = false;

  bool expanded = false;
  int nope = 1;         // with expanded
  int head_size_v = 1;  // with expanded

  bool causal = true;
  ExecSpec exec;
  MemoryForm memory;  // of the cache: block_size, block_order, spare_blocks, table_padding, fill;
                      // dim_padding behind its rows, row_padding behind the query

  bool operator==(const LatentConfig&) const = default;
};

enum class SparseSinks : std::uint8_t { kNone, kFinite, kSomeMinusInfinity, kSomePlusInfinity };

struct SparseConfig {
  LatentConfig mla;
  int listed = 0;  // width of topk_indices; one place in six holds -1, positions come twice
  bool topk_lens = false;
  TopkIndexSpace space = TopkIndexSpace::kRequest;
  SparseSinks sinks = SparseSinks::kNone;
  bool lse_includes_sink = true;

  bool operator==(const SparseConfig&) const = default;
};

// The nearest valid config.
LatentConfig normalised(LatentConfig config);
SparseConfig normalised(SparseConfig config);

// Every value is a function of seed, family and coordinates: the problem of one request alone holds
// the values that the request has in the batch, and the memory form changes no value.
DrawnOperation draw_operation(const LatentConfig& config, std::optional<int> alone = {});
DrawnOperation draw_operation(const SparseConfig& config, std::optional<int> alone = {});

std::string to_string(const LatentConfig& config);
std::string to_string(const SparseConfig& config);
std::ostream& operator<<(std::ostream& stream, const LatentConfig& config);
std::ostream& operator<<(std::ostream& stream, const SparseConfig& config);

}  // namespace attn::property_tests
