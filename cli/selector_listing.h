// What `list described` and `list facts` show.
#pragma once

#include <string>

#include "cli/document.h"

namespace attn::cli {

Json described_items();
Json fact_items();

std::string described_line(const Json& item);
std::string fact_line(const Json& item);

}  // namespace attn::cli
