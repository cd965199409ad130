// Which attention backend vLLM 0.33.0 chooses for a layer, why not the others, and what it logs.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attn/backend_check.h"
#include "attn/backend_registry.h"
#include "attn/selector_config.h"
#include "attn/selector_environment.h"
#include "attn/vllm_error.h"

namespace attn {

enum class LogLevel : std::uint8_t { kInfo, kWarning };
std::string_view name(LogLevel level);  // "info"

// Debug lines are left out; a line that vLLM logs once appears in every selection.
struct LogLine {
  LogLevel level = LogLevel::kInfo;
  std::string text;

  bool operator==(const LogLine&) const = default;
};

struct SelectionRequest {
  std::optional<std::string> backend;  // member of the registry; none = automatic
  std::optional<int> num_heads;
  AttentionSelectorConfig config;
};

struct Candidate {
  std::string name;
  std::vector<std::string> reasons;  // empty = valid
};

struct Selection {
  std::optional<VllmError> error;      // then path is empty
  std::string path;                    // "module.Class"
  std::optional<std::string> backend;  // member; none for a class that has no member
  std::vector<LogLine> logs;
  std::vector<Candidate> candidates;  // of an automatic selection by validation, best first
};

// What a CUDA device's automatic selection tries, best first. Lives forever.
struct CudaPriorityInputs {
  bool use_mla = false;
  DeviceCapability capability;
  std::optional<int> num_heads;
  std::optional<CacheDType> kv_cache_dtype;
  bool use_non_causal = false;
  std::optional<int> head_size;
  bool use_mm_prefix = false;
};
std::span<const std::string_view> cuda_priorities(const CudaPriorityInputs& inputs);

// A third party's backend, in selection beside vLLM's and by the same rules. On CUDA and ROCm it is
// a candidate at its place; XPU and CPU have no list of candidates: there a valid one of place 0
// comes before vLLM's own choice and one of another place is never reached. Requested, it is
// validated.
struct AddedBackend {
  std::string name;             // the member that it becomes
  std::string path;             // "module.Class"
  std::optional<int> priority;  // place in the automatic list, 0 = first; of two at one place the
                                // earlier stays first. none = only when requested
  std::vector<Platform> platforms;  // where it is a member
  std::function<DescribedBackend(const SelectorFacts&)> describe;
};

// Reads a backend file ("attn-backend-file/1"); `name` is what messages call the document. Throws
// Error for anything that is unknown, missing or out of range.
AddedBackend parse_backend_file(std::string_view text, const std::string& name);

// Selects on one device in one environment. Immutable; safe to use from many threads.
class BackendSelector {
 public:
  // CUDA needs a capability; ROCm's follows from gcn_arch. Throws Error otherwise, and when an
  // added backend has a name that is taken or cannot be a member's.
  BackendSelector(SelectorFacts facts, BackendRegistry registry,
                  std::vector<AddedBackend> added = {});

  // What vLLM raises is in the answer. Throws Error for a request that is no member.
  Selection select(const SelectionRequest& request) const;

  const SelectorFacts& facts() const { return facts_; }
  const BackendRegistry& registry() const { return registry_; }

  // The class of a member, by its path in the registry. Throws VllmError where asking for it
  // raises, import errors of the environment included.
  const BackendCheck& check(std::string_view member) const;

  bool is_added(std::string_view member) const { return added_.contains(member); }
  // vLLM's candidates with the added ones at their places.
  std::vector<std::string> with_added(std::span<const std::string_view> candidates) const;
  // The added ones of place 0, in order.
  std::vector<std::string> added_first() const;

 private:
  void describe_all();
  void add(const AddedBackend& added);

  struct Place {
    int priority;
    std::string name;
  };

  SelectorFacts facts_;
  BackendRegistry registry_;
  std::map<std::string, BackendCheck, std::less<>> by_path_;
  std::map<std::string, BackendCheck, std::less<>> added_;  // by name
  std::vector<Place> places_;                               // of the automatic ones, ascending
};

// get_mamba_attn_backend: the class of a member of the mamba registry.
struct MambaSelection {
  std::optional<VllmError> error;
  std::string path;
  std::string get_name;
};
MambaSelection select_mamba(std::string_view member, bool batch_invariant);

}  // namespace attn
