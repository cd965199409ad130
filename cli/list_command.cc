#include <fmt/core.h>

#include <memory>
#include <string>

#include "attn/arithmetic.h"
#include "attn/environment.h"
#include "attn/variant.h"
#include "cli/backends.h"
#include "cli/command.h"
#include "cli/document.h"
#include "cli/selector_listing.h"

namespace attn::cli {
namespace {

Json backend_items() {
  Json items = Json::array();
  for (const NamedBackend& named : all_backends()) {
    Json ops = Json::array();
    Json contracts = Json::array();
    if (named.backend) {
      for (const OpKind op : named.backend->capabilities().operations) ops.push_back(name(op));
      contracts = named.backend->capabilities().contracts;
    }
    Json item = {{"name", named.name},
                 {"usable", named.backend != nullptr},
                 {"reason", named.reason},
                 {"ops", ops},
                 {"contracts", contracts}};
    if (!named.isas.empty()) {
      item["isa"] = named.isas.back();
      item["isas"] = named.isas;
    }
    items.push_back(item);
  }
  return items;
}

Json variant_items() {
  Json items = Json::array();
  for (const Variant& variant : all_variants()) {
    items.push_back({{"name", variant.name},
                     {"op", variant.op},
                     {"reference", variant.reference},
                     {"second_reference", variant.second_reference},
                     {"cpu", variant.cpu},
                     {"pack_cases", variant.pack_cases},
                     {"properties", variant.properties.size()},
                     {"tests", variant.tests.size()}});
  }
  return items;
}

Json contract_items() {
  Json items = Json::array();
  for (const std::string_view name : contract_names()) {
    const Arithmetic arithmetic = resolve({std::string(name)});
    items.push_back({{"name", name}, {"params", Json::parse(to_json(arithmetic))}});
  }
  return items;
}

// Found out once: asking the CUDA driver takes its time.
const SelectorFacts& detected() {
  static const SelectorFacts facts = detect_environment();
  return facts;
}

Json items_of(const std::string& topic) {
  if (topic == "backends") return backend_items();
  if (topic == "variants") return variant_items();
  if (topic == "contracts") return contract_items();
  if (topic == "described") return described_items();
  if (topic == "facts") return fact_items(detected());
  return Json::array();
}

std::string backend_line(const Json& item) {
  return fmt::format(
      "{:<16}{}", item["name"].get<std::string>(),
      item["usable"].get<bool>()
          ? fmt::format("ops {}  contracts {}", item["ops"].dump(), item["contracts"].dump())
          : item["reason"].get<std::string>());
}

std::string contract_line(const Json& item) {
  return fmt::format("{:<16}{}", item["name"].get<std::string>(), item["params"].dump());
}

std::string line_of(const std::string& topic, const Json& item) {
  if (topic == "contracts") return contract_line(item);
  if (topic == "described") return described_line(item);
  return topic == "facts" ? fact_line(item) : backend_line(item);
}

// The rows of a Markdown table: documentation holds the same text.
void write_variants() {
  const auto mark = [](bool yes) { return yes ? "yes" : ""; };
  const auto number = [](std::size_t n) { return n == 0 ? "" : std::to_string(n); };
  write_line(
      "| variant | operation | switched on by | reference | second reference | CPU | pack cases | "
      "properties | tests |");
  write_line("|---|---|---|---|---|---|---|---|---|");
  for (const Variant& v : all_variants()) {
    write_line(fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |", v.name, v.op,
                           v.switched_on_by, mark(v.reference), mark(v.second_reference),
                           mark(v.cpu), number(static_cast<std::size_t>(v.pack_cases)),
                           number(v.properties.size()), number(v.tests.size())));
  }
}

int list(const GlobalOptions& options, const std::string& topic) {
  const Json items = items_of(topic);
  if (options.json) {
    Json doc = document("list", options);
    doc["topic"] = topic;
    if (topic == "facts") add_machine(doc, detected());
    doc["items"] = items;
    doc["exit"] = kPassed;
    write_json(doc);
    return kPassed;
  }
  if (topic == "facts") write_line(machine_line(detected()));
  if (topic == "variants") {
    write_variants();
  } else if (items.empty()) {
    if (!options.quiet) write_line(fmt::format("no {} in this version", topic));
  } else {
    for (const Json& item : items) write_line(line_of(topic, item));
  }
  return kPassed;
}

}  // namespace

Command add_list_command(const Parser& parser, const GlobalOptions& options) {
  const Parser command = parser.command("list", "What this build knows");
  auto topic = std::make_shared<std::string>("backends");
  command.text("topic", *topic)
      .one_of({"backends", "described", "variants", "families", "faults", "contracts", "facts"});
  return {command, [&options, topic] { return list(options, *topic); }};
}

}  // namespace attn::cli
