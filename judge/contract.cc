#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attn/arithmetic.h"
#include "attn/error.h"
#include "core/contains.h"
#include "core/strict_json.h"
#include "judge/contract_fields.h"
#include "judge/named_contracts.h"

namespace attn {
namespace {

constexpr std::string_view kDefaultBase = "fp32";

// `name` is in the table. Only contracts above it can be extended, so this ends.
Arithmetic named_arithmetic(std::string_view name) {
  const auto table = judge::named_contracts();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const auto& contract) { return contract.name == name; });
  const JsonDocument document(found->fields, std::string(name));
  Arithmetic arithmetic;
  if (document.root().has("extends")) {
    arithmetic = named_arithmetic(document.root().at("extends").string());
  }
  judge::apply_fields(document.root(), judge::Extends::kAllowed, arithmetic);
  arithmetic.name = name;
  return arithmetic;
}

}  // namespace

std::vector<std::string_view> contract_names() {
  std::vector<std::string_view> names;
  for (const auto& contract : judge::named_contracts()) names.push_back(contract.name);
  return names;
}

Arithmetic resolve(const PrecisionContract& contract) {
  const std::vector<std::string_view> names = contract_names();
  if (!contains(names, contract.name)) {
    throw Error(fmt::format("contract is {}, expected one of {}", in_quotes(contract.name),
                            fmt::join(names, ", ")));
  }
  Arithmetic arithmetic = named_arithmetic(contract.name);
  const JsonDocument overrides(contract.overrides, "contract");
  judge::apply_fields(overrides.root(), judge::Extends::kUnknown, arithmetic);
  return arithmetic;
}

PrecisionContract parse_contract(std::string_view json, std::string name) {
  const JsonDocument document(json, std::move(name));
  const JsonNode root = document.root();
  const std::vector<std::string_view> names = contract_names();
  const std::string base(root.has("extends") ? names[root.at("extends").choice(std::span(names))]
                                             : kDefaultBase);
  Arithmetic arithmetic = named_arithmetic(base);
  judge::apply_fields(root, judge::Extends::kAllowed, arithmetic);
  nlohmann::json overrides = nlohmann::json::parse(json);
  overrides.erase("extends");
  return {base, overrides.dump()};
}

}  // namespace attn
