// What the CUDA kernels of one environment can do, from vLLM's rules: a second writing of the
// shared helpers that its backends ask.
#pragma once

#include <optional>
#include <string_view>

#include "attn/cache_dtype.h"
#include "attn/selector_environment.h"

namespace attn::property_tests {

// Arguments of get_flash_attn_version; none and false where vLLM's defaults are.
struct FlashArguments {
  std::optional<int> head_size = std::nullopt;
  std::optional<int> head_size_v = std::nullopt;
  bool has_sinks = false;
  std::optional<int> block_size = std::nullopt;
  bool hd256 = false;
};

class CudaKernels {
 public:
  explicit CudaKernels(const SelectorFacts& facts)
      : e_(facts.environment),
        capability_(facts.capability.value_or(DeviceCapability{})),
        major_(capability_.major) {}

  int major() const { return major_; }
  // The capability is at least, exactly, this one.
  bool reaches(int major, int minor) const;
  bool is(int major, int minor) const;

  bool fa_supported(int version) const;
  bool hd256_applies(std::optional<int> head_size, std::optional<int> head_size_v) const;
  std::optional<int> fa_version(const FlashArguments& arguments) const;
  bool fa_kv_ok(std::optional<CacheDType> dtype, const FlashArguments& arguments) const;
  bool trtllm(bool prefill) const;
  bool trtllm_usable(int num_heads, int num_kv_heads) const;
  std::string_view flashmla_reason(bool sparse) const;  // empty = none

 private:
  bool hd256_refused(const FlashArguments& arguments) const;

  const SelectorEnvironment& e_;  // of the facts, which must outlive this
  DeviceCapability capability_;
  int major_;
};

// The quantisation mode of the dtype's name is not NONE.
bool quantised(std::optional<CacheDType> dtype);
bool begins_with(CacheDType dtype, std::string_view prefix);

}  // namespace attn::property_tests
