#include "judge/answer_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "attn/arithmetic.h"
#include "attn/error.h"

namespace attn::judge {
namespace {

template <class Named>
auto named(const std::vector<Named>& all, std::string_view name) {
  return std::find_if(all.begin(), all.end(), [&](const Named& one) { return one.name == name; });
}

void require(const TensorView& view, std::string_view whose, const OutputSpec& spec) {
  const bool computed = spec.name == "out" || spec.name == "lse" || spec.name == "logits";
  const bool typed = computed ? format_of(view.dtype).has_value() : view.dtype == spec.dtype;
  const std::vector<std::int64_t> shape(view.shape, view.shape + view.rank);
  // Files keep caches in the order of their axes in memory; the comparison wants one shape of both.
  const bool is_cache = spec.before.present();
  if (!typed || (is_cache ? view.num_units() != spec.before.num_units() : shape != spec.shape)) {
    throw Error(fmt::format("{} {} is {}, expected {}[{}]", whose, spec.name, to_string(view),
                            computed ? "floating " : name(spec.dtype), fmt::join(spec.shape, ",")));
  }
  if (view.space != MemorySpace::kHost || (view.data == nullptr && view.num_units() != 0)) {
    throw Error(fmt::format("{} {} has no host memory", whose, spec.name));
  }
}

}  // namespace

std::vector<TensorPair> answer_pairs(const AttentionProblem& problem,
                                     const ExpectedAnswer& expected, const ActualAnswer& actual) {
  const std::vector<OutputSpec> wanted = output_specs(problem, DType::kF64);
  const std::vector<OutputSpec> given = output_specs(problem, DType::kF64, actual.lse_form.layout);
  for (const NamedView& tensor : actual.tensors) {
    const bool output = named(given, tensor.name) != given.end();
    if (output && named(expected.tensors, tensor.name) == expected.tensors.end()) {
      throw Error(fmt::format("there is no expected {}", tensor.name));
    }
  }
  std::vector<TensorPair> pairs;
  for (const NamedView& tensor : expected.tensors) {
    const auto spec = named(wanted, tensor.name);
    if (spec == wanted.end()) continue;
    const auto answer = named(actual.tensors, tensor.name);
    if (answer == actual.tensors.end()) {
      throw Error(fmt::format("there is no actual {}", tensor.name));
    }
    require(tensor.view, "expected", *spec);
    require(answer->view, "actual", *named(given, tensor.name));
    pairs.push_back({tensor.name, tensor.view, answer->view});
  }
  if (pairs.empty()) throw Error("there is nothing to judge: no output is expected");
  return pairs;
}

const TensorPair* find(const std::vector<TensorPair>& pairs, std::string_view name) {
  const auto found = named(pairs, name);
  return found == pairs.end() ? nullptr : &*found;
}

}  // namespace attn::judge
