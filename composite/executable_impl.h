// What answers a layer with an executable backend.
#pragma once

#include <memory>

#include "composite/executable_backend.h"

namespace attn {

// Throws as make_impl does (attn/executable_backend.h).
std::unique_ptr<AttentionImpl> make_executable_impl(const ExecutableBackend& backend,
                                                    const ImplArguments& arguments);

}  // namespace attn
