#include "golden/case_index.h"

#include <fmt/core.h>

#include <algorithm>

#include "golden/case_object.h"
#include "golden/error_source.h"

namespace attn::golden {
namespace {

double parse_limit(const JsonNode& node) {
  const double limit = node.number();
  if (limit < 0.0) node.fail("a number >= 0");
  return limit;
}

std::string parse_file_name(const JsonNode& node) {
  std::string file = node.string();
  if (!is_plain_file_name(file)) node.fail("the plain name of a file in the folder");
  return file;
}

}  // namespace

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool is_plain_file_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

void for_each_line(std::string_view text, const std::string& where,
                   const std::function<void(const JsonNode& line)>& take) {
  for (int number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    with_source(fmt::format("{}:{}", where, number), [&] {
      const JsonDocument document(line, "line");
      take(document.root());
    });
  }
}

CaseIndexRow parse_index_row(const JsonNode& line) {
  CaseIndexRow row;
  row.id = parse_id(line.at("id"));
  row.file = parse_file_name(line.at("file"));
  row.op = parse_op(line.at("op"));
  row.variant = parse_variant(line.at("variant"));
  row.result = parse_result(line.at("result"));
  for (const auto& [tensor, pair] : line.at("tolerance").members()) {
    const std::vector<JsonNode> limits = pair.elements();
    if (limits.size() != 2) pair.fail("[atol, rtol]");
    row.tolerance[tensor] = {parse_limit(limits[0]), parse_limit(limits[1])};
  }
  row.vmax = parse_limit(line.at("vmax"));
  row.precision = line.at("precision").string();
  row.source = line.at("provenance").at("source").string();
  row.sha256 = line.at("sha256").string();
  if (!is_sha256(row.sha256)) line.at("sha256").fail("64 lower-case hex digits");
  return row;
}

CaseRelation parse_relation(const JsonNode& line, const std::set<std::string>& ids) {
  line.expect_only({"kind", "about", "rows"});
  line.at("kind").choice({"bitwise"});
  CaseRelation relation;
  relation.about = single_line(line.at("about").string());  // it is printed
  for (const JsonNode& node : line.at("rows").elements()) {
    const std::vector<JsonNode> fields = node.elements();
    if (fields.size() != 3) node.fail("[id, first token, count]");
    if (!ids.contains(fields[0].string())) fields[0].fail("an id of index.jsonl");
    relation.rows.push_back({fields[0].string(), fields[1].integer(0), fields[2].integer(0)});
  }
  return relation;
}

}  // namespace attn::golden
