#include "core/cpu_features.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace attn {
namespace {

// Intel's Software Developer's Manual, volume 2, CPUID; volume 1, chapter 13, XCR0.
constexpr std::uint32_t kAvx512 = 1U << 16 | 1U << 17 | 1U << 30 | 1U << 31;  // F, DQ, BW, VL: EBX
constexpr std::uint32_t kAmxTile = 1U << 24;                                  // EDX
constexpr std::uint64_t kZmmState = 1U << 1 | 1U << 2 | 7U << 5;  // XMM, YMM, ZMM, masks
constexpr std::uint64_t kTileState = 3U << 17;

#if defined(__x86_64__) || defined(__i386__)
X86Registers read_registers() {
  constexpr unsigned kOsXsave = 1U << 27;  // XGETBV may be asked
  X86Registers r;
  unsigned eax = 0;
  unsigned ebx = 0;
  unsigned ecx = 0;
  unsigned edx = 0;
  const bool saves = __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kOsXsave) != 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    r.leaf7_ebx = ebx;
    r.leaf7_edx = edx;
  }
  if (saves) {
    unsigned low = 0;
    unsigned high = 0;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    r.xcr0 = std::uint64_t{high} << 32 | low;
  }
  return r;
}
#endif

[[maybe_unused]] CpuFeatures plain(const char* arch) { return {arch, false, false}; }

}  // namespace

CpuFeatures x86_features(const X86Registers& registers) {
  const auto has = [](auto word, auto bits) { return (word & bits) == bits; };
  return {"X86", has(registers.leaf7_edx, kAmxTile) && has(registers.xcr0, kTileState),
          has(registers.leaf7_ebx, kAvx512) && has(registers.xcr0, kZmmState)};
}

CpuFeatures detect_cpu_features() {
#if defined(__x86_64__) || defined(__i386__)
  return x86_features(read_registers());
#elif defined(__aarch64__) || defined(__arm__)
  return plain("ARM");
#elif defined(__powerpc__)
  return plain("POWERPC");
#elif defined(__s390x__)
  return plain("S390X");
#elif defined(__riscv)
  return plain("RISCV");
#else
  return plain("OTHER");
#endif
}

}  // namespace attn
