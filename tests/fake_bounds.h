// Bounds made by hand, for tests of what the judge does with them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "judge/row_bounds.h"

namespace attn {

// The same bound for every element of rows that see a key.
class FakeBounds final : public judge::RowBounds {
 public:
  explicit FakeBounds(double bound) : bound_(bound) {}

  RowError row(std::int64_t token, std::int64_t head, std::span<double> out) const override {
    RowError error;
    error.empty = empty_rows.contains({token, head});
    error.hull = hull;
    if (bound_ == std::numeric_limits<double>::infinity()) error.vacuous = "fake";
    error.lse = bound_;
    std::fill(out.begin(), out.end(), error.empty ? 0.0 : bound_);
    return error;
  }
  RowError probable_row(std::int64_t, std::int64_t, std::span<double> out) const override {
    std::fill(out.begin(), out.end(), probable);
    return {};
  }
  bool has_probable() const override { return probable > 0.0; }
  RowError logits(std::int64_t, std::span<double> bounds) const override {
    std::fill(bounds.begin(), bounds.end(), bound_);
    return {};
  }

  std::map<std::pair<std::int64_t, std::int64_t>, bool> empty_rows;
  double hull = std::numeric_limits<double>::infinity();
  double probable = 0.0;

 private:
  double bound_;
};

}  // namespace attn
