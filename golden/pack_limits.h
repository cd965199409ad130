// How large a pack may be.
#pragma once

#include <cstdint>
#include <string>

#include "attn/golden.h"
#include "attn/problem.h"

namespace attn::golden {

// Products of query and key and of weight and value that the definition of an operation asks for,
// whatever the mask.
std::int64_t multiply_adds(const AttentionProblem& problem);

// Throw Error when a case, or the whole folder, is more than the tier allows.
void expect_case_within(const std::string& tier, std::int64_t bytes, std::int64_t multiply_adds);
void expect_pack_within(const std::string& tier, const PackCounts& counts,
                        std::int64_t folder_bytes);

}  // namespace attn::golden
