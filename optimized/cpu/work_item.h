// The pieces a problem is cut into, each answered by one worker on its own.
#pragma once

#include <cstdint>

#include "attn/operation.h"
#include "attn/output.h"
#include "optimized/cpu/scratch.h"

namespace attn::cpu {

// Some neighbouring query tokens of a request with all query heads of one KV head.
struct WorkItem {
  std::int32_t request;
  std::int32_t kv_head;
  std::int32_t first_row;  // local to the request
  std::int32_t num_tokens;
};

// Answers one item. `exec` is what the plan honours; `outputs` have been checked.
void answer_item(const AttentionOp& op, const ExecSpec& exec, const WorkItem& item,
                 const Outputs& outputs, Scratch& scratch);

}  // namespace attn::cpu
