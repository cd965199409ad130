// vLLM's AttentionBackend, written out a second time: a virtual function a predicate, and
// validate_configuration as a list of questions. It shares the words of include/attn with the
// selector, and none of its decisions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend_check.h"
#include "attn/described_backend.h"
#include "attn/selector_config.h"
#include "attn/selector_environment.h"

namespace attn::property_tests {

// The answers of the base class.
class BackendClass {
 public:
  virtual ~BackendClass() = default;

  virtual bool supports_head_size(int head_size) const;
  virtual bool supports_dtype(DType dtype) const;
  virtual bool supports_kv_cache_dtype(std::optional<CacheDType> dtype) const;
  virtual bool supports_block_size(std::optional<int> block_size) const;
  virtual bool supports_compute_capability() const { return true; }
  virtual bool supports_attn_type(AttentionType type) const;
  virtual bool is_mla() const { return false; }
  virtual bool is_sparse() const { return false; }
  virtual bool supports_sink() const { return false; }
  virtual bool supports_mm_prefix() const { return false; }
  virtual bool supports_per_head_quant_scales() const { return false; }
  virtual bool supports_sliding_window() const { return false; }
  virtual bool supports_rswa() const { return false; }
  virtual bool supports_non_causal() const { return false; }
  virtual bool supports_non_causal_dcp() const { return false; }
  virtual bool supports_batch_invariance() const { return false; }
  virtual bool supports_kv_connector() const { return true; }
  virtual bool supports_pcp() const { return false; }
  virtual bool supports_dcp() const { return false; }
  virtual bool supports_query_lens_mismatch() const { return true; }
  virtual std::optional<CacheLayouts> supported_layouts() const { return std::nullopt; }

  // supports_combination: whether a rule is broken, and the text of the first that is.
  virtual bool breaks_combination(const AttentionSelectorConfig& config) const;
  virtual std::string combination_text(const AttentionSelectorConfig& config) const;
};

// A class whose combination texts are literals.
class LiteralRules : public BackendClass {
 public:
  bool breaks_combination(const AttentionSelectorConfig& config) const final;
  std::string combination_text(const AttentionSelectorConfig& config) const final;

 private:
  virtual std::string_view first_broken(const AttentionSelectorConfig& config) const = 0;
};

// A row's values as a class: what the row lists, and its own combination rules. Throws VllmError
// where the row says that vLLM raises.
class ListedClass final : public BackendClass {
 public:
  ListedClass(const DescribedBackend& row, const SelectorFacts& facts) : row_(row), facts_(facts) {}

  bool supports_head_size(int head_size) const override;
  bool supports_dtype(DType dtype) const override;
  bool supports_kv_cache_dtype(std::optional<CacheDType> dtype) const override;
  bool supports_block_size(std::optional<int> block_size) const override;
  bool supports_compute_capability() const override;
  bool supports_attn_type(AttentionType type) const override;
  bool is_mla() const override { return row_.mla; }
  bool is_sparse() const override { return row_.sparse; }
  bool supports_sink() const override { return row_.sink; }
  bool supports_mm_prefix() const override { return row_.mm_prefix; }
  bool supports_per_head_quant_scales() const override { return row_.per_head_quant_scales; }
  bool supports_sliding_window() const override { return row_.sliding_window; }
  bool supports_rswa() const override { return row_.rswa; }
  bool supports_non_causal() const override;
  bool supports_non_causal_dcp() const override { return row_.non_causal_dcp; }
  bool supports_batch_invariance() const override { return row_.batch_invariance; }
  bool supports_kv_connector() const override { return row_.kv_connector; }
  bool supports_pcp() const override { return row_.pcp; }
  bool supports_dcp() const override { return row_.dcp; }
  bool supports_query_lens_mismatch() const override { return row_.query_lens_mismatch; }
  std::optional<CacheLayouts> supported_layouts() const override { return row_.layouts; }
  bool breaks_combination(const AttentionSelectorConfig& config) const override;
  std::string combination_text(const AttentionSelectorConfig& config) const override;

 private:
  const DescribedBackend& row_;  // and facts_: must outlive this
  const SelectorFacts& facts_;
};

// Reasons in the order in which they were found.
struct FoundReasons {
  std::array<Reason, 21> list{};
  std::size_t count = 0;

  void add(Reason reason) { list[count++] = reason; }
  std::uint32_t bits() const;
};

FoundReasons find_reasons(const BackendClass& backend, const AttentionSelectorConfig& config);
std::vector<std::string> found_texts(const BackendClass& backend,
                                     const AttentionSelectorConfig& config);

// vLLM's repr of a configuration, and of its attn_type.
std::string repr(const AttentionSelectorConfig& config);
std::string repr(AttentionTypeArgument argument);

// The kernel blocks' rule: a multiple of any entry, plain or MultipleOf; none and an empty list
// pass.
bool is_multiple_of_any(const BlockSizes& sizes, std::optional<int> block_size);

}  // namespace attn::property_tests
