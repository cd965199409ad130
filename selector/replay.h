// Replays decision tables that vLLM produced: answers every row and compares.
#pragma once

#include <string>
#include <string_view>

#include "core/table_replay.h"

namespace attn {

inline constexpr std::string_view kTableFormat = "attn-selector-table/1";

// `text` is a table of lines when `lines`, else a whole file; `on_row` sees every row in order.
// Throws Error for what is not a table of this format; then `on_row` may have seen rows.
ReplayReport replay_table(std::string_view text, bool lines, const RowObserver& on_row);

// A file; its name says whether it is a table of lines (.jsonl) or a whole file (.json).
ReplayReport replay_table_file(const std::string& path, const RowObserver& on_row);

}  // namespace attn
