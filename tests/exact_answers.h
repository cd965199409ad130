// The exact answer to an operation with its conditioning sums, in memory that was poisoned before.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "attn/conditioning.h"
#include "golden/exact/exact_answer.h"
#include "tests/tensor_pool.h"

namespace attn {

class ExactAnswer {
 public:
  explicit ExactAnswer(const Operation& operation) : ExactAnswer(AttentionProblem(operation)) {}

  explicit ExactAnswer(const AttentionProblem& problem) {
    std::vector<OutputSpec> specs = output_specs(problem, DType::kF64);
    const std::vector<OutputSpec> sums = conditioning_specs(problem);
    specs.insert(specs.end(), sums.begin(), sums.end());
    Outputs outputs;
    for (const OutputSpec& spec : specs) {
      const MutableTensorView view = pool_.zeros(spec.dtype, spec.shape);
      auto* bytes = static_cast<std::byte*>(view.data);
      const std::int64_t size = view.num_units() * unit_bytes(spec.dtype);
      for (std::int64_t i = 0; i < size; ++i) bytes[i] = std::byte{0xA5};
      outputs.*spec.view = view;
      views_[std::string(spec.name)] = view;
    }
    bits = exact::answer_exactly(problem, outputs);
  }

  // Absent when the operation has no such output.
  TensorView view(const std::string& name) const {
    const auto it = views_.find(name);
    return it == views_.end() ? TensorView{} : it->second;
  }

  // All elements, in C order.
  std::vector<double> values(const std::string& name) const {
    std::vector<double> all;
    for (const std::uint64_t code : codes(name)) all.push_back(decode(view(name).dtype, code));
    return all;
  }

  std::vector<std::uint64_t> codes(const std::string& name) const {
    const TensorView of = view(name);
    std::vector<std::uint64_t> all;
    for (std::int64_t i = 0; i < of.num_units(); ++i) {
      all.push_back(
          load_code(of.dtype, static_cast<const std::byte*>(of.data) + i * unit_bytes(of.dtype)));
    }
    return all;
  }

  // A field of cond_row, [tokens, heads, fields].
  double row(std::int64_t token, std::int64_t head, RowField field) const {
    return value_at(view("cond_row"), token, head, field);
  }

  int bits = 0;

 private:
  TensorPool pool_;
  std::map<std::string, TensorView> views_;
};

}  // namespace attn
