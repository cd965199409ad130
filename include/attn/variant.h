// The variants of attention this project knows, and what backs each: one table for documentation,
// packs and tests.
#pragma once

#include <span>
#include <string_view>
#include <vector>

namespace attn {

struct Variant {
  std::string_view name;            // also the `variant` of the cases of a pack
  std::string_view op;              // operation of its cases, or "any"; empty without cases
  std::string_view switched_on_by;  // attributes and tensors of a case
  int pack_cases = 0;               // in the core pack

  // Whether a backend answers all of its valid cases in the core pack.
  bool reference = false;
  bool second_reference = false;
  bool cpu = false;

  std::vector<std::string_view> properties;  // "Suite.Claim", of the RapidCheck properties
  std::vector<std::string_view> tests;       // "Suite.Claim", of a variant that no case can express

  bool has_cases() const { return pack_cases != 0; }
};

// In the order of documentation; variants without cases last.
std::span<const Variant> all_variants();

}  // namespace attn
