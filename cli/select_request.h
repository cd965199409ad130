// The flags of a single selection, and what they ask for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/selector.h"
#include "cli/document.h"

namespace CLI {
class App;
}

namespace attn::cli {

// Flags as they were written.
struct SelectFlags {
  struct Value {
    std::string flag;    // "--head-size"
    std::string member;  // JSON pointer of the request document: "/config/head_size"
    std::string text = "";
    bool given = false;
  };
  struct Switch {
    std::string flag;
    std::string member;
    bool on = false;
    bool given = false;
  };
  std::vector<Value> values;
  std::vector<Switch> switches;
  std::vector<std::string> env;               // FACT=VALUE
  std::vector<std::string> run;               // FIELD=VALUE
  std::vector<std::string> backend_per_kind;  // KIND=NAME
  std::string config_path;
};

// Declares the flags on `app`; `flags` must outlive parsing.
void add_select_flags(CLI::App& app, SelectFlags& flags);
// Notes which of the declared flags were given; after parsing.
void note_given(const CLI::App& app, SelectFlags& flags);

// The request document: --config's, with the flags put over it.
Json select_document(const SelectFlags& flags);

struct SelectQuestion {
  SelectorFacts facts;
  SelectionRequest request;
};

// Reads a request document strictly. Throws Error for anything that is unknown, missing or
// contradicts itself.
SelectQuestion question_of(const Json& document);

// The document's `env` for --mamba-type: only batch_invariant may be in it.
bool batch_invariant_of(const Json& document);

}  // namespace attn::cli
