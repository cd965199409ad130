#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

#include "attn/case_file.h"
#include "golden/case_object.h"
#include "golden/error_source.h"
#include "golden/input_file.h"
#include "golden/strict_json.h"

namespace attn {
namespace {

using golden::JsonNode;

// Calls `take` with the value of every line of a JSONL file.
void for_each_line(const std::filesystem::path& path,
                   const std::function<void(const JsonNode& line)>& take) {
  const std::string text =
      golden::with_source(path.string(), [&] { return golden::read_text(path); });
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    golden::with_source(fmt::format("{}:{}", path.string(), number), [&] {
      const golden::JsonDocument document(line, "line");
      take(document.root());
    });
  }
}

bool is_sha256(std::string_view text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// A name of a file in the folder itself.
std::string parse_file_name(const JsonNode& node) {
  std::string file = node.string();
  const bool plain = !file.empty() && file != "." && file != ".." &&
                     file.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
  if (!plain) node.fail("the plain name of a file in the folder");
  return file;
}

double parse_limit(const JsonNode& node) {
  const double limit = node.number();
  if (limit < 0.0) node.fail("a number >= 0");
  return limit;
}

// Keys may be added to rows, so unknown ones are not errors.
CaseIndexRow parse_row(const JsonNode& line) {
  CaseIndexRow row;
  row.id = golden::parse_id(line.at("id"));
  row.file = parse_file_name(line.at("file"));
  row.op = golden::parse_op(line.at("op"));
  row.variant = golden::parse_variant(line.at("variant"));
  row.result = golden::parse_result(line.at("result"));
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
  relation.about = line.at("about").string();
  for (const JsonNode& node : line.at("rows").elements()) {
    const std::vector<JsonNode> fields = node.elements();
    if (fields.size() != 3) node.fail("[id, first token, count]");
    if (!ids.contains(fields[0].string())) fields[0].fail("an id of index.jsonl");
    relation.rows.push_back({fields[0].string(), fields[1].integer(0), fields[2].integer(0)});
  }
  return relation;
}

void verify_digest(const std::filesystem::path& folder, const CaseIndexRow& row) {
  const std::filesystem::path path = folder / row.file;
  golden::with_source(path.string(), [&] {
    const std::string digest = golden::sha256_of_file(path);
    if (digest != row.sha256) {
      throw Error(fmt::format("sha256 is {}, index.jsonl says {}", digest, row.sha256));
    }
  });
}

}  // namespace

CaseFolder CaseFolder::open(const std::filesystem::path& path) {
  CaseFolder folder;
  folder.path = path;
  std::set<std::string> ids;
  for_each_line(path / "index.jsonl", [&](const JsonNode& line) {
    folder.rows.push_back(parse_row(line));
    if (!ids.insert(folder.rows.back().id).second) line.at("id").fail("an id no other line has");
  });
  std::error_code ignored;
  if (std::filesystem::exists(path / "relations.jsonl", ignored)) {
    for_each_line(path / "relations.jsonl", [&](const JsonNode& line) {
      folder.relations.push_back(parse_relation(line, ids));
    });
  }
  for (const CaseIndexRow& row : folder.rows) verify_digest(path, row);
  return folder;
}

}  // namespace attn
