// Makes the small pack: small_pack_main TARGET. Exit 2 and one line when it cannot.
#include <cstdio>
#include <exception>

#include "tests/small_pack.h"

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    attn::make_small_pack(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
