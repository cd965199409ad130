#include "golden/pack_manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "attn/error.h"
#include "core/contains.h"
#include "golden/ascii.h"
#include "golden/case_object.h"
#include "golden/error_source.h"

namespace attn::golden {
namespace {

using nlohmann::json;

constexpr std::int64_t kMinBits = 200;
constexpr std::int64_t kMinCheckBits = 400;

// [A-Za-z][A-Za-z0-9_]*
bool is_word(std::string_view text) {
  return !text.empty() && (is_lower(text[0]) || is_upper(text[0])) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; });
}

// [a-z][a-z0-9_]*
bool is_label(std::string_view text) {
  return is_word(text) && is_lower(text[0]) && std::none_of(text.begin(), text.end(), is_upper);
}

// [a-z][a-z0-9]*(-[a-z0-9]+)*
bool is_name(std::string_view text) {
  const bool known = std::all_of(text.begin(), text.end(),
                                 [](char c) { return is_lower(c) || is_digit(c) || c == '-'; });
  return known && !text.empty() && is_lower(text[0]) && !text.ends_with('-') &&
         text.find("--") == std::string_view::npos;
}

// Three numbers; `strict`: without leading zeros.
bool is_version(std::string_view text, bool strict) {
  for (int part = 0; part < 3; ++part) {
    const std::size_t length = std::min(text.find_first_not_of("0123456789"), text.size());
    if (length == 0 || (strict && length > 1 && text[0] == '0')) return false;
    text.remove_prefix(length);
    if (part == 2) return text.empty();
    if (!text.starts_with('.')) return false;
    text.remove_prefix(1);
  }
  return false;
}

std::string text_of(const JsonNode& node, bool fits, std::string_view expected) {
  if (!fits) node.fail(expected);
  return node.string();
}

std::string parse_text(const JsonNode& node) {
  return text_of(node, !node.string().empty(), "a text");
}

void expect_word(const JsonNode& node, bool fits, const std::string& key) {
  if (!fits) throw Error(node.path() + " has the key " + in_quotes(key) + ", no name");
}

std::map<std::string, std::int64_t> parse_table(const JsonNode& node) {
  std::map<std::string, std::int64_t> table;
  for (const auto& [key, count] : node.members()) {
    expect_word(node, is_label(key), key);
    table.emplace(key, count.integer(1));
  }
  if (table.empty()) node.fail("at least one member");
  return table;
}

PackCounts parse_counts(const JsonNode& node) {
  node.expect_only({"cases", "bytes", "relations", "by_op", "by_variant", "by_result"});
  PackCounts counts;
  counts.cases = node.at("cases").integer(1);
  counts.bytes = node.at("bytes").integer(1);
  counts.relations = node.at("relations").integer(0);
  counts.by_op = parse_table(node.at("by_op"));
  counts.by_variant = parse_table(node.at("by_variant"));
  const JsonNode by_result = node.at("by_result");
  by_result.expect_only({"valid", "invalid"});
  by_result.at("valid");
  counts.by_result = parse_table(by_result);
  return counts;
}

void parse_arithmetic(const JsonNode& node, PackManifest& manifest) {
  node.expect_only({"library", "bits", "check_bits", "rounding"});
  node.at("library").choice({"mpfr"});
  node.at("rounding").choice({"nearest_even"});
  manifest.bits = node.at("bits").integer(kMinBits);
  manifest.check_bits = node.at("check_bits").integer(kMinCheckBits);
}

std::vector<std::string> parse_links(const JsonNode& node) {
  std::vector<std::string> links;
  for (const JsonNode& link : node.elements()) {
    std::string text = text_of(link, link.string().starts_with("https://"), "a link, https://...");
    if (contains(links, text)) link.fail("each link once");
    links.push_back(std::move(text));
  }
  return links;
}

PackNote parse_note(const JsonNode& node) {
  node.expect_only({"kind", "description", "effect", "links"});
  PackNote note;
  const JsonNode kind = node.at("kind");
  kind.choice({"addressing", "capability", "convention", "empty", "heads", "invariance", "lse",
               "merge", "numerics", "poison", "quantisation", "ranges", "scores", "sink",
               "window"});
  note.kind = kind.string();
  note.description = parse_text(node.at("description"));
  note.effect = parse_text(node.at("effect"));
  if (node.has("links")) note.links = parse_links(node.at("links"));
  return note;
}

