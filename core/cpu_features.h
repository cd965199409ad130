// What this CPU can do, as far as a selection asks.
#pragma once

#include <cstdint>
#include <string>

namespace attn {

struct CpuFeatures {
  std::string arch = "OTHER";  // vLLM's word: X86, ARM, POWERPC, S390X, RISCV, OTHER
  bool amx_tile = false;       // tiles exist and the system saves them
  bool avx512 = false;         // F, VL, BW and DQ, and the system saves their registers
};

// Registers that an x86 CPU answers CPUID and XGETBV with.
struct X86Registers {
  std::uint32_t leaf7_ebx = 0;
  std::uint32_t leaf7_edx = 0;
  std::uint64_t xcr0 = 0;  // register states that the system saves; 0 where it says nothing
};

CpuFeatures x86_features(const X86Registers& registers);
CpuFeatures detect_cpu_features();

}  // namespace attn
