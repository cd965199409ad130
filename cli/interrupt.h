#pragma once

namespace attn::cli {

// SIGINT and SIGTERM end the program with 130 or 143 at once. Output is written in whole lines, so
// what has been printed stays complete; a file being written is removed.
void install_interrupt_handlers();

}  // namespace attn::cli
