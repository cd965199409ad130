// The flags of a single selection, and what they ask for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/selector.h"
#include "cli/document.h"
#include "cli/parser.h"

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
  std::vector<std::string> backend_files;
};

// Declares the flags on `command`; `flags` must outlive parsing.
void add_select_flags(const Parser& command, SelectFlags& flags);
// Notes which of the declared flags were given; after parsing.
void note_given(const Parser& command, SelectFlags& flags);

// The request document: --config's, with the flags put over it.
Json select_document(const SelectFlags& flags);

struct SelectQuestion {
  SelectorFacts facts;
  SelectionRequest request;
  std::vector<std::string> named;  // backends that are requested for some layer
};

// Reads a request document strictly. Throws Error for anything that is unknown, missing or
// contradicts itself; whether the named backends exist is for the caller to say.
SelectQuestion question_of(const Json& document);

// The document asks for platform own: this build's backends on this machine.
bool asks_for_own(const Json& document);
// That document with the platform, capability and facts of `detected`; facts in it stay. Throws
// Error when it has a capability.
Json on_this_machine(Json document, const SelectorFacts& detected);

// The backends of --backend-file, in order. Throws Error.
std::vector<AddedBackend> added_backends(const SelectFlags& flags);

// The document's `env` for --mamba-type: only batch_invariant may be in it.
bool batch_invariant_of(const Json& document);

}  // namespace attn::cli
