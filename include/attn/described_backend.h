// What vLLM's AttentionBackend says about itself on one device in one environment, as data. A
// default-constructed DescribedBackend answers like vLLM's base class.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "attn/block_sizes.h"
#include "attn/cache_dtype.h"
#include "attn/cache_layouts.h"
#include "attn/dtype.h"
#include "attn/selector_config.h"
#include "attn/selector_environment.h"

namespace attn {

// Head sizes in [min, max] that are multiples of multiple_of and, if `only` is not empty, in it.
struct HeadSizes {
  std::vector<int> only;
  int min = std::numeric_limits<int>::min();
  int max = std::numeric_limits<int>::max();
  int multiple_of = 1;
  std::optional<std::vector<int>> declared;  // get_supported_head_sizes where it is not `only`

  bool allow(int head_size) const;
};

// KV cache dtypes: those that are declared (in vLLM's order) and those that are accepted.
struct KvDTypes {
  std::vector<CacheDType> declared;
  CacheDTypeSet accepted;

  KvDTypes() : KvDTypes{CacheDType::kAuto, CacheDType::kFloat16, CacheDType::kBFloat16} {}
  // Accepts what is declared, and a dtype that is not given.
  KvDTypes(std::initializer_list<CacheDType> dtypes)
      : declared(dtypes), accepted(CacheDTypeSet(dtypes).with(std::nullopt)) {}
};

// Kernel block sizes, and how supports_block_size and get_preferred_block_size depart from the
// base.
struct KernelBlocks {
  BlockSizes sizes = {multiple_of(1)};
  bool exact = false;                 // a plain size stands for itself only
  std::optional<int> multiples_only;  // what is supported are multiples of this, whatever the sizes
  bool empty_refuses = false;  // without sizes, even a block size that is not given is refused
  std::optional<int> always_preferred;    // whatever is asked
  std::optional<int> preferred_at_least;  // the larger of this and what is asked
  std::optional<int> preferred_fallback;  // instead of the smallest size

  bool support(std::optional<int> block_size) const;
  int preferred(int block_size) const;
};

// vLLM's supports_combination: the first rule that a configuration breaks.
class CombinationRules {
 public:
  virtual ~CombinationRules() = default;
  // 0 = none is broken. Never allocates.
  virtual std::uint32_t first_broken(const SelectorFacts& facts,
                                     const AttentionSelectorConfig& config) const = 0;
  // The text of a rule that first_broken named for the same arguments.
  virtual std::string text(std::uint32_t rule, const SelectorFacts& facts,
                           const AttentionSelectorConfig& config) const = 0;
  // False for a rule whose text is empty: a reason of its own backend, but none of a composite.
  virtual bool has_text(std::uint32_t /*rule*/) const { return true; }
};

enum class GraphSupport : std::uint8_t {
  kNever,
  kUniformSingleTokenDecode,
  kUniformBatch,
  kAlways,
};
std::string_view name(GraphSupport support);  // "UNIFORM_BATCH"
std::optional<GraphSupport> graph_support_from_name(std::string_view name);

struct DescribedBackend {
  std::string name;  // get_name(), not always the registry's name
  HeadSizes heads;
  std::vector<DType> dtypes = {DType::kF16, DType::kBF16};
  KvDTypes kv;
  KernelBlocks blocks;
  std::vector<AttentionType> attn_types = {AttentionType::kDecoder};
  bool capability = true;  // supports_compute_capability of the device
  bool mla = false;
  bool sparse = false;
  bool ssm = false;
  bool sink = false;
  bool alibi_sqrt = false;
  bool mm_prefix = false;
  bool per_head_quant_scales = false;
  bool sliding_window = false;
  bool rswa = false;
  bool non_causal = false;
  bool batch_invariance = false;
  bool kv_connector = true;
  bool pcp = false;
  bool dcp = false;
  bool non_causal_dcp = false;
  bool query_lens_mismatch = true;  // supports_device_cpu_query_lens_mismatch
  std::optional<CacheLayouts> layouts;
  std::shared_ptr<const CombinationRules> combination;

  // Where asking raises in vLLM: "ExcType: text".
  std::string capability_raises;
  std::string non_causal_raises;
  std::string layouts_raise;  // text of a ValueError

  // Traits that no selection looks at.
  std::optional<std::vector<DType>> declared_dtypes;  // where they are not `dtypes`
  bool update_in_forward = true;                      // forward_includes_kv_cache_update
  bool update_bypass = false;                         // supports_kv_cache_update_bypass
  bool has_impl = true;                               // there is an impl class
  bool decode_lse = false;                            // can_return_lse_for_decode
  bool lse_base_e = true;
  GraphSupport graph = GraphSupport::kUniformBatch;
  std::optional<int> reorder_batch_threshold;
  bool update_block_table = false;  // supports_update_block_table
};

// supported_kv_cache_layouts(). Throws VllmError where asking raises.
const std::optional<CacheLayouts>& supported_layouts(const DescribedBackend& backend);

}  // namespace attn
