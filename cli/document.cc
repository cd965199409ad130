#include "cli/document.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdio>

#include "attn/error.h"
#include "cli/version.h"

namespace attn::cli {
namespace {

// How a type lies in a file: types below 16 bits as raw bytes.
std::string storage_name(DType dtype) {
  if (dtype != DType::kI8 && dtype != DType::kBool && bits(dtype) < 16) return "U8";
  std::string upper(name(dtype));
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

bool is_plain(char c) {
  constexpr std::string_view kPlain = "_-+=.,:/@%";
  const bool alphanumeric =
      (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return alphanumeric || kPlain.find(c) != std::string_view::npos;
}

}  // namespace

Json document(std::string_view command, const GlobalOptions& options) {
  return Json{{"format", fmt::format("attn-{}/1", command)},
              {"version", kVersion},
              {"replay", options.replay}};
}

Json real(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  return value;
}

Json describe(const TensorView& view) {
  Json shape = Json::array();
  for (int axis = 0; axis < view.rank; ++axis) shape.push_back(view.shape[axis]);
  return {{"dtype", name(view.dtype)}, {"storage", storage_name(view.dtype)}, {"shape", shape}};
}

void write_line(std::string_view line) {
  const std::string text = fmt::format("{}\n", line);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    throw Error(errno == EPIPE ? "standard output was closed before everything was written"
                               : "standard output cannot be written");
  }
}

std::string to_text(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void write_json(const Json& json) { write_line(to_text(json)); }

void write_stderr(std::string_view text) {
  // Without a reader there is nobody to tell.
  (void)std::fwrite(text.data(), 1, text.size(), stderr);
  (void)std::fflush(stderr);
}

void write_error(std::string_view line) {
  std::string text(line);
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  write_stderr(fmt::format("attn-oracle: {}\n", text));
}

std::string shell_quoted(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) {
    if (!line.empty()) line += ' ';
    if (!word.empty() && std::all_of(word.begin(), word.end(), is_plain)) {
      line += word;
      continue;
    }
    line += '\'';
    for (const char c : word) line += c == '\'' ? std::string("'\\''") : std::string(1, c);
    line += '\'';
  }
  return line;
}

void SkippedCases::write() const {
  for (const auto& [reason, ids] : ids_) {
    const std::string more = ids.size() == 1 ? "" : fmt::format(" and {} more", ids.size() - 1);
    write_line(fmt::format("{}{} skipped: {}", ids.front(), more, reason));
  }
}

void Counts::add(Verdict verdict, bool strict) {
  const bool trusted = verdict != Verdict::kMistrusted;
  if (verdict == Verdict::kPass) {
    ++passed;
  } else if (verdict == Verdict::kFail || (!trusted && strict)) {
    ++failed;
  } else {
    ++skipped;
    if (!trusted) ++mistrusted;
  }
}

int Counts::exit() const {
  if (failed != 0 || (passed == 0 && mistrusted != 0)) return kFailed;
  return skipped != mistrusted || passed == 0 ? kNothingRan : kPassed;
}

std::string Counts::text() const {
  const std::string text = fmt::format("{} passed, {} failed", passed, failed);
  return skipped == 0 ? text : fmt::format("{}, {} skipped", text, skipped);
}

Json Counts::summary() const {
  Json counts = {{"cases", cases()}, {"passed", passed}, {"failed", failed}, {"skipped", skipped}};
  if (mistrusted != 0) counts["mistrusted"] = mistrusted;
  counts["exit"] = exit();
  return {{"summary", counts}};
}

}  // namespace attn::cli
