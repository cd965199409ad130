// Gates of a judgement: which failed, and what the first of them says.
#pragma once

#include <array>
#include <limits>
#include <optional>
#include <string>

#include "attn/judgement.h"

namespace attn::judge {

inline constexpr int kNumGates = static_cast<int>(Gate::kStrict) + 1;

class Gates {
 public:
  // Of two reports about one gate the larger ratio stays, of equal ones the first.
  void fail(Gate gate, std::string reason, double ratio = std::numeric_limits<double>::infinity());

  std::optional<Gate> first() const;
  bool failed(Gate gate) const { return !reason(gate).empty(); }
  const std::string& reason(Gate gate) const { return reasons_[static_cast<std::size_t>(gate)]; }

 private:
  std::array<std::string, kNumGates> reasons_;  // empty = passed
  std::array<double, kNumGates> ratios_{};
};

}  // namespace attn::judge
