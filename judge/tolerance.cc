#include <fmt/core.h>

#include <cmath>
#include <cstdlib>

#include "attn/error.h"
#include "attn/verdict.h"
#include "core/special_values.h"
#include "judge/row_values.h"

namespace attn {
namespace {

// Visits all index tuples of a shape in C order.
class Indices {
 public:
  explicit Indices(const TensorView& view) : at_(static_cast<std::size_t>(view.rank), 0) {
    for (int axis = 0; axis < view.rank; ++axis) shape_.push_back(view.shape[axis]);
  }
  const std::vector<std::int64_t>& at() const { return at_; }
  void next() {
    for (std::size_t axis = at_.size(); axis-- > 0;) {
      if (++at_[axis] < shape_[axis]) return;
      at_[axis] = 0;
    }
  }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<std::int64_t> at_;
};

const std::byte* element(const TensorView& view, const std::vector<std::int64_t>& at) {
  std::int64_t offset = 0;
  for (std::size_t axis = 0; axis < at.size(); ++axis) {
    offset += at[axis] * view.stride_bytes[axis];
  }
  return static_cast<const std::byte*>(view.data) + offset;
}

void require_same_shape(const std::string& name, const TensorView& expected,
                        const TensorView& actual) {
  bool same = expected.rank == actual.rank;
  for (int axis = 0; same && axis < expected.rank; ++axis) {
    same = expected.shape[axis] == actual.shape[axis];
  }
  if (!same) {
    throw Error(fmt::format("{} is {}, expected the shape of {}", name, to_string(actual),
                            to_string(expected)));
  }
}

// How far apart two values are in units of what is allowed; infinite where a special does not
// match.
double ratio_of(double expected, double actual, double allowed) {
  if (expected == actual || (std::isnan(expected) && std::isnan(actual))) return 0.0;
  if (!std::isfinite(expected) || !std::isfinite(actual)) return kInf;
  const double difference = std::fabs(expected - actual);
  return allowed > 0.0 ? difference / allowed : kInf;
}

bool is_nan_code(std::uint64_t code) { return (code & 0x7F) == 0x7F; }

// Position of an e4m3fn code on the number line; the two zeros share one.
int code_rank(std::uint64_t code) {
  const auto magnitude = static_cast<int>(code & 0x7F);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

// What a report shows of a unit: its value, or the byte of two packed elements.
double unit_value(DType dtype, std::uint64_t code) {
  return elements_per_unit(dtype) == 1 ? decode(dtype, code) : static_cast<double>(code);
}

// Goes over both tensors; `ratio` takes the two elements' addresses and sets what is reported of
// them.
template <class Ratio>
TensorComparison compare(const std::string& name, const TensorView& expected,
                         const TensorView& actual, Ratio ratio) {
  require_same_shape(name, expected, actual);
  TensorComparison result;
  result.name = name;
  result.elements = expected.num_units();
  Indices indices(expected);
  for (std::int64_t i = 0; i < result.elements; ++i, indices.next()) {
    WorstElement element_here;
    const double r =
        ratio(element(expected, indices.at()), element(actual, indices.at()), element_here);
    if (!(r <= 1.0)) ++result.over;
    if (r > result.ratio) {
      result.ratio = r;
      element_here.at = indices.at();
      element_here.expected = judge::without_nan_sign(element_here.expected);
      element_here.actual = judge::without_nan_sign(element_here.actual);
      result.worst = element_here;
    }
  }
  return result;
}

}  // namespace

std::string_view name(Verdict verdict) {
  constexpr std::string_view kNames[] = {"pass", "fail", "skipped", "mistrusted"};
  return kNames[static_cast<int>(verdict)];
}

TensorComparison compare_within(const std::string& name, const TensorView& expected,
                                const TensorView& actual, Tolerance tolerance) {
  for (const TensorView* view : {&expected, &actual}) {
    if (!is_floating(view->dtype) || elements_per_unit(view->dtype) != 1) {
      throw Error(fmt::format("{} is {}, expected a floating type", name, to_string(*view)));
    }
  }
  return compare(name, expected, actual,
                 [&](const std::byte* e_at, const std::byte* a_at, WorstElement& here) {
                   here.expected = decode(expected.dtype, load_code(expected.dtype, e_at));
                   here.actual = decode(actual.dtype, load_code(actual.dtype, a_at));
                   const double magnitude = std::fabs(here.expected);
                   here.bound =
                       std::isfinite(magnitude) ? tolerance.atol + tolerance.rtol * magnitude : 0.0;
                   return ratio_of(here.expected, here.actual, here.bound);
                 });
}

TensorComparison compare_bits(const std::string& name, const TensorView& expected,
                              const TensorView& actual) {
  if (expected.dtype != actual.dtype) {
    throw Error(fmt::format("{} is {}, expected {}", name, to_string(actual), to_string(expected)));
  }
  const DType dtype = expected.dtype;
  return compare(name, expected, actual,
                 [dtype](const std::byte* e_at, const std::byte* a_at, WorstElement& here) {
                   const std::uint64_t e = load_code(dtype, e_at);
                   const std::uint64_t a = load_code(dtype, a_at);
                   here.expected = unit_value(dtype, e);
                   here.actual = unit_value(dtype, a);
                   // Any code for NaN serves where a format below 16 bits has several.
                   const bool both_nan = elements_per_unit(dtype) == 1 && bits(dtype) < 16 &&
                                         std::isnan(here.expected) && std::isnan(here.actual);
                   return e == a || both_nan ? 0.0 : kInf;
                 });
}

TensorComparison compare_codes(const std::string& name, const TensorView& expected,
                               const TensorView& actual, int neighbours) {
  for (const TensorView* view : {&expected, &actual}) {
    if (view->dtype != DType::kF8E4M3FN && view->dtype != DType::kU8) {
      throw Error(fmt::format("{} is {}, expected f8_e4m3fn codes", name, to_string(*view)));
    }
  }
  return compare(name, expected, actual,
                 [&](const std::byte* e_at, const std::byte* a_at, WorstElement& here) {
                   const std::uint64_t e = load_code(DType::kU8, e_at);
                   const std::uint64_t a = load_code(DType::kU8, a_at);
                   here.expected = decode(DType::kF8E4M3FN, e);
                   here.actual = decode(DType::kF8E4M3FN, a);
                   here.bound = neighbours;
                   if (is_nan_code(e) || is_nan_code(a)) {
                     return is_nan_code(e) && is_nan_code(a) ? 0.0 : kInf;
                   }
                   const int apart = std::abs(code_rank(e) - code_rank(a));
                   return neighbours == 0 ? (apart == 0 ? 0.0 : kInf)
                                          : static_cast<double>(apart) / neighbours;
                 });
}

}  // namespace attn
