#pragma once

namespace attn::cli {

// SIGINT, SIGTERM and SIGHUP end the program with 128 + their number at once. Output is written in
// whole lines, so what has been printed stays complete; a file being written is removed.
void install_interrupt_handlers();

}  // namespace attn::cli
