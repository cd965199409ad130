// The CPU backend's plan: work items, worker memory, and what it must find again at run time.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "attn/backend.h"
#include "optimized/cpu/work_item.h"

namespace attn::cpu {

// Bytes for num_workers() workers.
std::size_t plan_workspace_bytes(const AttentionOp& op, const ExecSpec& exec);

// `exec` is what is honoured of the problem's; `workspace` has plan_workspace_bytes.
std::unique_ptr<Plan> make_plan(const AttentionOp& op, const ExecSpec& exec, Workspace workspace);

}  // namespace attn::cpu
