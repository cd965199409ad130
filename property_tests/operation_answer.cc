#include "property_tests/operation_answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <string_view>

#include "attn/conditioning.h"
#include "attn/error.h"
#include "golden/exact/exact_answer.h"

namespace attn::property_tests {
namespace {

constexpr std::uint64_t kPoison = 0xA5A5A5A5A5A5A5A5;

std::vector<OutputSpec> all_specs(const AttentionProblem& problem, bool sums) {
  std::vector<OutputSpec> specs = output_specs(problem, DType::kF64);
  if (!sums) return specs;
  const std::vector<OutputSpec> more = conditioning_specs(problem);
  specs.insert(specs.end(), more.begin(), more.end());
  return specs;
}

Tensors poisoned(const std::vector<OutputSpec>& specs) {
  Tensors tensors;
  for (const OutputSpec& spec : specs) {
    HostTensor tensor(spec.dtype, spec.shape);
    tensor.fill(kPoison);
    tensors.emplace(spec.name, std::move(tensor));
  }
  return tensors;
}

Outputs views_of(const std::vector<OutputSpec>& specs, Tensors& tensors) {
  Outputs outputs;
  for (const OutputSpec& spec : specs) {
    outputs.*spec.view = tensors.find(spec.name)->second.view();
  }
  return outputs;
}

std::string difference_at(const std::string& name, const HostTensor& a, std::int64_t at_a,
                          const HostTensor& b, std::int64_t at_b) {
  if (same_code(a.dtype(), a.code(at_a), b.code(at_b))) return {};
  return fmt::format("{}{} {:#x} and {}{} {:#x}", name, place_in(a, at_a), a.code(at_a), name,
                     place_in(b, at_b), b.code(at_b));
}

}  // namespace

Tensors answer_operation(const Backend& backend, const Operation& operation, bool sums) {
  const AttentionProblem problem(operation);
  const std::vector<OutputSpec> specs = all_specs(problem, sums);
  Tensors tensors = poisoned(specs);
  run_once(backend, problem, views_of(specs, tensors));
  return tensors;
}

Tensors answer_operation_exactly(const Operation& operation) {
  const AttentionProblem problem(operation);
  std::vector<OutputSpec> specs = all_specs(problem, true);
  Tensors tensors = poisoned(specs);
  try {
    exact::answer_exactly(problem, views_of(specs, tensors));
  } catch (const Error& error) {
    if (!std::string_view(error.what()).starts_with("out_codes")) throw;
    std::erase_if(specs, [](const OutputSpec& spec) { return spec.name == "out_codes"; });
    tensors = poisoned(specs);
    exact::answer_exactly(problem, views_of(specs, tensors));
  }
  return tensors;
}

bool same_code(DType dtype, std::uint64_t a, std::uint64_t b) {
  if (a == b) return true;
  return is_floating(dtype) && dtype != DType::kF4E2M1 && std::isnan(decode(dtype, a)) &&
         std::isnan(decode(dtype, b));
}

std::string place_in(const HostTensor& tensor, std::int64_t flat) {
  std::vector<std::int64_t> at(tensor.shape().size());
  for (std::size_t axis = at.size(); axis-- > 0;) {
    at[axis] = flat % tensor.shape()[axis];
    flat /= tensor.shape()[axis];
  }
  return fmt::format("[{}]", fmt::join(at, ","));
}

std::string bit_difference(const Tensors& a, const Tensors& b) {
  for (const auto& [name, tensor] : a) {
    const auto other = b.find(name);
    if (other == b.end() || other->second.shape() != tensor.shape()) {
      return fmt::format("{} has another shape or is missing", name);
    }
    for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
      std::string difference = difference_at(name, tensor, i, other->second, i);
      if (!difference.empty()) return difference;
    }
  }
  return {};
}

std::string bit_difference(const Tensors& a, std::int64_t first_a, const Tensors& b,
                           std::int64_t first_b, std::int64_t count) {
  for (const auto& [name, tensor] : a) {
    const HostTensor& other = b.at(name);
    const bool by_head = name == "lse";
    const int axis = by_head ? 1 : 0;
    const HostTensor rows = sliced(tensor, axis, first_a, count);
    const HostTensor other_rows = sliced(other, axis, first_b, count);
    if (rows.shape() != other_rows.shape()) return fmt::format("{} has another shape", name);
    for (std::int64_t i = 0; i < rows.num_units(); ++i) {
      std::string difference = difference_at(name, rows, i, other_rows, i);
      if (!difference.empty()) return difference;
    }
  }
  return {};
}

}  // namespace attn::property_tests
