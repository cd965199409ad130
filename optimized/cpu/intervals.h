// Which keys a row sees before attn_mask and biases: a few intervals instead of a predicate.
#pragma once

#include <cstdint>
#include <span>

#include "attn/mask.h"

namespace attn::cpu {

struct KeyInterval {
  std::int64_t begin;
  std::int64_t end;  // exclusive

  bool operator==(const KeyInterval&) const = default;
};

// The base mask of one request, evaluated row by row.
class BaseMask {
 public:
  BaseMask(const MaskSpec& mask, std::int64_t request, std::int64_t seq_len);

  // Storage one row may need.
  static std::int64_t max_intervals(const MaskSpec& mask);

  // The keys the row at absolute position `q` sees: ascending, disjoint, none empty, all inside
  // [0, seq_len). Written to `storage` (max_intervals elements).
  std::span<const KeyInterval> row(std::int64_t q, KeyInterval* storage) const;

 private:
  const MaskSpec& mask_;
  std::int64_t request_;
  std::int64_t seq_len_;
  bool causal_;
};

// A row's intervals with a cursor that only moves forward.
class RowKeys {
 public:
  static constexpr std::int64_t kNone = INT64_MAX;

  explicit RowKeys(std::span<const KeyInterval> intervals) : left_(intervals) {}

  // The first visible key at or after `k`, or kNone. `k` must not decrease between calls.
  std::int64_t next(std::int64_t k);

  // Bit j: key `first + j` is visible. No key before the last `next` may be asked for.
  std::uint64_t bits(std::int64_t first) const;

 private:
  std::span<const KeyInterval> left_;
};

// Bit j: first + j lies in [begin, end).
std::uint64_t range_bits(std::int64_t first, std::int64_t begin, std::int64_t end);

}  // namespace attn::cpu
