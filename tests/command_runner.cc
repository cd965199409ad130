#include "tests/command_runner.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <stdexcept>
#include <system_error>

namespace attn {
namespace {

constexpr std::chrono::seconds kPatience{300};
constexpr int kCannotStart = 127;

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "pipe");
  }
  return ends;
}

// In the child: only what is safe between fork and exec.
void place_output(int target, int pipe_end, const std::optional<std::string>& path) {
  int from = pipe_end;
  if (path) from = path->empty() ? -1 : ::open(path->c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  if (from < 0) {
    ::close(target);
  } else {
    ::dup2(from, target);
  }
}

void limit_files(std::uint64_t bytes) {
  if (bytes == 0) return;
  const rlimit limit = {bytes, bytes};
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

}  // namespace

RunningCommand::RunningCommand(const std::vector<std::string>& words,
                               const CommandSetting& setting) {
  std::vector<std::string> copies = words;
  std::vector<char*> argv;
  for (std::string& word : copies) argv.push_back(word.data());
  argv.push_back(nullptr);
  const auto out = make_pipe();
  const auto err = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (pid_ == 0) {
    if (::chdir(setting.folder.c_str()) != 0) ::_exit(kCannotStart);
    place_output(STDOUT_FILENO, out[1], setting.out_to);
    place_output(STDERR_FILENO, err[1], setting.err_to);
    limit_files(setting.max_file_bytes);
    ::execvp(argv[0], argv.data());
    ::_exit(kCannotStart);
  }
  ::close(out[1]);
  ::close(err[1]);
  out_fd_ = out[0];
  err_fd_ = err[0];
}

RunningCommand::~RunningCommand() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (const int fd : {out_fd_, err_fd_}) {
    if (fd >= 0) ::close(fd);
  }
}

bool RunningCommand::read_some() {
  std::array<pollfd, 2> waiting = {{{out_fd_, POLLIN, 0}, {err_fd_, POLLIN, 0}}};
  const auto patience =
      static_cast<int>(std::chrono::duration_cast<std::chrono::milliseconds>(kPatience).count());
  if (::poll(waiting.data(), waiting.size(), patience) == 0) {
    ::kill(pid_, SIGKILL);
    throw std::runtime_error("the command neither says anything nor ends");
  }
  for (const pollfd& ready : waiting) {
    if (ready.fd < 0 || ready.revents == 0) continue;
    const bool is_out = ready.fd == out_fd_;
    std::array<char, 4096> chunk{};
    const ssize_t got = ::read(ready.fd, chunk.data(), chunk.size());
    if (got > 0) {
      (is_out ? output_.out : output_.err).append(chunk.data(), static_cast<std::size_t>(got));
      continue;
    }
    ::close(ready.fd);
    (is_out ? out_fd_ : err_fd_) = -1;
  }
  return out_fd_ >= 0 || err_fd_ >= 0;
}

void RunningCommand::wait_for_lines(std::size_t count) {
  const auto lines = [&] {
    return static_cast<std::size_t>(std::count(output_.out.begin(), output_.out.end(), '\n'));
  };
  while (lines() < count && out_fd_ >= 0 && read_some()) {
  }
}

void RunningCommand::send(int signal) const { ::kill(pid_, signal); }

CommandOutput RunningCommand::finish() {
  while ((out_fd_ >= 0 || err_fd_ >= 0) && read_some()) {
  }
  int status = 0;
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  output_.exit = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  return output_;
}

std::vector<std::string> attn_oracle_words(const std::vector<std::string>& words) {
  std::vector<std::string> all = {ATTN_CLI};
  all.insert(all.end(), words.begin(), words.end());
  return all;
}

CommandOutput attn_oracle(const std::vector<std::string>& words, const CommandSetting& setting) {
  return RunningCommand(attn_oracle_words(words), setting).finish();
}

CommandOutput shell(const std::string& line, const CommandSetting& setting) {
  const std::string folder = std::filesystem::path(ATTN_CLI).parent_path().string();
  const char* path = std::getenv("PATH");
  return RunningCommand(
             {"env", "PATH=" + folder + ":" + (path != nullptr ? path : ""), "sh", "-c", line},
             setting)
      .finish();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace attn
