#include "property_tests/selector_cuda_classes.h"

#include <utility>

#include "property_tests/selector_kernels.h"

namespace attn::property_tests {
namespace {

using enum CacheDType;
using Config = AttentionSelectorConfig;

bool is_half(std::optional<CacheDType> dtype) {
  return !dtype || dtype == kAuto || dtype == kFloat16 || dtype == kBFloat16;
}

bool is_fp8(std::optional<CacheDType> dtype) { return dtype == kFp8 || dtype == kFp8E4M3; }

bool divisible(std::optional<int> block_size, int by) {
  return !block_size || *block_size % by == 0;
}

class FlashAttn : public LiteralRules {
 public:
  explicit FlashAttn(const SelectorFacts& facts)
      : k_(facts), version_(k_.fa_version({}).value_or(0)), block_(kernel_block(facts)) {}

  bool supports_head_size(int h) const override {
    return h % 8 == 0 && (h <= 256 || (h <= 512 && k_.fa_supported(4)));
  }
  bool supports_kv_cache_dtype(std::optional<CacheDType> d) const override {
    return is_half(d) || (is_fp8(d) && k_.fa_kv_ok(d, {}));
  }
  bool supports_block_size(std::optional<int> b) const override { return divisible(b, block_); }
  bool supports_compute_capability() const override { return k_.reaches(8, 0); }
  bool supports_attn_type(AttentionType) const override { return true; }
  bool supports_sink() const override { return version_ == 3 || version_ == 4; }
  bool supports_mm_prefix() const override { return k_.fa_supported(4); }
  bool supports_per_head_quant_scales() const override { return version_ >= 3; }
  bool supports_sliding_window() const override { return true; }
  bool supports_rswa() const override { return true; }
  bool supports_non_causal() const override { return true; }
  bool supports_batch_invariance() const override { return true; }
  bool supports_dcp() const override { return true; }

 protected:
  std::string_view first_broken(const Config& c) const override {
    if (c.has_sink && !k_.reaches(9, 0)) return "sink not supported on compute capability < 9.0";
    if (c.use_mm_prefix && quantised(c.kv_cache_dtype) && k_.is(9, 0)) {
      return "SM90 FP8 KV with mm_prefix requires Triton";
    }
    if (quantised(c.kv_cache_dtype) &&
        !k_.fa_kv_ok(c.kv_cache_dtype,
                     {c.head_size, c.head_size, c.has_sink, c.block_size, true})) {
      return "FP8 KV cache requires FA3 on SM90, FA4 with head_size=512 on SM90, or FA4 on SM100";
    }
    if (c.use_mm_prefix && k_.fa_version({.head_size = c.head_size,
                                          .has_sinks = c.has_sink,
                                          .block_size = c.block_size,
                                          .hd256 = true}) != 4) {
      return "mm_prefix (PrefixLM bidirectional attention) requires FlashAttention v4, which does "
             "not resolve for this head_size";
    }
    return {};
  }

  CudaKernels k_;

 private:
  // A size itself and MultipleOf it are one rule in validation.
  int kernel_block(const SelectorFacts& facts) const {
    const auto& model = facts.environment.model;
    const CacheDType run = facts.environment.cache_dtype;
    if (!model) return 16;
    if (k_.major() == 9 && is_fp8(run) && model->head_size == 512 &&
        k_.fa_version({.head_size = 512}) == 4) {
      return 64;
    }
    if (k_.hd256_applies(model->head_size, std::nullopt) &&
        k_.fa_version({.head_size = model->head_size, .hd256 = true}) == 4) {
      return 128;
    }
    return 16;
  }

  int version_;  // 0 = none
  int block_;
};

class FlashInfer final : public LiteralRules {
 public:
  explicit FlashInfer(const SelectorFacts& facts) : k_(facts), e_(facts.environment) {}

