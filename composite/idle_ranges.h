// Backends without image masks may answer problems whose image ranges change no mask.
#pragma once

#include <memory>

#include "attn/backend.h"

namespace attn {

// `backend`; where it lacks image masks, one that hands it problems without mm_prefix_ranges when
// no request has an image mask (image_ranges.h), and otherwise as they are.
std::shared_ptr<const Backend> without_idle_ranges(std::shared_ptr<const Backend> backend);

}  // namespace attn
