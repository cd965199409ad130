// Every point of a finite lattice of configurations, on a list of devices and environments, by
// every described backend: the selector's bits against the second writing's list of reasons.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "attn/selector_config.h"
#include "attn/selector_environment.h"

namespace attn::property_tests {

using Wish = bool AttentionSelectorConfig::*;

// All combinations of these values; wishes that are not listed are off.
struct ConfigLattice {
  std::vector<int> head_sizes;
  std::vector<DType> dtypes;
  std::vector<std::optional<CacheDType>> kv_cache_dtypes;
  std::vector<std::optional<int>> block_sizes;
  std::vector<AttentionType> attn_types;
  std::vector<Wish> wishes;
};

struct Sweep {
  std::vector<SelectorFacts> facts;
  ConfigLattice configs;
};

struct SweepResult {
  std::int64_t points = 0;  // backends x facts x configurations that were compared
  std::string difference;   // the first; empty = none
};

// Backends that raise on a device are left out there.
SweepResult run_sweep(const Sweep& sweep);

// Values that rules look at with the wishes that rules look at; and all wishes with few values.
Sweep value_sweep(bool full);
Sweep wish_sweep(bool full);

}  // namespace attn::property_tests
