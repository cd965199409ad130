#include "property_tests/bound_climb.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "attn/arithmetic.h"
#include "attn/reference.h"
#include "property_tests/draws.h"
#include "property_tests/hand_row.h"
#include "property_tests/judged_tensors.h"
#include "property_tests/model_answer.h"

namespace attn::property_tests {
namespace {

constexpr int kPatience = 120;  // steps without a better problem before a new start

double drawn_power(Draws& draws) {  // 2^-24 .. 2^3
  return std::exp2(static_cast<double>(draws.below(28)) - 24.0);
}

// A problem and a kernel.
struct Point {
  HandRow row;
  ModelOptions options;

  std::string to_string() const {
    return fmt::format(
        "q {} k {} v {} positions {} biases {} alibi {} scale {} cap {} sink {}{} by {}", row.query,
        row.keys, row.values, row.positions, row.biases, row.alibi_slope.value_or(0.0), row.scale,
        row.cap, row.sink.value_or(NAN), row.lse_includes_sink ? "" : " outside of lse",
        property_tests::to_string(options));
  }
};

class Climber {
 public:
  Climber(const PrecisionContract& contract, std::uint64_t seed)
      : contract_(contract),
        stored_(resolve(contract).vector == NumberFormat::kF64 ? DType::kF64 : DType::kF32),
        arithmetic_(with_stored_type(resolve(contract), stored_)),
        draws_(seed),
        reference_(make_reference_backend()) {}

  ClimbResult climb(int steps) {
    int idle = kPatience;
    double current = 0.0;
    for (int step = 0; step < steps; ++step) {
      const bool anew = idle >= kPatience;
      Point next = anew ? start() : moved(point_);
      // Climbs are on out and on lse in turn: either hides the other's terms.
      if (anew) of_lse_ = !of_lse_;
      const double ratio = ratio_of(next);
      idle = anew || ratio > current ? 0 : idle + 1;
      if (!anew && ratio < current) continue;
      point_ = std::move(next);
      current = ratio;
    }
    return result_;
  }

 private:
  double ratio_of(const Point& point) {
    const DrawnOperation drawn = operation_of(point.row);
    const AttentionProblem problem(drawn.operation);
    const Tensors expected = answer_operation(*reference_, drawn.operation, true);
    const Tensors actual = model_answer(drawn.operation, arithmetic_, point.options);
    const Judgement judgement = judge_tensors(problem, expected, {"reference"}, actual, contract_);
    double ratio = 0.0;
    for (const TensorComparison& tensor : judgement.tensors) {
      const bool is_lse = tensor.name == "lse";
      double& largest = is_lse ? result_.largest_lse : result_.largest_out;
      if (is_lse == of_lse_) ratio = tensor.ratio;
      if (tensor.ratio <= largest) continue;
      largest = tensor.ratio;
      (is_lse ? result_.where_lse : result_.where_out) = point.to_string();
    }
    return ratio;
  }

  std::vector<double> numbers(std::int64_t size, double scale) {
    std::vector<double> drawn;
    for (std::int64_t i = 0; i < size; ++i) drawn.push_back(scale * draws_.even());
    return drawn;
  }

  Point start() {
    Point point;
    HandRow& row = point.row;
    row.type = DType::kF32;
    const std::int64_t keys = 1 + draws_.below(12);
    const std::int64_t size = 1 + draws_.below(8);
    const std::int64_t size_v = 1 + draws_.below(2);
    row.scale = draws_.one_in(2) ? 1.0 : std::exp2(-static_cast<double>(draws_.below(4)));
    row.query = numbers(size, draws_.one_in(2) ? 1.0 : std::exp2(draws_.below(7)));
    const bool spread = draws_.one_in(3);
    for (std::int64_t k = 0; k < keys; ++k) {
      row.keys.push_back(numbers(size, 1.0));
      row.values.push_back(numbers(size_v, 1.0));
      if (spread) row.positions.push_back(k * std::max<std::int64_t>(arithmetic_.tile, 1));
    }
    if (draws_.one_in(4)) row.cap = std::exp2(draws_.below(5));
    if (draws_.one_in(3)) row.biases = numbers(keys, std::exp2(draws_.below(10)));
    if (draws_.one_in(6)) row.alibi_slope = draws_.even() * std::exp2(draws_.below(6));
    if (draws_.one_in(3)) {
      row.sink = draws_.even() * std::exp2(draws_.below(6));
      row.lse_includes_sink = !draws_.one_in(3);
    }
    point.options = draw_model_options(draws_.word(), arithmetic_, stored_);
    return point;
  }

