#include "property_tests/drawn_contract.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <string>
#include <vector>

#include "attn/arithmetic.h"
#include "property_tests/draws.h"

namespace attn::property_tests {
namespace {

std::string merged_parts(Draws& draws) {
  const std::int64_t splits = 2 + draws.below(6);
  const std::int64_t depths[] = {
      1, splits - 1,
      static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(splits - 1)))};
  constexpr const char* kKinds[] = {"acc", "lse"};
  constexpr const char* kParts[] = {"exact", "f32", "f16", "bf16"};
  return fmt::format(R"("splits":{},"merge":{{"kind":"{}","depth":{},"part":"{}","lse":"f32"}})",
                     splits, draws.one_of(kKinds), draws.one_of(depths), draws.one_of(kParts));
}

std::string weights(Draws& draws) {
  constexpr const char* kTypes[] = {
      R"("p":{"type":"f16"})",
      R"("p":{"type":"bf16","flush":true})",
      R"("p":{"type":"f8_e4m3fn","scale":"0x1p+0"})",
      R"("p":{"type":"f8_e4m3fn","scale":"0x1p+8","roundings":2})",
      R"("p":{"type":"f8_e5m2","scale":"0x1p+4","roundings":1})",
      R"("p":{"type":"tf32","mode":"truncate"})",
      R"("p":{"type":"bf16","normalized":true},"tile":0)",
      R"("p":{"type":"exact"})",
  };
  return draws.one_of(kTypes);
}

std::string sums(Draws& draws) {
  constexpr const char* kSums[] = {
      R"("sum":{"rounded_p":true})",
      R"("pv":{"block":16,"inner":{"unit":"0x1p-13"}})",
      R"("dot":{"block":8,"inner":{"unit":"0x1p-13"}})",
      R"("dot":{"mode":"truncate","mma_k":4},"pv":{"mode":"truncate","mma_k":8})",
      R"("dot":{"lanes":4},"sum":{"lanes":8,"block":32},"pv":{"lanes":2,"block":16})",
  };
  return draws.one_of(kSums);
}

std::string exponentials(Draws& draws) {
  constexpr const char* kExponentials[] = {
      R"("exp":{"rel":"0x1p-23","arg_roundings":1,"shift_roundings":0})",
      R"("exp":{"rel":"0x1p-10","abs":"0x1p-24"})",
      R"("exp":{"rel":"0x0p+0","abs":"0x0p+0"})",
  };
  return draws.one_of(kExponentials);
}

std::string operands(Draws& draws) {
  constexpr const char* kOperands[] = {
      R"("query":{"type":"f16","scale":"0x1p-3"})",
      R"("query":"bf16","key":"bf16","value":"bf16")",
      R"("query":"f8_e4m3fn","key":"f8_e5m2")",
      R"("value":{"type":"f16","flush":true})",
  };
  return draws.one_of(kOperands);
}

std::string logits(Draws& draws) {
  constexpr const char* kLogits[] = {
      R"("logit":"bf16","logit_roundings":1)",
      R"("logit":"f16","logit_roundings":2)",
      R"("max_lag":"0x1.62e43p+2")",
      R"("cap":{"rel":"0x1p-11","abs":"0x1p-16"},"bias_rel":"0x1p-9")",
  };
  return draws.one_of(kLogits);
}

}  // namespace

PrecisionContract draw_contract(std::uint64_t seed) {
  Draws draws(seed);
  const std::vector<std::string_view> names = contract_names();
  PrecisionContract contract{std::string(
      names[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(names.size())))])};
  if (draws.one_in(2)) return contract;
  std::vector<std::string> fields;
  if (draws.one_in(5)) fields.push_back(merged_parts(draws));
  if (draws.one_in(5)) fields.push_back(weights(draws));
  if (draws.one_in(5)) fields.push_back(sums(draws));
  if (draws.one_in(5)) fields.push_back(exponentials(draws));
  if (draws.one_in(5)) fields.push_back(operands(draws));
  if (draws.one_in(5)) fields.push_back(logits(draws));
  if (draws.one_in(5)) fields.emplace_back(R"("flush":true)");
  contract.overrides = fmt::format("{{{}}}", fmt::join(fields, ","));
  return contract;
}

}  // namespace attn::property_tests
