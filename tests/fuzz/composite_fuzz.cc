// libFuzzer target: any text is a table of composites or an attn::Error.
//
//   composite_fuzz -dict=tests/fuzz/composite.dict CORPUS
#include <cstdint>
#include <string_view>

#include "attn/error.h"
#include "cli/vllm_composites.h"
#include "composite/replay.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  try {
    attn::replay_composite_table({reinterpret_cast<const char*>(data), size},
                                 attn::cli::vllm_backend_of_table, [](const attn::ReplayedRow&) {});
  } catch (const attn::Error&) {
  }
  return 0;
}
