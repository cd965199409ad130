#include "judge/gates.h"

#include <string_view>
#include <utility>

namespace attn {

std::string_view name(Gate gate) {
  constexpr std::string_view kNames[] = {"canary", "nonfinite", "empty_rows", "exact",
                                         "hull",   "bound",     "strict"};
  static_assert(std::size(kNames) == judge::kNumGates);
  return kNames[static_cast<int>(gate)];
}

namespace judge {

void Gates::fail(Gate gate, std::string reason, double ratio) {
  const auto i = static_cast<std::size_t>(gate);
  if (failed(gate) && !(ratio > ratios_[i])) return;
  reasons_[i] = std::move(reason);
  ratios_[i] = ratio;
}

std::optional<Gate> Gates::first() const {
  for (int gate = 0; gate < kNumGates; ++gate) {
    if (failed(static_cast<Gate>(gate))) return static_cast<Gate>(gate);
  }
  return std::nullopt;
}

}  // namespace judge
}  // namespace attn
