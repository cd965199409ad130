// What is found out about a machine: CUDA through fake drivers, the CPU beside what Linux says.
#include "core/environment.h"

#include <gtest/gtest.h>
#include <sys/utsname.h>

#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>

namespace attn {
namespace {

std::string fake_driver(const std::string& name) { return ATTN_FAKE_DRIVERS "/lib" + name + ".so"; }

TEST(CudaDriver, GivesTheCapabilityOfTheFirstDevice) {
  const CudaDevice hopper = first_cuda_device(fake_driver("fake_cuda_hopper"));
  EXPECT_EQ(hopper.capability, (DeviceCapability{9, 0})) << hopper.reason;
  EXPECT_EQ(hopper.reason, "");
  const CudaDevice turing = first_cuda_device(fake_driver("fake_cuda_turing"));
  EXPECT_EQ(turing.capability, (DeviceCapability{7, 5})) << turing.reason;
}

struct Broken {
  std::string library;
  std::string reason;
};

class BrokenCudaDriver : public testing::TestWithParam<Broken> {};

TEST_P(BrokenCudaDriver, IsNoDeviceForOneReason) {
  const CudaDevice device = first_cuda_device(GetParam().library);
  EXPECT_FALSE(device.capability.has_value());
  EXPECT_EQ(device.reason, GetParam().reason);
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, BrokenCudaDriver,
    testing::Values(Broken{"libattn_there_is_none.so.1", "no CUDA driver"},
                    Broken{ATTN_FAKE_DRIVERS "/no_library", "no CUDA driver"},
                    Broken{fake_driver("fake_cuda_without_symbol"),
                           "the CUDA driver has no cuDeviceGetAttribute"},
                    Broken{fake_driver("fake_cuda_without_start"),
                           "the CUDA driver does not start: cuInit answers 999"},
                    Broken{fake_driver("fake_cuda_without_device"), "no CUDA device"}));

TEST(Environment, IsCudaWithADeviceAndCpuWithout) {
  const CpuFeatures cpu = {"ARM", true, false};
  const SelectorFacts cuda = environment_of({DeviceCapability{9, 0}, ""}, cpu);
  EXPECT_EQ(cuda.platform, Platform::kCuda);
  EXPECT_EQ(cuda.capability, (DeviceCapability{9, 0}));
  const SelectorFacts none = environment_of({std::nullopt, "no CUDA driver"}, cpu);
  EXPECT_EQ(none.platform, Platform::kCpu);
  EXPECT_EQ(none.capability, std::nullopt);
  SelectorEnvironment expected;
  expected.cpu_arch = "ARM";
  expected.cpu_amx_tile = true;
  EXPECT_EQ(cuda.environment, expected);
  EXPECT_EQ(none.environment, expected);
}

// AVX512 F, DQ, BW and VL; AMX tiles; XCR0 with everything.
constexpr X86Registers kEverything = {
    .leaf7_ebx = 0xC0030000U, .leaf7_edx = 0x01000000U, .xcr0 = 0x600E7U};

TEST(CpuFeatures, NeedTheInstructionsAndTheSystem) {
  const CpuFeatures all = x86_features(kEverything);
  EXPECT_EQ(all.arch, "X86");
  EXPECT_TRUE(all.amx_tile);
  EXPECT_TRUE(all.avx512);
  for (const std::uint32_t missing : {1U << 16, 1U << 17, 1U << 30, 1U << 31}) {
    X86Registers registers = kEverything;
    registers.leaf7_ebx &= ~missing;
    EXPECT_FALSE(x86_features(registers).avx512) << missing;
    EXPECT_TRUE(x86_features(registers).amx_tile) << missing;
  }
  X86Registers without_tiles = kEverything;
  without_tiles.leaf7_edx = 0;
  EXPECT_FALSE(x86_features(without_tiles).amx_tile);
  for (int bit = 0; bit < 20; ++bit) {
    X86Registers registers = kEverything;
    registers.xcr0 &= ~(std::uint64_t{1} << bit);
    EXPECT_EQ(x86_features(registers).amx_tile, bit != 17 && bit != 18) << bit;
    const std::set<int> of_avx512 = {1, 2, 5, 6, 7};
    EXPECT_EQ(x86_features(registers).avx512, !of_avx512.contains(bit)) << bit;
  }
}

// Words of the line "flags" of /proc/cpuinfo; the kernel leaves out what it does not save.
std::set<std::string> kernel_flags() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line) && !line.starts_with("flags")) {
  }
  std::istringstream words(line);
  return {std::istream_iterator<std::string>(words), {}};
}

TEST(CpuFeatures, AreThoseThatTheKernelLists) {
  utsname system;
  ASSERT_EQ(uname(&system), 0);
  if (std::string(system.machine) != "x86_64") GTEST_SKIP() << system.machine;
  const std::set<std::string> flags = kernel_flags();
  if (!flags.contains("fpu")) GTEST_SKIP() << "no flags in /proc/cpuinfo";
  const CpuFeatures features = detect_cpu_features();
  const auto listed = [&](const char* flag) { return flags.contains(flag); };
  EXPECT_EQ(features.arch, "X86");
  EXPECT_EQ(features.amx_tile, listed("amx_tile"));
  EXPECT_EQ(features.avx512,
            listed("avx512f") && listed("avx512vl") && listed("avx512bw") && listed("avx512dq"));
}

TEST(Environment, OfThisMachineIsOneThatASelectionTakes) {
  const SelectorFacts facts = detect_environment();
  EXPECT_TRUE(facts.platform == Platform::kCuda || facts.platform == Platform::kCpu);
  EXPECT_EQ(facts.capability.has_value(), facts.platform == Platform::kCuda);
  EXPECT_EQ(facts.environment.cpu_arch, detect_cpu_features().arch);
}

}  // namespace
}  // namespace attn
