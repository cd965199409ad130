// What the flags and rulings of cases mean.
#pragma once

#include <map>
#include <string>

#include "attn/golden.h"

namespace attn::golden {

// Every flag and ruling of the case format.
const std::map<std::string, PackNote>& all_notes();

}  // namespace attn::golden
