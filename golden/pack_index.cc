#include "golden/pack_index.h"

#include <nlohmann/json.hpp>

#include "core/contains.h"
#include "golden/case_index.h"

namespace attn::golden {
namespace {

using nlohmann::json;

void expect_text(const JsonNode& node, const std::string& expected) {
  if (node.string() != expected) node.fail(in_quotes(expected));
}

std::vector<std::string> parse_words(const JsonNode& node) {
  std::vector<std::string> words;
  for (const JsonNode& word : node.elements()) {
    std::string text = word.string();
    if (contains(words, text)) word.fail("each word once");
    words.push_back(std::move(text));
  }
  return words;
}

void expect_exact(const JsonNode& tolerance) {
  for (const auto& [tensor, limits] : tolerance.members()) {
    for (const JsonNode& limit : limits.elements()) {
      if (limit.integer(0) != 0) limit.fail("0");
    }
  }
}

}  // namespace

std::string to_line(const PackCase& one, const std::string& version) {
  const CaseIndexRow& row = one.row;
  json tolerance = json::object();
  for (const auto& [tensor, limits] : row.tolerance) tolerance[tensor] = {0, 0};
  const json line = {{"id", row.id},
                     {"file", row.file},
                     {"op", name(row.op)},
                     {"variant", row.variant},
                     {"result", name(row.result)},
                     {"flags", one.flags},
                     {"rulings", one.rulings},
                     {"tolerance", tolerance},
                     {"vmax", static_cast<std::int64_t>(row.vmax)},
                     {"precision", "exact"},
                     {"provenance",
                      {{"license", "CC0-1.0"},
                       {"package", "attention-oracle"},
                       {"version", version},
                       {"op", name(row.op)},
                       {"source", "pack"},
                       {"where", one.where}}},
                     {"sha256", row.sha256}};
  return line.dump() + "\n";
}

std::string to_line(const CaseRelation& relation) {
  json rows = json::array();
  for (const CaseRelation::Rows& part : relation.rows) {
    rows.push_back({part.id, part.first_token, part.count});
  }
  return json{{"kind", "bitwise"}, {"about", relation.about}, {"rows", rows}}.dump() + "\n";
}

PackCase parse_pack_line(const JsonNode& line, const std::string& version) {
  line.expect_only({"id", "file", "op", "variant", "result", "flags", "rulings", "tolerance",
                    "vmax", "precision", "provenance", "sha256"});
  PackCase one;
  one.row = parse_index_row(line);
  expect_text(line.at("file"), one.row.id + ".safetensors");
  line.at("result").choice({"valid", "invalid"});
  one.flags = parse_words(line.at("flags"));
  one.rulings = parse_words(line.at("rulings"));
  expect_exact(line.at("tolerance"));
  line.at("vmax").integer(0);
  line.at("precision").choice({"exact"});
  const JsonNode provenance = line.at("provenance");
  provenance.expect_only({"license", "package", "version", "op", "source", "where"});
  expect_text(provenance.at("license"), "CC0-1.0");
  expect_text(provenance.at("package"), "attention-oracle");
  expect_text(provenance.at("version"), version);
  expect_text(provenance.at("op"), std::string(name(one.row.op)));
  expect_text(provenance.at("source"), "pack");
  one.where = provenance.at("where").string();
  return one;
}

}  // namespace attn::golden
