// What goes to standard output: one JSON document, a stream of JSON lines, or text.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "attn/verdict.h"
#include "attn/view.h"
#include "cli/options.h"

namespace attn::cli {

using Json = nlohmann::ordered_json;

// {"format":"attn-<command>/1","version":...,"replay":...}: the start of every document.
Json document(std::string_view command, const GlobalOptions& options);

// Shortest round-trip number; "nan", "inf", "-inf" as strings.
Json real(double value);

// {"dtype":"f32","storage":"F32","shape":[..]} of a tensor.
Json describe(const TensorView& view);

// On one line; bytes that are not UTF-8 become U+FFFD.
std::string to_text(const Json& json);

// Writes one line to standard output at once; throws Error when that fails.
void write_line(std::string_view line);
void write_json(const Json& json);

// A line on standard error, led by the program's name; control bytes become spaces.
void write_error(std::string_view line);

// As it is. Never fails: a full or closed standard error changes no answer and no exit code.
void write_stderr(std::string_view text);

// A command line that a POSIX shell reads back as these words.
std::string shell_quoted(const std::vector<std::string>& words);

// The cases of a folder that were skipped, told by reason: however many there are, the others stay
// in sight.
class SkippedCases {
 public:
  void add(const std::string& id, const std::string& reason) { ids_[reason].push_back(id); }
  void write() const;  // "b and 3 more skipped: no answer", a line a reason

 private:
  std::map<std::string, std::vector<std::string>> ids_;
};

// "12 passed, 0 failed" with ", 3 skipped" when there are any.
struct Counts {
  std::int64_t passed = 0;
  std::int64_t failed = 0;
  std::int64_t skipped = 0;     // mistrusted ones too
  std::int64_t mistrusted = 0;  // of the skipped

  void add(Verdict verdict, bool strict = false);  // with strict a mistrusted one failed
  std::int64_t cases() const { return passed + failed + skipped; }
  // 1 if any failed or what ran was mistrusted only; else 3 if any was skipped for another reason
  // or nothing passed; else 0.
  int exit() const;
  std::string text() const;
  Json summary() const;  // {"summary":{...}}
};

}  // namespace attn::cli
