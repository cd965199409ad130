#include <fmt/core.h>

#include <functional>
#include <set>

#include "attn/case_file.h"
#include "golden/case_index.h"
#include "golden/error_source.h"
#include "golden/input_file.h"
#include "golden/unfinished_pack.h"

namespace attn {
namespace {

void for_each_line_of(const std::filesystem::path& path,
                      const std::function<void(const JsonNode& line)>& take) {
  const std::string text =
      golden::with_source(path.string(), [&] { return golden::read_text(path); });
  golden::for_each_line(text, path.string(), take);
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
  golden::expect_finished(path);
  CaseFolder folder;
  folder.path = path;
  std::set<std::string> ids;
  for_each_line_of(path / "index.jsonl", [&](const JsonNode& line) {
    folder.rows.push_back(golden::parse_index_row(line));
    if (!ids.insert(folder.rows.back().id).second) line.at("id").fail("an id no other line has");
  });
  std::error_code ignored;
  if (std::filesystem::exists(path / "relations.jsonl", ignored)) {
    for_each_line_of(path / "relations.jsonl", [&](const JsonNode& line) {
      folder.relations.push_back(golden::parse_relation(line, ids));
    });
  }
  for (const CaseIndexRow& row : folder.rows) verify_digest(path, row);
  return folder;
}

}  // namespace attn
