// SHA256SUMS: what `sha256sum -c` reads.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace attn::golden {

inline constexpr std::string_view kSumsFile = "SHA256SUMS";

// Digests by file name.
using Sums = std::map<std::string, std::string>;

// A line a file, "<64 hex digits><two spaces><name>", sorted bytewise.
std::string to_text(const Sums& sums);

// Throws Error for anything to_text() does not write: other order, a name twice, names that are not
// made of [A-Za-z0-9_.-], SHA256SUMS itself.
Sums parse_sums(std::string_view text);

}  // namespace attn::golden
