// The JSON object of an exec, in cases and results.
#pragma once

#include "attn/operation.h"
#include "core/strict_json.h"

namespace attn::golden {

// Throws Error for an unknown key, num_splits with kv_chunk, and dcp_interleave without dcp_size.
ExecSpec parse_exec(const JsonNode& node);

}  // namespace attn::golden
