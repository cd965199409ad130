#include "selector/python_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <vector>

#include "core/contains.h"

namespace attn {
namespace {

std::vector<std::string> quoted(std::span<const std::string> texts) {
  std::vector<std::string> words;
  words.reserve(texts.size());
  for (const std::string& text : texts) words.push_back(python_quoted(text));
  return words;
}

constexpr std::array<std::string_view, 2> kImportErrors = {"ImportError", "ModuleNotFoundError"};
constexpr std::array<std::string_view, 18> kOsErrors = {"OSError",
                                                        "IOError",
                                                        "EnvironmentError",
                                                        "BlockingIOError",
                                                        "ChildProcessError",
                                                        "ConnectionError",
                                                        "BrokenPipeError",
                                                        "ConnectionAbortedError",
                                                        "FileExistsError",
                                                        "FileNotFoundError",
                                                        "InterruptedError",
                                                        "IsADirectoryError",
                                                        "NotADirectoryError",
                                                        "PermissionError",
                                                        "ProcessLookupError",
                                                        "TimeoutError",
                                                        "ConnectionRefusedError",
                                                        "ConnectionResetError"};

}  // namespace

std::string python_quoted(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char c : text) {
    if (c == '\\' || c == quote) out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += c;
    }
  }
  return out + quote;
}

std::string python_list(std::span<const std::string> texts) {
  return fmt::format("[{}]", fmt::join(quoted(texts), ", "));
}

std::string python_tuple(std::span<const std::string> texts) {
  return fmt::format("({}{})", fmt::join(quoted(texts), ", "), texts.size() == 1 ? "," : "");
}

std::string joined(std::span<const std::string> texts) {
  return fmt::format("{}", fmt::join(texts, ", "));
}

bool is_import_error(std::string_view exception_type) {
  return contains(kImportErrors, exception_type);
}
bool is_os_error(std::string_view exception_type) { return contains(kOsErrors, exception_type); }

}  // namespace attn
