// How an `exec` divides the keys of a request.
#pragma once

#include <cstdint>
#include <vector>

#include "attn/operation.h"

namespace attn::reference {

// The part each key in [0, seq_len) belongs to. Parts are numbered in the order of their smallest
// key.
std::vector<int> partition_keys(const ExecSpec& exec, std::int64_t seq_len);

}  // namespace attn::reference
