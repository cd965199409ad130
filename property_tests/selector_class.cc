#include "property_tests/selector_class.h"

#include <fmt/format.h>

#include "attn/vllm_error.h"
#include "core/contains.h"

namespace attn::property_tests {
namespace {

[[noreturn]] void raise(const std::string& type_and_text) {
  const std::size_t end = type_and_text.find(':');
  throw VllmError(type_and_text.substr(0, end), type_and_text.substr(end + 2));
}

// A reason's text where it does not depend on the configuration.
std::string_view fixed_text(Reason reason) {
  switch (reason) {
    case Reason::kHeadSize:
      return "head_size not supported";
    case Reason::kDType:
      return "dtype not supported";
    case Reason::kKvCacheDType:
      return "kv_cache_dtype not supported";
    case Reason::kBlockSize:
      return "block_size not supported";
    case Reason::kMmPrefix:
      return "partial multimodal token full attention not supported";
    case Reason::kMla:
      return "MLA not supported";
    case Reason::kNonMla:
      return "non-MLA not supported";
    case Reason::kSink:
      return "attention sinks not supported";
    case Reason::kSparse:
      return "sparse not supported";
    case Reason::kNonSparse:
      return "non-sparse not supported";
    case Reason::kPerHeadQuantScales:
      return "per-head quant scales not supported";
    case Reason::kComputeCapability:
      return "compute capability not supported";
    case Reason::kSlidingWindow:
      return "sliding window not supported";
    case Reason::kRswa:
      return "R-SWA not supported";
    case Reason::kNonCausal:
      return "non-causal attention not supported";
    case Reason::kNonCausalDcp:
      return "non-causal MLA attention with DCP not supported";
    case Reason::kBatchInvariance:
      return "batch invariance not supported";
    case Reason::kKvConnector:
      return "KV connector not supported";
    case Reason::kPcp:
      return "PCP not supported";
    case Reason::kDcp:
      return "DCP not supported";
    case Reason::kQueryLensMismatch:
      return "device-cpu query lens mismatch not supported, this is needed for adaptive "
             "verification";
    default:
      return {};
  }
}

}  // namespace

bool BackendClass::supports_head_size(int) const { return true; }
bool BackendClass::supports_dtype(DType dtype) const {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}
bool BackendClass::supports_kv_cache_dtype(std::optional<CacheDType> dtype) const {
  return !dtype || *dtype == CacheDType::kAuto || *dtype == CacheDType::kFloat16 ||
         *dtype == CacheDType::kBFloat16;
}
bool BackendClass::supports_block_size(std::optional<int>) const { return true; }
bool BackendClass::supports_attn_type(AttentionType type) const {
  return type == AttentionType::kDecoder;
}
bool BackendClass::breaks_combination(const AttentionSelectorConfig&) const { return false; }
std::string BackendClass::combination_text(const AttentionSelectorConfig&) const { return {}; }

bool LiteralRules::breaks_combination(const AttentionSelectorConfig& config) const {
  return !first_broken(config).empty();
}
std::string LiteralRules::combination_text(const AttentionSelectorConfig& config) const {
  return std::string(first_broken(config));
}

bool ListedClass::supports_head_size(int head_size) const {
  const HeadSizes& heads = row_.heads;
  return head_size >= heads.min && head_size <= heads.max && head_size % heads.multiple_of == 0 &&
         (heads.only.empty() || contains(heads.only, head_size));
}
bool ListedClass::supports_dtype(DType dtype) const { return contains(row_.dtypes, dtype); }
bool ListedClass::supports_kv_cache_dtype(std::optional<CacheDType> dtype) const {
  return row_.kv.accepted.contains(dtype);
}
bool ListedClass::supports_block_size(std::optional<int> block_size) const {
  const KernelBlocks& blocks = row_.blocks;
  if (blocks.empty_refuses && blocks.sizes.empty()) return false;
  if (blocks.multiples_only) return !block_size || *block_size % *blocks.multiples_only == 0;
  if (blocks.exact) return !block_size || contains(blocks.sizes, BlockSize{*block_size, false});
  return is_multiple_of_any(blocks.sizes, block_size);
}
bool ListedClass::supports_compute_capability() const {
  if (!row_.capability_raises.empty()) raise(row_.capability_raises);
  return row_.capability;
}
bool ListedClass::supports_attn_type(AttentionType type) const {
  return contains(row_.attn_types, type);
}
bool ListedClass::supports_non_causal() const {
  if (!row_.non_causal_raises.empty()) raise(row_.non_causal_raises);
  return row_.non_causal;
}
bool ListedClass::breaks_combination(const AttentionSelectorConfig& config) const {
  return row_.combination && row_.combination->first_broken(facts_, config) != 0;
}
std::string ListedClass::combination_text(const AttentionSelectorConfig& config) const {
  return row_.combination->text(row_.combination->first_broken(facts_, config), facts_, config);
}

std::uint32_t FoundReasons::bits() const {
  std::uint32_t all = 0;
  for (std::size_t i = 0; i < count; ++i) all |= std::uint32_t{1} << static_cast<int>(list[i]);
  return all;
}

FoundReasons find_reasons(const BackendClass& b, const AttentionSelectorConfig& c) {
  FoundReasons found;
  if (!b.supports_head_size(c.head_size)) found.add(Reason::kHeadSize);
  if (!b.supports_dtype(c.dtype)) found.add(Reason::kDType);
  if (!b.supports_kv_cache_dtype(c.kv_cache_dtype)) found.add(Reason::kKvCacheDType);
  if (!b.supports_block_size(c.block_size)) found.add(Reason::kBlockSize);
  if (c.use_mm_prefix && !b.supports_mm_prefix()) found.add(Reason::kMmPrefix);
  if (c.use_mla != b.is_mla()) found.add(c.use_mla ? Reason::kMla : Reason::kNonMla);
  if (c.has_sink && !b.supports_sink()) found.add(Reason::kSink);
  if (c.use_sparse != b.is_sparse()) found.add(c.use_sparse ? Reason::kSparse : Reason::kNonSparse);
  if (c.use_per_head_quant_scales && !b.supports_per_head_quant_scales()) {
    found.add(Reason::kPerHeadQuantScales);
  }
  if (!b.supports_compute_capability()) found.add(Reason::kComputeCapability);
  if (!b.supports_attn_type(c.attn_type.type)) found.add(Reason::kAttnType);
  if (c.has_sliding_window && !b.supports_sliding_window()) found.add(Reason::kSlidingWindow);
  if (c.use_rswa && !b.supports_rswa()) found.add(Reason::kRswa);
  if (c.use_non_causal && !b.supports_non_causal()) found.add(Reason::kNonCausal);
  if (c.use_mla && c.use_non_causal && c.use_dcp && !b.supports_non_causal_dcp()) {
    found.add(Reason::kNonCausalDcp);
  }
  if (c.use_batch_invariant && !b.supports_batch_invariance()) found.add(Reason::kBatchInvariance);
  if (c.use_kv_connector && !b.supports_kv_connector()) found.add(Reason::kKvConnector);
  if (c.use_pcp && !b.supports_pcp()) found.add(Reason::kPcp);
  if (c.use_dcp && !b.supports_dcp()) found.add(Reason::kDcp);
  if (c.use_adaptive_verification && !b.supports_query_lens_mismatch()) {
    found.add(Reason::kQueryLensMismatch);
  }
  if (b.breaks_combination(c)) found.add(Reason::kCombination);
  return found;
}

std::vector<std::string> found_texts(const BackendClass& backend,
                                     const AttentionSelectorConfig& config) {
  const FoundReasons found = find_reasons(backend, config);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < found.count; ++i) {
    if (found.list[i] == Reason::kCombination) {
      texts.push_back(backend.combination_text(config));
    } else if (found.list[i] == Reason::kAttnType) {
      texts.push_back("attention type " + repr(config.attn_type) + " not supported");
    } else {
      texts.emplace_back(fixed_text(found.list[i]));
    }
  }
  return texts;
}

