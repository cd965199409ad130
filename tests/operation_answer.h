// An answer to an operation, REFERENCE's if not said otherwise, in memory that was poisoned before.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "attn/reference.h"
#include "tests/tensor_pool.h"

namespace attn {

class OperationAnswer {
 public:
  explicit OperationAnswer(const Operation& operation)
      : OperationAnswer(operation, *make_reference_backend()) {}

  OperationAnswer(const Operation& operation, const Backend& backend) {
    const AttentionProblem problem(operation);
    Outputs outputs;
    for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
      const MutableTensorView view = pool_.zeros(spec.dtype, spec.shape);
      auto* bytes = static_cast<std::byte*>(view.data);
      const std::int64_t size = view.num_units() * unit_bytes(spec.dtype);
      for (std::int64_t i = 0; i < size; ++i) bytes[i] = std::byte{0xA5};
      outputs.*spec.view = view;
      views_[std::string(spec.name)] = view;
    }
    run_once(backend, problem, outputs);
  }

  TensorView view(const std::string& name) const { return views_.at(name); }

  // All elements, in C order.
  std::vector<double> values(const std::string& name) const {
    const TensorView& view = views_.at(name);
    std::vector<double> all;
    for (std::int64_t i = 0; i < view.num_units(); ++i) {
      all.push_back(decode(view.dtype, code(view, i)));
    }
    return all;
  }

  std::vector<std::uint64_t> codes(const std::string& name) const {
    const TensorView& view = views_.at(name);
    std::vector<std::uint64_t> all;
    for (std::int64_t i = 0; i < view.num_units(); ++i) all.push_back(code(view, i));
    return all;
  }

 private:
  static std::uint64_t code(const TensorView& view, std::int64_t i) {
    return load_code(view.dtype,
                     static_cast<const std::byte*>(view.data) + i * unit_bytes(view.dtype));
  }

  TensorPool pool_;
  std::map<std::string, TensorView> views_;
};

}  // namespace attn
