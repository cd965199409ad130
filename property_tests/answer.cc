#include "property_tests/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <new>

#include "attn/error.h"
#include "property_tests/problem_data.h"

namespace attn::property_tests {
namespace {

class AlignedBytes {
 public:
  AlignedBytes(std::size_t size, std::uint8_t content)
      : data_(
            static_cast<std::byte*>(::operator new(size, std::align_val_t{kWorkspaceAlignment}))) {
    std::fill_n(data_.get(), size, std::byte{content});
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete(memory, std::align_val_t{kWorkspaceAlignment});
    }
  };
  std::unique_ptr<std::byte, Free> data_;
};

// An output whose rows may have gaps behind them.
class OutputTensor {
 public:
  OutputTensor() = default;
  OutputTensor(DType dtype, std::vector<std::int64_t> shape, const Circumstances& circumstances)
      : width_(shape.back()), gap_(circumstances.output_gap) {
    shape.back() += gap_;
    tensor_ = HostTensor(dtype, std::move(shape));
    tensor_.fill(0x0101010101010101u * circumstances.outputs_before);
    untouched_ = tensor_;
  }

  MutableTensorView view() {
    MutableTensorView view = tensor_.view();
    if (view.present()) view.shape[view.rank - 1] = width_;
    return view;
  }

  // Codes in C order. Throws Error when a gap has changed.
  std::vector<std::uint64_t> codes() const {
    std::vector<std::uint64_t> codes;
    if (!tensor_.present()) return codes;
    for (std::int64_t i = 0; i < tensor_.num_units(); ++i) {
      if (i % (width_ + gap_) < width_) {
        codes.push_back(tensor_.code(i));
      } else if (tensor_.code(i) != untouched_.code(i)) {
        throw Error(fmt::format("unit {} of an output lies in a gap and was written", i));
      }
    }
    return codes;
  }

  std::vector<double> numbers() const {
    std::vector<double> values;
    for (const std::uint64_t code : codes()) values.push_back(decode(tensor_.dtype(), code));
    return values;
  }

 private:
  std::int64_t width_ = 0;
  std::int64_t gap_ = 0;
  HostTensor tensor_;
  HostTensor untouched_;
};

bool same_bits(double a, double b) {
  return std::isnan(a) ? std::isnan(b)
                       : std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

bool within(double a, double b, double allowed) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  return a == b || std::fabs(a - b) <= allowed;
}

// Walks over the tokens of two answers; `equal(a, b, is_lse)` compares two numbers.
template <class Equal>
std::string first_difference(const Answer& a, std::int64_t first_a, const Answer& b,
                             std::int64_t first_b, std::int64_t count, const Equal& equal) {
  if (a.num_heads != b.num_heads || a.head_size_v != b.head_size_v) {
    return "the answers have different shapes";
  }
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t h = 0; h < a.num_heads; ++h) {
      const double lse_a = a.lse_at(first_a + t, h);
      const double lse_b = b.lse_at(first_b + t, h);
      if (!equal(lse_a, lse_b, true)) {
        return fmt::format("lse of token {} head {}: {:.17g} and {:.17g}", first_a + t, h, lse_a,
                           lse_b);
      }
      for (std::int64_t d = 0; d < a.head_size_v; ++d) {
        const double out_a = a.out_at(first_a + t, h, d);
        const double out_b = b.out_at(first_b + t, h, d);
        if (equal(out_a, out_b, false)) continue;
        return fmt::format("out of token {} head {} dim {}: {:.17g} and {:.17g}", first_a + t, h, d,
                           out_a, out_b);
      }
    }
  }
  return {};
}

}  // namespace

Answer answer(const Backend& backend, const AttentionOp& op, const Circumstances& circumstances) {
  const AttentionProblem problem(op);
  const std::vector<std::string> reasons = backend.supports(problem);
  if (!reasons.empty()) throw Unsupported(fmt::format("{}", fmt::join(reasons, "; ")));
  const Capabilities& capabilities = backend.capabilities();
  if (capabilities.lse_form != LseForm{}) throw Error("only the default form of lse can be read");
  Answer result;
  result.num_tokens = op.num_tokens();
  result.num_heads = op.num_heads();
  result.head_size_v = op.head_size_v();
  result.dtype = capabilities.output_dtypes.at(0);
  const std::vector<std::int64_t> shape = {result.num_tokens, result.num_heads, result.head_size_v};
  OutputTensor out;
  OutputTensor lse;
  OutputTensor codes;
  if (circumstances.with_out) out = OutputTensor(result.dtype, shape, circumstances);
  if (circumstances.with_lse) {
    lse = OutputTensor(result.dtype, {result.num_heads, result.num_tokens}, circumstances);
  }
  if (op.output_scale.present() && circumstances.with_codes) {
    codes = OutputTensor(DType::kF8E4M3FN, shape, circumstances);
  }
  Outputs outputs;
  outputs.out = out.view();
  outputs.lse = lse.view();
  outputs.out_codes = codes.view();
  const AttentionProblem planned(circumstances.prepared_for ? *circumstances.prepared_for : op);
  const std::size_t bytes = backend.workspace_bytes(planned);
  const AlignedBytes workspace(bytes, circumstances.workspace_before);
  const std::unique_ptr<Plan> plan = backend.prepare(planned, {workspace.data(), bytes});
  if (circumstances.ran_before) plan->run(planned, outputs);
  plan->run(problem, outputs);
  result.exec = plan->exec();
  result.out = out.numbers();
  result.lse = lse.numbers();
  for (const std::uint64_t code : codes.codes()) {
    result.codes.push_back(static_cast<std::uint8_t>(code));
  }
  return result;
}

Answer answer(const Backend& backend, const LogicalProblem& problem, const MemoryForm& form) {
  const ProblemData data(problem, form);
  return answer(backend, data.op());
}

std::string bit_difference(const Answer& a, std::int64_t first_a, const Answer& b,
                           std::int64_t first_b, std::int64_t count) {
  return first_difference(a, first_a, b, first_b, count,
                          [](double x, double y, bool) { return same_bits(x, y); });
}

std::string bit_difference(const Answer& a, const Answer& b) {
  if (a.num_tokens != b.num_tokens) return "the answers have different numbers of tokens";
  if (a.codes != b.codes) return "the output codes";
  return bit_difference(a, 0, b, 0, a.num_tokens);
}

std::string difference(const Answer& a, std::int64_t first_a, const Answer& b, std::int64_t first_b,
                       std::int64_t count, Closeness allowed) {
  return first_difference(a, first_a, b, first_b, count, [&](double x, double y, bool is_lse) {
    return within(x, y, is_lse ? allowed.lse : allowed.out);
  });
}

std::string difference(const Answer& a, const Answer& b, Closeness allowed) {
  if (a.num_tokens != b.num_tokens) return "the answers have different numbers of tokens";
  return difference(a, 0, b, 0, a.num_tokens, allowed);
}

}  // namespace attn::property_tests
