// How sharp the error bound is on normal inputs (property_tests/bound_sharpness.h), as a Markdown
// table, one line a named contract and number of keys:
//
//   bound_sharpness [SEED]
//
//   B/err   largest bound / largest error          median  of bound / |error| over the elements
//   B/|out| median of bound / |out|                strict  as B/err, of the probabilistic tier
//   worst   largest |error| / bound, and of the probabilistic tier
#include <fmt/core.h>

#include <charconv>
#include <cstring>

#include "attn/arithmetic.h"
#include "property_tests/bound_sharpness.h"

namespace {

void print_row(std::string_view contract, std::int64_t keys, std::uint64_t seed) {
  const auto sharpness = attn::property_tests::bound_sharpness(contract, keys, seed);
  fmt::print("| {} | {} | {:.1f} | {:.1f} | {:.2g} | {:.1f} | {:.3f} | {:.3f} | {} |\n", contract,
             keys, sharpness.looseness(), sharpness.median_looseness(),
             sharpness.median_relative_bound(), sharpness.strict_looseness(),
             sharpness.largest_ratio(), sharpness.largest_strict_ratio(), sharpness.vacuous_rows);
}

}  // namespace

int main(int argc, char** argv) {
  std::uint64_t seed = 1;
  if (argc > 1) {
    const char* end = argv[1] + std::strlen(argv[1]);
    if (argc > 2 || std::from_chars(argv[1], end, seed).ptr != end) {
      fmt::print(stderr, "usage: bound_sharpness [SEED]\n");
      return 2;
    }
  }
  fmt::print(
      "| contract | keys | B/err | median | B/\\|out\\| | strict | worst | worst strict | vacuous "
      "|\n"
      "|---|---|---|---|---|---|---|---|---|\n");
  for (const std::string_view contract : attn::contract_names()) {
    for (const std::int64_t keys : {64, 1024, 16384}) print_row(contract, keys, seed);
  }
  return 0;
}
