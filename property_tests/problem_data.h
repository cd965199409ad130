// A problem in memory: owns every tensor and gives the AttentionOp that views them.
#pragma once

#include "attn/host_tensor.h"
#include "attn/problem.h"
#include "property_tests/logical_problem.h"
#include "property_tests/memory_form.h"

namespace attn::property_tests {

// Each tensor in an allocation of its own, of exactly its size.
class ProblemData {
 public:
  explicit ProblemData(const LogicalProblem& problem, const MemoryForm& form = {});
  ProblemData(ProblemData&&) = default;
  ProblemData& operator=(ProblemData&&) = default;

  // Views into this object's memory.
  const AttentionOp& op() const { return op_; }
  AttentionProblem problem() const { return AttentionProblem(op_); }  // throws Error when invalid

 private:
  void place_lengths(const LogicalProblem& problem);
  void place_query(const LogicalProblem& problem, const MemoryForm& form);
  void place_mask(const LogicalProblem& problem, const MemoryForm& form);
  void place_shared(const LogicalProblem& problem);

  TensorStore store_;
  AttentionOp op_;
};

}  // namespace attn::property_tests
