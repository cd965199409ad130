#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "cli/backends.h"
#include "cli/command.h"
#include "cli/document.h"

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

int list(const GlobalOptions& options, const std::string& topic) {
  const Json items = topic == "backends" ? backend_items() : Json::array();
  if (options.json) {
    Json doc = document("list", options);
    doc["topic"] = topic;
    doc["items"] = items;
    doc["exit"] = kPassed;
    write_json(doc);
    return kPassed;
  }
  for (const Json& item : items) {
    const bool usable = item["usable"].get<bool>();
    write_line(fmt::format(
        "{:<16}{}", item["name"].get<std::string>(),
        usable ? fmt::format("ops {}  contracts {}", item["ops"].dump(), item["contracts"].dump())
               : item["reason"].get<std::string>()));
  }
  return kPassed;
}

}  // namespace

Command add_list_command(CLI::App& parser, const GlobalOptions& options) {
  CLI::App* app = parser.add_subcommand("list", "What this build knows")->fallthrough();
  auto topic = std::make_shared<std::string>("backends");
  app->add_option("topic", *topic)
      ->check(CLI::IsMember(
          {"backends", "described", "variants", "families", "faults", "contracts", "facts"}));
  return {app, [&options, topic] { return list(options, *topic); }};
}

}  // namespace attn::cli
