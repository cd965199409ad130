// Gates of a judgement: which failed, and what the first of them says.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "attn/judgement.h"

namespace attn::judge {

inline constexpr int kNumGates = static_cast<int>(Gate::kStrict) + 1;

class Gates {
 public:
  // Of two reports about one gate the first stays.
  void fail(Gate gate, std::string reason);

  std::optional<Gate> first() const;
  bool failed(Gate gate) const { return !reason(gate).empty(); }
  const std::string& reason(Gate gate) const { return reasons_[static_cast<std::size_t>(gate)]; }

 private:
  std::array<std::string, kNumGates> reasons_;  // empty = passed
};

}  // namespace attn::judge
