// One attention problem, complete and checked: what the reference, every backend, the judge and the
// golden packs take.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>

#include "attn/operation.h"

namespace attn {

// Throws Error, naming field, index and value, when the problem breaks a precondition: types,
// shapes, lengths, block ids, scales, exclusive masks. Reads index and scale tensors, never data
// tensors.
void validate(const AttentionOp& op);

// A validated operation. Immutable; holds views, so the owner of the memory must outlive it.
class AttentionProblem {
 public:
  explicit AttentionProblem(Operation operation);  // throws Error

  const Operation& operation() const { return operation_; }
  OpKind kind() const { return static_cast<OpKind>(operation_.index()); }
  const AttentionOp* attention() const { return std::get_if<AttentionOp>(&operation_); }

 private:
  Operation operation_;
};

// One line: operation, sizes, types, and every mask, bias and option that is on.
std::string to_string(const AttentionProblem& problem);
std::ostream& operator<<(std::ostream& stream, const AttentionProblem& problem);

}  // namespace attn
