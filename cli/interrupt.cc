#include "cli/interrupt.h"

#include <unistd.h>

#include <csignal>

#include "attn/case_file.h"

namespace attn::cli {
namespace {

// Async-signal-safe calls only.
extern "C" void end_program(int signal) {
  if (const char* path = temporary_in_flight()) unlink(path);
  _exit(128 + signal);
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action = {};
  action.sa_handler = end_program;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  // A reader that closes the pipe early: an error of the write, not a signal.
  std::signal(SIGPIPE, SIG_IGN);
  // The same for a file that would exceed the shell's limit.
  std::signal(SIGXFSZ, SIG_IGN);
}

}  // namespace attn::cli
