#include "attn/problem.h"

#include <utility>

namespace attn {

AttentionProblem::AttentionProblem(Operation operation) : operation_(std::move(operation)) {
  std::visit([](const auto& op) { validate(op); }, operation_);
}

ExecSpec asked_exec(const AttentionProblem& problem) {
  if (const AttentionOp* op = problem.attention()) return op->exec;
  if (const MlaOp* op = std::get_if<MlaOp>(&problem.operation())) return op->exec;
  return {};
}

}  // namespace attn
