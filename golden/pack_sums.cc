#include "golden/pack_sums.h"

#include <fmt/core.h>

#include <algorithm>

#include "attn/error.h"
#include "core/strict_json.h"
#include "golden/ascii.h"
#include "golden/case_index.h"

namespace attn::golden {
namespace {

constexpr std::size_t kDigestLength = 64;
constexpr std::string_view kGap = "  ";

bool is_file_name(std::string_view name) {
  constexpr std::string_view kOther = "_.-";
  const auto allowed = [&](char c) {
    return is_lower(c) || is_upper(c) || is_digit(c) || kOther.find(c) != std::string_view::npos;
  };
  return is_plain_file_name(name) && name != kSumsFile &&
         std::all_of(name.begin(), name.end(), allowed);
}

}  // namespace

std::string to_text(const Sums& sums) {
  std::string text;
  for (const auto& [name, digest] : sums) text += fmt::format("{}{}{}\n", digest, kGap, name);
  return text;
}

Sums parse_sums(std::string_view text) {
  Sums sums;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::string_view digest = line.substr(0, kDigestLength);
    const std::string_view rest = line.substr(digest.size());
    const std::string_view name = rest.substr(std::min(kGap.size(), rest.size()));
    if (end == std::string_view::npos || !is_sha256(digest) || !rest.starts_with(kGap) ||
        !is_file_name(name)) {
      throw Error(fmt::format("line {} is {}, expected a digest, two spaces and a name", number,
                              in_quotes(line)));
    }
    if (!sums.empty() && sums.rbegin()->first >= name) {
      throw Error(fmt::format("line {} names {} after {}", number, name, sums.rbegin()->first));
    }
    sums.emplace(name, digest);
    text.remove_prefix(end + 1);
  }
  return sums;
}

}  // namespace attn::golden
