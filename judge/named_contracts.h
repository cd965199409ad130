// The precision contracts that have a name.
#pragma once

#include <span>
#include <string_view>

namespace attn::judge {

struct NamedContract {
  std::string_view name;
  std::string_view fields;  // JSON, as contract_fields.h reads it; may extend one above it
};

// The first is "fp32"; it has every field.
std::span<const NamedContract> named_contracts();

}  // namespace attn::judge
