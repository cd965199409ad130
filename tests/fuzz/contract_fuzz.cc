// libFuzzer target: any text is a declaration of a contract or an attn::Error, and what is written
// of it reads back equal.
//
//   contract_fuzz -dict=tests/fuzz/contract.dict CORPUS
#include <cstdint>
#include <cstdlib>
#include <string>

#include "attn/arithmetic.h"
#include "attn/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  attn::Arithmetic arithmetic;
  try {
    arithmetic =
        resolve(attn::parse_contract({reinterpret_cast<const char*>(data), size}, "contract"));
  } catch (const attn::Error&) {
    return 0;
  }
  attn::Arithmetic again = resolve(attn::parse_contract(to_json(arithmetic), "again"));
  again.name = arithmetic.name;
  if (again != arithmetic) std::abort();
  return 0;
}
