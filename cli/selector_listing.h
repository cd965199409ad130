// What `list described` and `list facts` show.
#pragma once

#include <string>

#include "attn/selector_environment.h"
#include "cli/document.h"

namespace attn::cli {

Json described_items();
Json fact_items(const SelectorFacts& detected);

// The members `platform` and `capability` of a machine, and its line of text.
void add_machine(Json& document, const SelectorFacts& facts);
std::string machine_line(const SelectorFacts& facts);

std::string described_line(const Json& item);
std::string fact_line(const Json& item);

}  // namespace attn::cli
