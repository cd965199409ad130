// How far a long command is, on standard error: a bar on a terminal, else a plain line every few
// seconds.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace attn::cli {

class Progress {
 public:
  Progress(std::string what, std::int64_t total, bool quiet);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step();

 private:
  void draw();

  std::string what_;
  std::int64_t total_;
  std::int64_t done_ = 0;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace attn::cli
