#include "attn/topk_selection.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "attn/error.h"
#include "core/special_values.h"

namespace attn {
namespace {

// The `count` highest logits above -inf, descending; fewer when there are fewer.
std::vector<double> highest(std::span<const double> logits, std::size_t count) {
  std::vector<double> sorted;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) throw Error(fmt::format("logits[{}] is NaN, it has no rank", i));
    if (logits[i] != -kInf) sorted.push_back(logits[i]);
  }
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  sorted.resize(std::min(sorted.size(), count));
  return sorted;
}

}  // namespace

std::string topk_offence(std::span<const double> logits, std::span<const std::int32_t> chosen) {
  const std::vector<double> expected = highest(logits, chosen.size());
  std::vector<bool> seen(logits.size(), false);
  std::vector<double> got;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (chosen[i] == -1) continue;
    const auto index = static_cast<std::size_t>(chosen[i]);
    if (chosen[i] < 0 || index >= logits.size()) {
      return fmt::format("chosen[{}] is {}, outside [0, {})", i, chosen[i], logits.size());
    }
    if (seen[index]) return fmt::format("chosen[{}] is {}, chosen twice", i, chosen[i]);
    seen[index] = true;
    got.push_back(logits[index]);
  }
  if (got.size() != expected.size()) {
    return fmt::format("{} keys are chosen, expected {}", got.size(), expected.size());
  }
  std::sort(got.begin(), got.end(), std::greater<>());
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i] != expected[i]) {
      return fmt::format("logit {} is chosen as number {}, expected {}", got[i], i, expected[i]);
    }
  }
  return "";
}

}  // namespace attn