std::string repr(AttentionTypeArgument argument) {
  constexpr std::string_view kPlain[] = {"decoder", "encoder", "encoder_only", "encoder_decoder"};
  constexpr std::string_view kMember[] = {"DECODER", "ENCODER", "ENCODER_ONLY", "ENCODER_DECODER"};
  const auto index = static_cast<std::size_t>(argument.type);
  return argument.plain ? std::string(kPlain[index])
                        : fmt::format("AttentionType.{}", kMember[index]);
}

std::string repr(const AttentionSelectorConfig& c) {
  const auto word = [](bool value) { return value ? "True" : "False"; };
  const char* dtype = c.dtype == DType::kF32   ? "float32"
                      : c.dtype == DType::kF16 ? "float16"
                                               : "bfloat16";
  std::string text = fmt::format(
      "AttentionSelectorConfig(head_size={}, dtype=torch.{}, kv_cache_dtype={}, block_size={}, ",
      c.head_size, dtype, c.kv_cache_dtype ? name(*c.kv_cache_dtype) : "None",
      c.block_size ? fmt::to_string(*c.block_size) : "None");
  text += fmt::format(
      "use_mla={}, has_sink={}, use_sparse={}, use_mm_prefix={}, use_per_head_quant_scales={}, "
      "attn_type={}, has_sliding_window={}, use_non_causal={}, ",
      word(c.use_mla), word(c.has_sink), word(c.use_sparse), word(c.use_mm_prefix),
      word(c.use_per_head_quant_scales), repr(c.attn_type), word(c.has_sliding_window),
      word(c.use_non_causal));
  return text + fmt::format(
                    "use_batch_invariant={}, use_kv_connector={}, use_adaptive_verification={}, "
                    "use_pcp={}, use_dcp={}, use_rswa={})",
                    word(c.use_batch_invariant), word(c.use_kv_connector),
                    word(c.use_adaptive_verification), word(c.use_pcp), word(c.use_dcp),
                    word(c.use_rswa));
}

bool is_multiple_of_any(const BlockSizes& sizes, std::optional<int> block_size) {
  if (!block_size || sizes.empty()) return true;
  for (const BlockSize entry : sizes) {
    if (*block_size % entry.size == 0) return true;
  }
  return false;
}

}  // namespace attn::property_tests
