#include "cli/progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <utility>

#include "cli/document.h"

namespace attn::cli {
namespace {

constexpr int kBarWidth = 30;
constexpr std::chrono::milliseconds kRedraw{100};
constexpr std::chrono::seconds kPlainLine{5};

}  // namespace

Progress::Progress(std::string what, std::int64_t total, bool quiet)
    : what_(std::move(what)),
      total_(total),
      quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      last_(std::chrono::steady_clock::now()) {}

Progress::~Progress() {
  if (drawn_ && terminal_) write_stderr("\r\033[K");
}

void Progress::step() {
  ++done_;
  if (quiet_) return;
  const auto now = std::chrono::steady_clock::now();
  if (terminal_ ? now - last_ < kRedraw : now - last_ < kPlainLine) return;
  last_ = now;
  draw();
}

void Progress::draw() {
  drawn_ = true;
  if (!terminal_) {
    write_stderr(fmt::format("{}: {} of {}\n", what_, done_, total_));
    return;
  }
  const auto filled = static_cast<std::size_t>(kBarWidth * done_ / total_);
  write_stderr(fmt::format("\r{} [{}{}] {}/{}", what_, std::string(filled, '#'),
                           std::string(kBarWidth - filled, ' '), done_, total_));
}

}  // namespace attn::cli
