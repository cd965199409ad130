#include "composite/replay.h"

#include <fmt/core.h>

#include "attn/error.h"
#include "composite/table_kinds.h"
#include "core/text_file.h"

namespace attn {
namespace {

LineKind kind_of(const JsonNode& header, const VllmBackends& backends) {
  switch (header.at("table").choice({"capabilities", "routing", "metadata"})) {
    case 0:
      return capabilities_table(header, backends);
    case 1:
      return routing_table(header);
    default:
      return metadata_table(header);
  }
}

}  // namespace

ReplayReport replay_composite_table(std::string_view text, const VllmBackends& backends,
                                    const RowObserver& on_row) {
  LineFormat format;
  format.name = kCompositeTableFormat;
  format.has_ids = true;
  format.python_texts_are_free = true;
  format.kind = [&backends](const JsonNode& header) { return kind_of(header, backends); };
  return replay_lines(text, format, on_row);
}

ReplayReport replay_composite_table_file(const std::string& path, const VllmBackends& backends,
                                         const RowObserver& on_row) {
  const std::string text = text_of_file(path);
  try {
    return replay_composite_table(text, backends, on_row);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", path, error.what()));
  }
}

}  // namespace attn