  bool supports_head_size(int h) const override {
    return h == 64 || h == 128 || h == 256 || h == 512;
  }
  bool supports_kv_cache_dtype(std::optional<CacheDType> d) const override {
    if (!d || !begins_with(*d, "nvfp4")) return is_half(d) || is_fp8(d) || d == kFp8E5M2;
    if (k_.major() == 8 || k_.major() == 9 || k_.major() == 12) return d == kNvfp4;
    return k_.major() == 10 && k_.trtllm(true) && k_.trtllm(false);
  }
  // The larger sizes that grouped heads allow are multiples of the smaller ones.
  bool supports_block_size(std::optional<int> b) const override { return divisible(b, 16); }
  bool supports_compute_capability() const override {
    return k_.reaches(8, 0) && (k_.major() < 12 || k_.is(12, 0) || k_.is(12, 1));
  }
  bool supports_sink() const override {
    if (e_.use_trtllm_attention && !*e_.use_trtllm_attention) return false;
    if (k_.is(9, 0) || k_.major() == 12) return k_.trtllm(false);
    return k_.major() == 10 && k_.trtllm(false) && k_.trtllm(true);
  }
  bool supports_sliding_window() const override { return true; }
  bool supports_non_causal() const override { return true; }
  bool supports_dcp() const override { return true; }
  bool supports_query_lens_mismatch() const override {
    if (k_.major() != 10) return false;
    if (!e_.model) return true;
    return e_.dcp_size == 1 && k_.trtllm_usable(e_.model->num_heads, e_.model->num_kv_heads);
  }

 private:
  std::string_view first_broken(const Config& c) const override {
    if (!c.kv_cache_dtype || !begins_with(*c.kv_cache_dtype, "nvfp4")) return {};
    if (k_.major() != 8 && k_.major() != 9 && k_.major() != 12) return {};
    if (c.head_size == 64) return "fa2 prefill misreads an NVFP4 KV cache at head_size 64";
    if (c.has_sink) return "the sink prefill wrapper cannot read an NVFP4 KV cache";
    return {};
  }

  CudaKernels k_;
  const SelectorEnvironment& e_;
};

class TritonAttn final : public BackendClass {
 public:
  bool supports_head_size(int h) const override { return h >= 32; }
  bool supports_dtype(DType) const override { return true; }
  bool supports_kv_cache_dtype(std::optional<CacheDType> d) const override {
    return is_half(d) || is_fp8(d) || d == kFp8E5M2 || d == kInt4PerTokenHead ||
           d == kInt8PerTokenHead || d == kFp8PerTokenHead;
  }
  bool supports_block_size(std::optional<int> b) const override { return divisible(b, 16); }
  bool supports_attn_type(AttentionType) const override { return true; }
  bool supports_sink() const override { return true; }
  bool supports_mm_prefix() const override { return true; }
  bool supports_sliding_window() const override { return true; }
  bool supports_rswa() const override { return true; }
  bool supports_non_causal() const override { return true; }
  bool supports_batch_invariance() const override { return true; }
};

class FlexAttention final : public BackendClass {
 public:
  bool supports_dtype(DType) const override { return true; }
  bool supports_block_size(std::optional<int> b) const override { return divisible(b, 16); }
  bool supports_attn_type(AttentionType type) const override {
    return type == AttentionType::kDecoder || type == AttentionType::kEncoderOnly;
  }
  bool supports_mm_prefix() const override { return true; }
  bool supports_sliding_window() const override { return true; }
  bool supports_rswa() const override { return true; }
  bool supports_non_causal() const override { return true; }
  bool supports_batch_invariance() const override { return true; }
};

class CutlassMla final : public BackendClass {
 public:
  explicit CutlassMla(const SelectorFacts& facts) : k_(facts) {}

  bool supports_head_size(int h) const override { return h == 320 || h == 512 || h == 576; }
  bool supports_kv_cache_dtype(std::optional<CacheDType> d) const override {
    return is_half(d) || is_fp8(d);
  }
  bool supports_block_size(std::optional<int> b) const override { return divisible(b, 128); }
  bool supports_compute_capability() const override { return k_.major() == 10; }
  bool is_mla() const override { return true; }
  bool supports_pcp() const override { return true; }
  bool supports_dcp() const override { return true; }

 private:
  CudaKernels k_;
};

class FlashMla final : public LiteralRules {
 public:
  explicit FlashMla(const SelectorFacts& facts) : k_(facts) {}

  bool supports_head_size(int h) const override { return h == 320 || h == 512 || h == 576; }
  bool supports_kv_cache_dtype(std::optional<CacheDType> d) const override {
    return is_half(d) || is_fp8(d);
  }
  bool supports_block_size(std::optional<int> b) const override { return divisible(b, 64); }
  bool supports_compute_capability() const override { return k_.major() == 9 || k_.major() == 10; }
  bool is_mla() const override { return true; }
  bool supports_pcp() const override { return true; }
  bool supports_dcp() const override { return true; }

