// Runs one problem through one backend into memory of its own.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "attn/case_file.h"
#include "attn/guarded_tensor.h"

namespace attn::cli {

// The problem of a case given on the command line as `path`, which its errors name.
AttentionProblem problem_of(const CaseFile& file, const std::string& path);

// Gives the view of a tensor by its name; absent when there is none.
using TensorOf = std::function<TensorView(const std::string& name)>;

// `actual` in the type of `expected` where a file has only bytes: types of fewer than 16 bits.
TensorView as_stored_like(const TensorView& expected, TensorView actual);

class Answer {
 public:
  // Answers every output of the operation; those that `file` describes have the shape it says. With
  // `conditioning` also its conditioning sums. The backend must support the problem, which is the
  // file's, and what is asked.
  Answer(const Backend& backend, const CaseFile& file, const AttentionProblem& problem,
         bool conditioning = false);

  const ExecSpec& exec() const { return exec_; }
  double seconds() const { return seconds_; }  // preparing and running
  const std::vector<NamedTensor>& tensors() const { return tensors_; }
  TensorView tensor(const std::string& name) const;  // absent when there is none
  std::string canary_damage() const;  // what was written beside the outputs; empty = nothing

 private:
  MutableTensorView allocate(const CaseFile& file, const OutputSpec& spec);

  std::vector<GuardedTensor> memory_;
  std::vector<NamedTensor> tensors_;
  ExecSpec exec_;
  double seconds_ = 0.0;
};

}  // namespace attn::cli
