// Random problems of differential attention, the indexer, merges and cache writes, in a few
// numbers. Every value is a function of seed, family and coordinates.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#include "property_tests/drawn_operation.h"
#include "property_tests/latent_config.h"
#include "property_tests/logical_problem.h"
#include "property_tests/memory_form.h"
#include "property_tests/problem_config.h"

namespace attn::property_tests {

struct DifferentialConfig {
  ProblemConfig attention;  // num_kv_heads counts pairs
  bool norm = false;

  bool operator==(const DifferentialConfig&) const = default;
};

enum class IndexScale : std::uint8_t { kNone, kRow, kColumn };  // [N], [N, 1]

struct IndexerConfig {
  Family family = Family::kUniform;
  std::uint64_t seed = 0;
  bool specials = false;
  int num_tokens = 1;
  int num_keys = 1;
  int num_heads = 1;
  int head_size = 1;
  DType query_dtype = DType::kF32;
  DType key_dtype = DType::kF32;
  IndexScale k_scale = IndexScale::kNone;

  bool operator==(const IndexerConfig&) const = default;
};

struct MergeConfig {
  Family family = Family::kUniform;  // kLargeLogits: lse times 64
  std::uint64_t seed = 0;
  bool specials = false;     // one lse in 64 is NaN, one element of out in 64 infinite or NaN
  bool empty_parts = false;  // one in four, by either infinity, with NaN as out
  int num_parts = 1;
  int num_tokens = 1;
  int num_heads = 1;
  int head_size_v = 1;
  DType dtype = DType::kF32;
  bool base_2 = false;

  bool operator==(const MergeConfig&) const = default;
};

// A write into a cache of heads, or of latents (latent > 0). What the cache held before is random
// codes; one token in five has no slot.
struct CacheWriteConfig {
  Family family = Family::kUniform;
  std::uint64_t seed = 0;
  bool specials = false;  // in what a scale is not computed from
  int num_slots = 1;      // length of slot_mapping
  int spare_rows = 0;     // rows behind, which nobody reads
  DType input = DType::kF32;

  int num_heads = 1;
  int head_size = 1;
  int head_size_v = 1;
  KvFormat cache = KvFormat::kF32;
  ScaleShape scales = ScaleShape::kNone;  // fp8 caches
  MemoryForm memory;                      // cache (paged or packed), block_size, spare_blocks

  bool operator==(const CacheWriteConfig&) const = default;
};

struct LatentWriteConfig {
  Family family = Family::kUniform;
  std::uint64_t seed = 0;
  bool specials = false;
  int num_slots = 1;
  int spare_rows = 0;
  DType input = DType::kF32;

  int latent = 1;
  int rope = 0;
  LatentCache cache = LatentCache::kF32;
  bool k_scale = false;  // kF8E4M3FN
  int block_size = 1;
  int spare_blocks = 0;

  bool operator==(const LatentWriteConfig&) const = default;
};

DifferentialConfig normalised(DifferentialConfig config);
CacheWriteConfig normalised(CacheWriteConfig config);
LatentWriteConfig normalised(LatentWriteConfig config);

DrawnOperation draw_operation(const IndexerConfig& config);
DrawnOperation draw_operation(const MergeConfig& config);
DrawnOperation draw_operation(const CacheWriteConfig& config);
DrawnOperation draw_operation(const LatentWriteConfig& config);

// The heads of the attention problem of a differential one, in pairs of neighbours.
LogicalProblem draw_paired_heads(const DifferentialConfig& config);

// lambda, lambda_init, eps and norm_weight; `attention` views the memory of the caller.
DrawnOperation draw_difference(const DifferentialConfig& config, const AttentionOp& attention);

std::string to_string(const DifferentialConfig& config);
std::string to_string(const IndexerConfig& config);
std::string to_string(const MergeConfig& config);
std::string to_string(const CacheWriteConfig& config);
std::string to_string(const LatentWriteConfig& config);
std::ostream& operator<<(std::ostream& stream, const DifferentialConfig& config);
std::ostream& operator<<(std::ostream& stream, const IndexerConfig& config);
std::ostream& operator<<(std::ostream& stream, const MergeConfig& config);
std::ostream& operator<<(std::ostream& stream, const CacheWriteConfig& config);
std::ostream& operator<<(std::ostream& stream, const LatentWriteConfig& config);

}  // namespace attn::property_tests
