// Runs one problem through one backend into memory of its own.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "attn/case_file.h"

namespace attn::cli {

// The problem of a case given on the command line as `path`, which its errors name.
AttentionProblem problem_of(const CaseFile& file, const std::string& path);

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

 private:
  MutableTensorView allocate(const CaseFile& file, const OutputSpec& spec);

  std::vector<std::unique_ptr<std::byte[]>> memory_;
  std::vector<NamedTensor> tensors_;
  ExecSpec exec_;
  double seconds_ = 0.0;
};

}  // namespace attn::cli
