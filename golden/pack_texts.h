// The files of a pack that are prose.
#pragma once

#include <string>
#include <string_view>

#include "attn/golden.h"

namespace attn::golden {

extern const std::string_view kCc0License;  // the legal code of CC0-1.0

std::string readme_of(const PackManifest& manifest);

}  // namespace attn::golden
