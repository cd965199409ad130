// A selection to be made: a device with its environment, a registry and a request. Drawn as a
// common case and a list of departures from it, so that shrinking leaves what matters.
#pragma once

#include <array>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "attn/selector.h"
#include "property_tests/selector_choice.h"

namespace attn::property_tests {

// Wishes that only ever cost: the backend may lack them, never need them.
inline constexpr std::array kWishes = {&AttentionSelectorConfig::has_sink,
                                       &AttentionSelectorConfig::use_mm_prefix,
                                       &AttentionSelectorConfig::use_per_head_quant_scales,
                                       &AttentionSelectorConfig::has_sliding_window,
                                       &AttentionSelectorConfig::use_non_causal,
                                       &AttentionSelectorConfig::use_batch_invariant,
                                       &AttentionSelectorConfig::use_kv_connector,
                                       &AttentionSelectorConfig::use_pcp,
                                       &AttentionSelectorConfig::use_adaptive_verification,
                                       &AttentionSelectorConfig::use_dcp,
                                       &AttentionSelectorConfig::use_rswa};

struct SelectionCase {
  SelectorFacts facts;
  SelectionRequest request;
  PathOverrides overrides;
};

// Field `field` takes its option number `value`, modulo how many there are.
struct Departure {
  int field = 0;
  int value = 0;
};

struct CaseDraw {
  int common = 0;  // which common case
  std::vector<Departure> departures;
};

int num_common_cases();
int num_fields();          // of the request, the registry and the environment
int num_request_fields();  // of them the first, which a request has

SelectionCase make_case(const CaseDraw& draw);
std::string to_string(const CaseDraw& draw);
void showValue(const CaseDraw& draw, std::ostream& out);  // for RapidCheck

// The registry with the case's overrides.
BackendRegistry registry_of(const SelectionCase& one);

// The requests on the way from the common case to this one, both included.
std::vector<SelectionRequest> requests_on_the_way(const CaseDraw& draw);

// Names of all members that a row describes.
std::vector<std::string> described_members();

}  // namespace attn::property_tests
