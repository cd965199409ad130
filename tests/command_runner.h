// Runs programs as a shell does: each in a process of its own, with its output and exit code.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace attn {

struct CommandSetting {
  std::filesystem::path folder = ".";  // working directory
  std::optional<std::string> out_to;   // a path in place of the capture; "" = closed
  std::optional<std::string> err_to;
  std::uint64_t max_file_bytes = 0;  // limit of a written file; 0 = none
};

struct CommandOutput {
  int exit = 0;  // -N when signal N ended it
  std::string out;
  std::string err;
};

// A program that has been started. One that does not end within minutes is killed.
class RunningCommand {
 public:
  // `words` begin with the program: a path, or a name to be found in PATH.
  RunningCommand(const std::vector<std::string>& words, const CommandSetting& setting);
  RunningCommand(const RunningCommand&) = delete;
  RunningCommand& operator=(const RunningCommand&) = delete;
  ~RunningCommand();

  // Waits until standard output holds `count` lines or has ended.
  void wait_for_lines(std::size_t count);
  void send(int signal) const;
  CommandOutput finish();

 private:
  bool read_some();  // false when both outputs have ended

  pid_t pid_ = -1;
  int out_fd_ = -1;
  int err_fd_ = -1;
  CommandOutput output_;
};

// The command line under test.
std::vector<std::string> attn_oracle_words(const std::vector<std::string>& words);
CommandOutput attn_oracle(const std::vector<std::string>& words,
                          const CommandSetting& setting = {});

// A line for a POSIX shell that finds the command line under test as `attn-oracle`.
CommandOutput shell(const std::string& line, const CommandSetting& setting = {});

std::vector<std::string> lines_of(const std::string& text);

}  // namespace attn
