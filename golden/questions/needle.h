// Where the needle of a request lies: families needle_visible and needle_hidden.
#pragma once

#include <cstdint>
#include <optional>

#include "attn/operation.h"
#include "golden/questions/draw.h"

namespace attn::questions {

// The key. needle_hidden finds one that the probe row does not see with head 0, if there is any
// beside what it sees. Absent for other families and when the probe row sees nothing or there is no
// row. `drawn_as` is the request of the coordinates. Reads the masks and lengths of `op` only.
std::optional<std::int64_t> find_needle(const AttentionOp& op, const Source& source,
                                        std::int64_t request, std::int64_t drawn_as);

}  // namespace attn::questions