  // Every number of the row that may move.
  static std::vector<double*> coordinates(HandRow& row) {
    std::vector<double*> all;
    const auto take = [&](std::vector<double>& numbers) {
      for (double& x : numbers) all.push_back(&x);
    };
    take(row.query);
    for (std::vector<double>& key : row.keys) take(key);
    for (std::vector<double>& value : row.values) take(value);
    take(row.biases);
    if (row.sink) all.push_back(&*row.sink);
    if (row.alibi_slope) all.push_back(&*row.alibi_slope);
    return all;
  }

  Point moved(const Point& from) {
    Point point = from;
    if (draws_.one_in(5)) {
      change_kernel(point.options);
      return point;
    }
    const std::vector<double*> all = coordinates(point.row);
    const std::int64_t count = 1 + draws_.below(draws_.one_in(3) ? 4 : 1);
    for (std::int64_t i = 0; i < count; ++i) {
      double& x =
          *all[static_cast<std::size_t>(draws_.below(static_cast<std::int64_t>(all.size())))];
      move_number(x, all);
    }
    return point;
  }

  void move_number(double& x, const std::vector<double*>& all) {
    switch (draws_.below(8)) {
      case 0:
        x = -x;
        return;
      case 1:
        x = draws_.even();
        return;
      case 2:
        x = *all[static_cast<std::size_t>(draws_.below(static_cast<std::int64_t>(all.size())))];
        return;
      case 3:
        x *= draws_.one_in(2) ? 2.0 : 0.5;
        return;
      case 4:
        x += draws_.even() * drawn_power(draws_);
        return;
      default:
        x *= 1.0 + draws_.even() * drawn_power(draws_);
        return;
    }
  }

  // One choice as another kernel makes it.
  void change_kernel(ModelOptions& options) {
    const ModelOptions other = draw_model_options(draws_.word(), arithmetic_, stored_);
    switch (draws_.below(9)) {
      case 0:
        options.seed = other.seed;
        return;
      case 1:
        options.tile = other.tile;
        options.grid_shift = other.grid_shift;
        return;
      case 2:
        options.parts = other.parts;
        options.even_parts = other.even_parts;
        options.merge = other.merge;
        return;
      case 3:
        options.dot_order = other.dot_order;
        options.key_order = other.key_order;
        return;
      case 4:
        options.exponent = other.exponent;
        options.lag = other.lag;
        return;
      case 5:
        options.sink = other.sink;
        return;
      case 6:
        options.weight_error = other.weight_error;
        options.flush_exp = other.flush_exp;
        return;
      case 7:
        options.rescale_error = other.rescale_error;
        options.reciprocal = other.reciprocal;
        return;
      default:
        options.scalar_error = other.scalar_error;
        return;
    }
  }

  const PrecisionContract& contract_;
  DType stored_;
  Arithmetic arithmetic_;
  Draws draws_;
  std::unique_ptr<Backend> reference_;
  Point point_;
  bool of_lse_ = true;
  ClimbResult result_;
};

}  // namespace

ClimbResult climb(const PrecisionContract& contract, std::uint64_t seed, int steps) {
  return Climber(contract, seed).climb(steps);
}

}  // namespace attn::property_tests