 private:
  std::string_view first_broken(const Config& c) const override {
    return k_.flashmla_reason(c.use_sparse);
  }

  CudaKernels k_;
};

// FlashAttention as it answers the causal batches of a composite.
class CausalFlashAttn final : public FlashAttn {
 public:
  using FlashAttn::FlashAttn;

  bool supports_compute_capability() const override { return k_.major() == 9; }

 private:
  std::string_view first_broken(const Config& c) const override {
    const std::string_view own = FlashAttn::first_broken(c);
    const int version = k_.fa_version({.head_size = c.head_size,
                                       .has_sinks = c.has_sink,
                                       .block_size = c.block_size,
                                       .hd256 = true})
                            .value_or(0);
    if (!own.empty() || version == 3 || version == 4) return own;
    return "causal route requires FlashAttention v3 or v4";
  }
};

// Two children, of which only the general one sees images.
class Composite final : public BackendClass {
 public:
  Composite(std::unique_ptr<BackendClass> general, std::unique_ptr<BackendClass> causal,
            std::string_view causal_name, bool on_its_device)
      : general_(std::move(general)),
        causal_(std::move(causal)),
        causal_name_(causal_name),
        on_its_device_(on_its_device) {}

  bool supports_head_size(int h) const override {
    return (h == 256 || h == 512) && general_->supports_head_size(h) &&
           causal_->supports_head_size(h);
  }
  bool supports_dtype(DType d) const override {
    return general_->supports_dtype(d) && causal_->supports_dtype(d);
  }
  bool supports_kv_cache_dtype(std::optional<CacheDType> d) const override {
    return general_->supports_kv_cache_dtype(d) && causal_->supports_kv_cache_dtype(d);
  }
  // With FlashInfer the kernel's blocks are 64; FlashAttention's own are multiples of Triton's 16.
  bool supports_block_size(std::optional<int> b) const override {
    return causal_name_ == "FLASHINFER" ? divisible(b, 64) : causal_->supports_block_size(b);
  }
  bool supports_compute_capability() const override {
    return on_its_device_ && general_->supports_compute_capability() &&
           causal_->supports_compute_capability();
  }
  bool supports_mm_prefix() const override { return general_->supports_mm_prefix(); }
  bool supports_sliding_window() const override {
    return general_->supports_sliding_window() && causal_->supports_sliding_window();
  }
  bool supports_rswa() const override {
    return general_->supports_rswa() && causal_->supports_rswa();
  }
  bool supports_query_lens_mismatch() const override { return false; }

  bool breaks_combination(const Config& c) const override {
    return general_->breaks_combination(c) || causal_->breaks_combination(without_images(c));
  }
  std::string combination_text(const Config& c) const override {
    const std::string general = general_->combination_text(c);
    if (!general.empty()) return "TRITON_ATTN: " + general;
    return std::string(causal_name_) + ": " + causal_->combination_text(without_images(c));
  }

 private:
  static Config without_images(const Config& c) {
    Config seen = c;
    seen.use_mm_prefix = false;
    return seen;
  }

  std::unique_ptr<BackendClass> general_;
  std::unique_ptr<BackendClass> causal_;
  std::string_view causal_name_;
  bool on_its_device_;
};

}  // namespace

std::unique_ptr<BackendClass> written_class(std::string_view member, const SelectorFacts& facts) {
  if (member == "FLASH_ATTN") return std::make_unique<FlashAttn>(facts);
  if (member == "FLASHINFER") return std::make_unique<FlashInfer>(facts);
  if (member == "TRITON_ATTN") return std::make_unique<TritonAttn>();
  if (member == "FLEX_ATTENTION") return std::make_unique<FlexAttention>();
  if (member == "CUTLASS_MLA") return std::make_unique<CutlassMla>(facts);
  if (member == "FLASHMLA") return std::make_unique<FlashMla>(facts);
  if (member == "TRITON_FLASHINFER") {
    return std::make_unique<Composite>(std::make_unique<TritonAttn>(),
                                       std::make_unique<FlashInfer>(facts), "FLASHINFER",
                                       facts.major() == 10);
  }
  if (member == "TRITON_FLASH_ATTN") {
    return std::make_unique<Composite>(std::make_unique<TritonAttn>(),
                                       std::make_unique<CausalFlashAttn>(facts), "FLASH_ATTN",
                                       true);
  }
  return nullptr;
}

}  // namespace attn::property_tests
