#include "property_tests/bound_sharpness.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "attn/error_bound.h"
#include "attn/random.h"
#include "attn/reference.h"
#include "property_tests/model_answer.h"

namespace attn::property_tests {
namespace {

constexpr std::int64_t kHeads = 8;
constexpr std::int64_t kHeadSize = 128;
constexpr std::int64_t kTokens = 4;

// The widest type below 32 bits that the contract's operands keep, so that rounding them does not
// drown everything else.
DType stored_operand(const Rounding& rounding) {
  for (const DType type : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (embeds(type, rounding.type)) return type;
  }
  return DType::kF8E4M3FN;
}

// As such kernels store their answers.
DType stored_answer(const Arithmetic& contract) {
  if (contract.vector == NumberFormat::kF64) return DType::kF64;
  if (contract.value.type == NumberFormat::kBF16) return DType::kBF16;
  return contract.value.type == NumberFormat::kF16 ? DType::kF16 : DType::kF32;
}

HostTensor drawn(DType type, std::vector<std::int64_t> shape, std::uint64_t seed,
                 RandomTensor which) {
  HostTensor tensor(type, std::move(shape));
  for (std::int64_t i = 0; i < tensor.num_units(); ++i) {
    const double value = bell(random_words(seed, static_cast<std::uint64_t>(i), which, 2));
    tensor.set_code(i, encode(type, value, Overflow::kSaturate));
  }
  return tensor;
}

// A few decoding tokens over `keys` keys, none masked.
class Problem {
 public:
  Problem(const Arithmetic& contract, std::int64_t keys, std::uint64_t seed)
      : query_(drawn(stored_operand(contract.query), {kTokens, kHeads, kHeadSize}, seed,
                     RandomTensor::kQuery)),
        key_(drawn(stored_operand(contract.key), {keys, kHeads, kHeadSize}, seed,
                   RandomTensor::kKey)),
        value_(drawn(stored_operand(contract.key), {keys, kHeads, kHeadSize}, seed,
                     RandomTensor::kValue)),
        starts_(DType::kI32, {2}, {0.0, static_cast<double>(kTokens)}),
        lens_(DType::kI32, {1}, {static_cast<double>(keys)}),
        kv_starts_(DType::kI32, {2}, {0.0, static_cast<double>(keys)}) {}

  AttentionOp op() const {
    AttentionOp op;
    op.mask.causal = false;
    op.query = query_.view();
    op.query_start_loc = starts_.view();
    op.seq_lens = lens_.view();
    op.kv.key = key_.view();
    op.kv.value = value_.view();
    op.kv.kv_start_loc = kv_starts_.view();
    op.scale = 1.0 / std::sqrt(static_cast<double>(kHeadSize));
    return op;
  }

 private:
  HostTensor query_, key_, value_, starts_, lens_, kv_starts_;
};

double median(std::vector<double> values) {
  if (values.empty()) return 0.0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double largest(const std::vector<double>& values) {
  return values.empty() ? 0.0 : *std::max_element(values.begin(), values.end());
}

std::vector<double> quotients(const std::vector<double>& above, const std::vector<double>& below) {
  std::vector<double> all;
  for (std::size_t i = 0; i < above.size(); ++i) {
    if (below[i] > 0.0) all.push_back(above[i] / below[i]);
  }
  return all;
}

}  // namespace

double BoundSharpness::looseness() const { return largest(bounds) / largest(errors); }
double BoundSharpness::strict_looseness() const { return largest(strict_bounds) / largest(errors); }
double BoundSharpness::largest_ratio() const { return largest(quotients(errors, bounds)); }
double BoundSharpness::largest_strict_ratio() const {
  return largest(quotients(errors, strict_bounds));
}
double BoundSharpness::median_looseness() const { return median(quotients(bounds, errors)); }
double BoundSharpness::median_relative_bound() const { return median(quotients(bounds, sizes)); }

BoundSharpness bound_sharpness(std::string_view name, std::int64_t keys, std::uint64_t seed) {
  const Arithmetic declared = resolve({std::string(name)});
  const DType stored = stored_answer(declared);
  const Arithmetic contract = with_stored_type(declared, stored);
  const Problem data(contract, keys, seed);
  const AttentionProblem problem(data.op());
  const auto reference = make_reference_backend();
  const Tensors expected = answer_operation(*reference, data.op(), true);
  ModelOptions options = plain_model_options(contract, stored);
  options.seed = seed;
  options.weight_error = options.rescale_error = options.scalar_error = Injection::kRandom;
  const Tensors actual = model_answer(data.op(), contract, options);

  const auto view = [&](const char* tensor) {
    const auto found = expected.find(tensor);
    return found == expected.end() ? TensorView{} : found->second.view();
  };
  const Expectation expectation{view("out"), view("lse"), {}, conditioning_sums(view)};
  const ErrorBound bound(problem, contract);
  const ErrorBound own(problem,
                       with_stored_type(resolve(reference->contract(problem)), DType::kF64));
  const HostTensor& out = actual.find("out")->second;
  BoundSharpness figures;
  std::vector<double> row(kHeadSize), own_row(kHeadSize), strict(kHeadSize);
  for (std::int64_t i = 0; i < kTokens * kHeads; ++i) {
    const std::int64_t token = i / kHeads;
    const std::int64_t head = i % kHeads;
    if (!bound.row(expectation, token, head, row).vacuous.empty()) ++figures.vacuous_rows;
    own.row(expectation, token, head, own_row);
    bound.probable_row(expectation, token, head, strict);
    for (std::int64_t j = 0; j < kHeadSize; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const double right = value_at(expectation.out, token, head, j);
      figures.bounds.push_back(row[at] + own_row[at]);
      figures.strict_bounds.push_back(strict[at] + own_row[at]);
      figures.errors.push_back(std::fabs(out.value(token, head, j) - right));
      figures.sizes.push_back(std::fabs(right));
    }
  }
  return figures;
}

}  // namespace attn::property_tests
