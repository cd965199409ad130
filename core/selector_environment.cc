#include "attn/selector_environment.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "attn/error.h"

namespace attn {
namespace {

constexpr std::array<std::string_view, 4> kPlatformNames = {"cuda", "rocm", "xpu", "cpu"};

}  // namespace

std::string_view name(Platform platform) {
  return kPlatformNames[static_cast<std::size_t>(platform)];
}

std::optional<Platform> platform_from_name(std::string_view name) {
  const auto found = std::find(kPlatformNames.begin(), kPlatformNames.end(), name);
  if (found == kPlatformNames.end()) return std::nullopt;
  return static_cast<Platform>(found - kPlatformNames.begin());
}

DeviceCapability capability_of_gcn_arch(std::string_view gcn_arch) {
  std::string_view digits = gcn_arch;
  if (digits.starts_with("gfx")) digits.remove_prefix(3);
  std::size_t count = 0;
  while (count < digits.size() && digits[count] >= '0' && digits[count] <= '9') ++count;
  const auto digit = [&](std::size_t index) { return digits[index] - '0'; };
  if (gcn_arch.starts_with("gfx") && count == 4) {
    return {10 * digit(0) + digit(1), digit(2)};
  }
  if (gcn_arch.starts_with("gfx") && (count == 2 || count == 3)) return {digit(0), digit(1)};
  throw Error(fmt::format("gcn_arch is \"{}\", expected gfx and two to four digits", gcn_arch));
}

}  // namespace attn
