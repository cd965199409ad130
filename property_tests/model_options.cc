#include "property_tests/model_options.h"

#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <numeric>

#include "attn/random.h"
#include "property_tests/draws.h"

namespace attn::property_tests {
namespace {

// Cells of the grid of steps do not cut groups of a matrix step.
std::int64_t whole_groups(const Arithmetic& arithmetic, std::int64_t tile) {
  const std::int64_t k = std::lcm(std::max<std::int64_t>(arithmetic.pv.mma_k, 1),
                                  std::max<std::int64_t>(arithmetic.sum.mma_k, 1));
  return (tile + k - 1) / k * k;
}

ExponentForm draw_exponent(Draws& draws, const Arithmetic& arithmetic) {
  const int argument = arithmetic.exp_arg_roundings;
  const int shift = arithmetic.exp_shift_roundings;
  const auto form = static_cast<ExponentForm>(draws.below(4));
  switch (form) {
    case ExponentForm::kDifference:
      return form;
    case ExponentForm::kDifference2:
      return argument >= 3 ? form : ExponentForm::kDifference;
    case ExponentForm::kProducts2:
      return argument >= 3 && shift >= 2 ? form : ExponentForm::kDifference;
    case ExponentForm::kFused2:
      return argument >= 2 && shift >= 1 ? form : ExponentForm::kDifference;
  }
  return ExponentForm::kDifference;
}

}  // namespace

ModelOptions plain_model_options(const Arithmetic& arithmetic, DType stored) {
  ModelOptions options;
  options.stored = stored;
  options.tile = arithmetic.tile > 0 ? whole_groups(arithmetic, arithmetic.tile) : 0;
  options.parts = arithmetic.splits;
  return options;
}

ModelOptions draw_model_options(std::uint64_t seed, const Arithmetic& arithmetic, DType stored) {
  Draws draws(seed);
  ModelOptions options;
  options.seed = derived_seed(seed, 1U << 20);
  options.stored = stored;
  if (arithmetic.tile > 0 && draws.below(4) != 0) {
    const std::int64_t larger[] = {0, 0, 0, 1, arithmetic.tile, 3 * arithmetic.tile};
    options.tile = whole_groups(arithmetic, arithmetic.tile + draws.one_of(larger));
  }
  options.grid_shift = draws.yes() ? draws.below(1024) : 0;
  options.parts = draws.yes() ? arithmetic.splits : 1 + draws.below(arithmetic.splits);
  options.even_parts = draws.yes();
  options.merge = static_cast<MergeOrder>(draws.below(3));
  options.dot_order = static_cast<SumOrder>(draws.below(4));
  constexpr SumOrder kOrdersOfKeys[] = {SumOrder::kForward, SumOrder::kBackward, SumOrder::kForward,
                                        SumOrder::kMore};
  options.key_order = draws.one_of(kOrdersOfKeys);
  options.exponent = draw_exponent(draws, arithmetic);
  options.flush_exp = draws.yes();
  const double lags[] = {0.0, 0.5, 1.0};
  options.lag = arithmetic.max_lag * draws.one_of(lags);
  options.sink = static_cast<SinkPlace>(draws.below(4));
  options.reciprocal = draws.yes();
  options.latent = draws.yes() ? LatentPath::kPrefill : LatentPath::kAbsorbed;
  options.weight_error = static_cast<Injection>(draws.below(4));
  options.rescale_error = static_cast<Injection>(draws.below(4));
  options.scalar_error = static_cast<Injection>(draws.below(4));
  return options;
}

std::string to_string(const ModelOptions& options) {
  const auto number = [](auto value) { return static_cast<int>(value); };
  return fmt::format(
      "seed {:#x} stored {} tile {} grid_shift {} parts {}{} merge {} dot_order {} key_order {} "
      "exponent {}{} lag {} sink {}{} latent {} errors {} {} {}",
      options.seed, name(options.stored), options.tile, options.grid_shift, options.parts,
      options.even_parts ? " even" : "", number(options.merge), number(options.dot_order),
      number(options.key_order), number(options.exponent), options.flush_exp ? " flush_exp" : "",
      options.lag, number(options.sink), options.reciprocal ? " reciprocal" : "",
      number(options.latent), number(options.weight_error), number(options.rescale_error),
      number(options.scalar_error));
}

}  // namespace attn::property_tests
