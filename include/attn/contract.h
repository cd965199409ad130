// What a backend promises about its arithmetic.
#pragma once

#include <string>

namespace attn {

// A named precision contract ("reference", "fp32", ...) and what differs from it: a JSON object in
// the contract language, merged over the named one; "{}" = nothing.
struct PrecisionContract {
  std::string name;
  std::string overrides = "{}";

  bool operator==(const PrecisionContract&) const = default;
};

}  // namespace attn
