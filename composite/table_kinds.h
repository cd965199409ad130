// The tables of the composite: how each makes answers of rows. Every row has `id`, `kind` and
// `expect`, which is the compared member.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "composite/replay.h"
#include "core/table_replay.h"

namespace attn {

LineKind capabilities_table(const JsonNode& header, const VllmBackends& backends);
LineKind routing_table(const JsonNode& header);
LineKind metadata_table(const JsonNode& header);

// A short text cannot ask for a long answer: throws Error, naming the node, when `rows` times
// `columns` entries are too many.
void expect_answer(const JsonNode& node, std::int64_t rows, std::int64_t columns);

// Of metadata_table: the answer to a row about groups of layers (graphs, layouts, block sizes,
// builders); none when its kind is another one.
std::optional<nlohmann::json> answer_group_row(const std::string& kind, const JsonNode& row);

}  // namespace attn
