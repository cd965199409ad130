// The switches of a selector configuration, by name.
#pragma once

#include <array>
#include <string_view>

#include "attn/selector_config.h"

namespace attn {

struct ConfigSwitch {
  std::string_view name;
  bool AttentionSelectorConfig::*field;
};

// In the order of vLLM's repr, which writes attn_type behind the first kSwitchesBeforeType.
inline constexpr std::size_t kSwitchesBeforeType = 5;
inline constexpr std::array kConfigSwitches = {
    ConfigSwitch{"use_mla", &AttentionSelectorConfig::use_mla},
    ConfigSwitch{"has_sink", &AttentionSelectorConfig::has_sink},
    ConfigSwitch{"use_sparse", &AttentionSelectorConfig::use_sparse},
    ConfigSwitch{"use_mm_prefix", &AttentionSelectorConfig::use_mm_prefix},
    ConfigSwitch{"use_per_head_quant_scales", &AttentionSelectorConfig::use_per_head_quant_scales},
    ConfigSwitch{"has_sliding_window", &AttentionSelectorConfig::has_sliding_window},
    ConfigSwitch{"use_non_causal", &AttentionSelectorConfig::use_non_causal},
    ConfigSwitch{"use_batch_invariant", &AttentionSelectorConfig::use_batch_invariant},
    ConfigSwitch{"use_kv_connector", &AttentionSelectorConfig::use_kv_connector},
    ConfigSwitch{"use_adaptive_verification", &AttentionSelectorConfig::use_adaptive_verification},
    ConfigSwitch{"use_pcp", &AttentionSelectorConfig::use_pcp},
    ConfigSwitch{"use_dcp", &AttentionSelectorConfig::use_dcp},
    ConfigSwitch{"use_rswa", &AttentionSelectorConfig::use_rswa}};

}  // namespace attn