WithdrawnCase parse_withdrawn(const JsonNode& node) {
  node.expect_only({"id", "since", "reason", "superseded_by"});
  WithdrawnCase withdrawn;
  withdrawn.id = parse_id(node.at("id"));
  const JsonNode since = node.at("since");
  withdrawn.since = text_of(since, is_version(since.string(), false), "a version, e.g. 1.2.0");
  withdrawn.reason = parse_text(node.at("reason"));
  if (node.has("superseded_by")) withdrawn.superseded_by = parse_id(node.at("superseded_by"));
  return withdrawn;
}

json to_json(const PackNote& note) {
  json object = {{"kind", note.kind}, {"description", note.description}, {"effect", note.effect}};
  if (!note.links.empty()) object["links"] = note.links;
  return object;
}

json to_json(const WithdrawnCase& withdrawn) {
  json object = {{"id", withdrawn.id}, {"since", withdrawn.since}, {"reason", withdrawn.reason}};
  if (!withdrawn.superseded_by.empty()) object["superseded_by"] = withdrawn.superseded_by;
  return object;
}

json to_json(const PackCounts& counts) {
  return {{"cases", counts.cases},           {"bytes", counts.bytes},
          {"relations", counts.relations},   {"by_op", counts.by_op},
          {"by_variant", counts.by_variant}, {"by_result", counts.by_result}};
}

}  // namespace

PackManifest parse_manifest(const JsonNode& node) {
  node.expect_only({"format", "name", "version", "tier", "title", "license", "case_format",
                    "arithmetic", "counts", "notes", "withdrawn"});
  node.at("format").choice({"attn-pack/1"});
  node.at("license").choice({"CC0-1.0"});
  node.at("case_format").choice({"attn-case/1"});
  const JsonNode tier = node.at("tier");
  tier.choice({"core", "extended"});
  const JsonNode name = node.at("name");
  const JsonNode version = node.at("version");

  PackManifest manifest;
  manifest.name = text_of(name, is_name(name.string()), "words of a-z and 0-9 with - between");
  manifest.version = text_of(version, is_version(version.string(), true), "a version, e.g. 1.2.0");
  manifest.tier = tier.string();
  manifest.title = parse_text(node.at("title"));
  parse_arithmetic(node.at("arithmetic"), manifest);
  manifest.counts = parse_counts(node.at("counts"));
  for (const auto& [word, note] : node.at("notes").members()) {
    expect_word(node.at("notes"), is_word(word), word);
    manifest.notes.emplace(word, parse_note(note));
  }
  for (const JsonNode& withdrawn : node.at("withdrawn").elements()) {
    manifest.withdrawn.push_back(parse_withdrawn(withdrawn));
  }
  return manifest;
}

std::string to_text(const PackManifest& manifest) {
  json notes = json::object();
  for (const auto& [word, note] : manifest.notes) notes[word] = to_json(note);
  json withdrawn = json::array();
  for (const WithdrawnCase& one : manifest.withdrawn) withdrawn.push_back(to_json(one));
  const json object = {{"format", "attn-pack/1"},
                       {"name", manifest.name},
                       {"version", manifest.version},
                       {"tier", manifest.tier},
                       {"title", manifest.title},
                       {"license", "CC0-1.0"},
                       {"case_format", "attn-case/1"},
                       {"arithmetic",
                        {{"library", "mpfr"},
                         {"bits", manifest.bits},
                         {"check_bits", manifest.check_bits},
                         {"rounding", "nearest_even"}}},
                       {"counts", to_json(manifest.counts)},
                       {"notes", notes},
                       {"withdrawn", withdrawn}};
  return object.dump(1) + "\n";
}

PackCounts counts_of(const std::vector<PackCase>& cases, std::size_t relations) {
  PackCounts counts;
  counts.relations = static_cast<std::int64_t>(relations);
  for (const PackCase& one : cases) {
    ++counts.cases;
    counts.bytes += one.bytes;
    ++counts.by_op[std::string(name(one.row.op))];
    ++counts.by_variant[one.row.variant];
    ++counts.by_result[std::string(name(one.row.result))];
  }
  return counts;
}

}  // namespace attn::golden
