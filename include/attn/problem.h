// One attention problem, complete and checked: what the reference, every backend, the judge and the
// golden packs take.
#pragma once

#include <iosfwd>
#include <string>
#include <utility>

#include "attn/operation.h"

namespace attn {

// Throws Error, naming field, index and value, when an operation breaks a precondition: types,
// shapes, lengths, block ids, slots, scales, exclusive masks. Reads index and scale tensors; data
// tensors only where a scale is to be computed from them (writes of quantised caches), for values
// that are not finite.
void validate(const AttentionOp& op);
void validate(const DifferentialOp& op);
void validate(const MlaOp& op);
void validate(const MlaSparseOp& op);
void validate(const IndexerOp& op);
void validate(const MergeStatesOp& op);
void validate(const CacheWriteOp& op);
void validate(const MlaCacheWriteOp& op);

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

// The exec of an operation that has one; else nothing asked.
ExecSpec asked_exec(const AttentionProblem& problem);

// One line: operation, sizes, types, and every mask, bias and option that is on.
std::string to_string(const AttentionProblem& problem);
std::ostream& operator<<(std::ostream& stream, const AttentionProblem& problem);

}  // namespace attn
