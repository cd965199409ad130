// Replays tables of what vLLM's composite backend and the utilities around it answered: answers
// every row as vLLM does, also where this library differs on purpose, and compares.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "attn/attention_backend.h"
#include "attn/selector_environment.h"
#include "core/table_replay.h"

namespace attn {

inline constexpr std::string_view kCompositeTableFormat = "attn-composite-table/1";

// A composite of vLLM's own, as it is described on a device.
struct VllmBackend {
  AttentionBackendPtr backend;
  SelectorFacts facts;
};

// By its name, on a CUDA device where every question for FlashAttention's version has this answer;
// none = not known.
using VllmBackends = std::function<std::optional<VllmBackend>(
    const std::string& name, const DeviceCapability& device,
    std::optional<int> flash_attn_version)>;

// `backends` answers rows about vLLM's own composites; without it they are Errors. `on_row` sees
// every row in order. Throws Error for what is not a table of this format; then `on_row` may have
// seen rows.
ReplayReport replay_composite_table(std::string_view text, const VllmBackends& backends,
                                    const RowObserver& on_row);

// Also throws Error when the file cannot be read.
ReplayReport replay_composite_table_file(const std::string& path, const VllmBackends& backends,
                                         const RowObserver& on_row);

}  // namespace attn
