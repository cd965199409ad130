// Environments and their facts as JSON, by the names of the decision tables.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "attn/selector_environment.h"
#include "core/strict_json.h"

namespace attn {

struct Fact {
  std::string_view name;
  std::string_view type;       // "bool", "integer or null", ...
  std::string_view platforms;  // "cuda,rocm"
  std::string_view meaning;
  void (*read)(const JsonNode& value, SelectorEnvironment& environment);
  nlohmann::json (*write)(const SelectorEnvironment& environment);
};

// Every fact but `model`, in the order of the tables.
std::span<const Fact> facts();

// Reads what differs from some defaults. An unknown fact is an Error.
class EnvironmentReader {
 public:
  EnvironmentReader() = default;
  // The members `environment` and `model_defaults` of a table's header.
  explicit EnvironmentReader(const JsonNode& header);

  SelectorEnvironment read(const JsonNode& differences) const;

 private:
  void apply(const JsonNode& differences, SelectorEnvironment& environment) const;

  ModelFacts model_defaults_;
  SelectorEnvironment defaults_;
};

}  // namespace attn
