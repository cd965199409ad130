// An answer of REFERENCE, rounded to a stored type and open to planted errors, and its judgement.
#pragma once

#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "attn/backend.h"
#include "attn/conditioning.h"
#include "attn/host_tensor.h"
#include "attn/judgement.h"
#include "attn/random.h"
#include "attn/reference.h"
#include "judge/row_bounds.h"
#include "tests/fake_bounds.h"
#include "tests/tensor_pool.h"

namespace attn {

class JudgedAnswer {
 public:
  explicit JudgedAnswer(const Operation& operation, DType stored = DType::kF32,
                        const std::string& contract = "fp32")
      : problem(operation) {
    options.contract.name = contract;
    Outputs outputs;
    for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
      outputs.*spec.view = make(expected, spec);
    }
    for (const OutputSpec& spec : conditioning_specs(problem)) {
      outputs.*spec.view = make(sums_, spec);
    }
    run_once(*make_reference_backend(), problem, outputs);
    for (const auto& [name, tensor] : expected) store(name, stored);
  }

  // Puts the expected values, as `stored` has them, in the place of the actual ones.
  void store(const std::string& name, DType stored) {
    const HostTensor& from = expected.at(name);
    const DType type = from.dtype() == DType::kF64 ? stored : from.dtype();
    HostTensor to(type, from.shape());
    for (std::int64_t i = 0; i < from.num_units(); ++i) {
      to.set_code(i, encode(type, decode(from.dtype(), from.code(i)), Overflow::kInfinity));
    }
    actual[name] = std::move(to);
  }

  ExpectedAnswer expected_answer() const {
    ExpectedAnswer answer;
    for (const auto& [name, tensor] : expected) answer.tensors.push_back({name, tensor.view()});
    Expectation& e = answer.expectation;
    e.out = view(expected, "out");
    e.lse = view(expected, "lse");
    e.logits = view(expected, "logits");
    e.sums = conditioning_sums([&](const char* name) { return view(sums_, name); });
    return answer;
  }

  ActualAnswer actual_answer() const {
    ActualAnswer answer;
    for (const auto& [name, tensor] : actual) answer.tensors.push_back({name, tensor.view()});
    answer.lse_form = form;
    answer.canary_damage = canary;
    return answer;
  }

  Judgement judge() const {
    return judge_answer(problem, expected_answer(), actual_answer(), options);
  }

  // With bounds from elsewhere; the expectation itself counts as exact.
  Judgement judge(const judge::RowBounds& bounds) const {
    const FakeBounds exact(0.0);
    return judge::judge_by({&bounds, &bounds, &exact}, problem, expected_answer(), actual_answer(),
                           options);
  }

  AttentionProblem problem;
  std::map<std::string, HostTensor> expected, actual;
  LseForm form;
  std::string canary;
  JudgeOptions options;

 private:
  using Tensors = std::map<std::string, HostTensor>;

  static MutableTensorView make(Tensors& tensors, const OutputSpec& spec) {
    HostTensor& tensor = tensors[std::string(spec.name)] = HostTensor(spec.dtype, spec.shape);
    return tensor.view();
  }
  static TensorView view(const Tensors& tensors, const std::string& name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? TensorView{} : found->second.view();
  }

  Tensors sums_;
};

// One request, causal: `tokens` query rows on `keys` keys, 2 heads on one KV head of size 4, values
// of size `size_v`; uniform in [-1, 1).
struct DrawnProblem {
  explicit DrawnProblem(std::int64_t tokens = 5, std::int64_t keys = 7, std::int64_t size_v = 130) {
    op.query = draw({tokens, 2, 4}, 1);
    op.query_start_loc = pool.values(DType::kI32, {2}, {0, static_cast<double>(tokens)});
    op.seq_lens = pool.values(DType::kI32, {1}, {static_cast<double>(keys)});
    op.kv.kv_start_loc = pool.values(DType::kI32, {2}, {0, static_cast<double>(keys)});
    op.kv.key = draw({keys, 1, 4}, 2);
    op.kv.value = draw({keys, 1, size_v}, 3);
    op.scale = 0.5;
    op.mask.causal = true;
  }

  TensorView draw(const std::vector<std::int64_t>& shape, std::uint64_t seed) {
    std::int64_t count = 1;
    for (const std::int64_t length : shape) count *= length;
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(
          uniform(random_words(seed, static_cast<std::uint64_t>(i), RandomTensor::kQuery, 0),
                  DType::kBF16));
    }
    return pool.values(DType::kF32, shape, values);
  }

  TensorPool pool;
  AttentionOp op;
};

inline const TensorComparison& comparison(const Judgement& judgement, const std::string& name) {
  for (const TensorComparison& tensor : judgement.tensors) {
    if (tensor.name == name) return tensor;
  }
  throw std::out_of_range(name);
}

}  // namespace attn
