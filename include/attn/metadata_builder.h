// How a backend turns a batch into metadata of its own: vLLM's AttentionMetadataBuilder, with its
// names; defaults are those of its base class. A group of layers that share one cache has one
// builder.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "attn/dtype.h"
#include "attn/metadata.h"

namespace attn {

class AttentionBackend;

// The shape of the KV cache that a group of layers shares.
struct KvCacheSpec {
  int block_size = 16;
  int num_kv_heads = 1;
  int head_size = 0;
  DType dtype = DType::kBF16;
  // Where a backend packs states in a way of its own; none = as the fields above say.
  std::optional<int> num_head_slots;
  std::optional<int> state_content_bytes;
  std::optional<int> block_stride_alignment;

  bool operator==(const KvCacheSpec&) const = default;
};

// A layer of the model as routing looks at it.
struct LayerTraits {
  std::string name;
  // The layer's attribute; the outer none = it has no such attribute.
  std::optional<std::optional<int>> sliding_window;
  std::optional<bool> mm_prefix_clamp_sliding_window;

  // A window that image ranges reach across: they show keys that lie behind it.
  bool has_unclamped_window() const {
    return sliding_window && *sliding_window && !mm_prefix_clamp_sliding_window.value_or(false);
  }
};

// What a builder is made from. `model` holds every layer, `layer_names` those of the group.
struct BuilderArguments {
  KvCacheSpec spec;
  std::vector<std::string> layer_names;
  std::vector<LayerTraits> model;
  std::optional<int> block_table_width;  // for builders that require it
};

// What a builder made of one batch, for the implementation of the same backend. Immutable.
class AttentionMetadata {
 public:
  virtual ~AttentionMetadata() = default;
  // The backend whose builder made it; outlives it.
  virtual const AttentionBackend& backend() const = 0;
  // What it wraps: a child's metadata in a composite's; null = nothing.
  virtual const AttentionMetadata* inner() const { return nullptr; }
};
using MetadataPtr = std::shared_ptr<const AttentionMetadata>;

// Scratch memory that builders share; only backends know what is in it.
class WorkspaceBuffer {
 public:
  virtual ~WorkspaceBuffer() = default;
};
using WorkspacePtr = std::shared_ptr<WorkspaceBuffer>;

// Not for concurrent calls on one object. Its backend must outlive it. What a builder does not
// support throws VllmError NotImplementedError with the names of backend and method.
class AttentionMetadataBuilder {
 public:
  virtual ~AttentionMetadataBuilder() = default;

  virtual const AttentionBackend& backend() const = 0;

  // common_prefix_len is deprecated in vLLM and 0 there.
  virtual MetadataPtr build(int common_prefix_len, const CommonAttentionMetadata& batch,
                            bool fast_build) = 0;
  virtual MetadataPtr build_for_cudagraph_capture(const CommonAttentionMetadata& batch) {
    return build(0, batch, false);
  }
  virtual MetadataPtr build_for_drafting(const CommonAttentionMetadata& batch,
                                         int /*draft_index*/) {
    return build(0, batch, true);
  }

  // Metadata of another cache group with the same spec: only the table and the slots differ. Ask
  // only when it is supported; else build again.
  virtual bool supports_update_block_table() const { return false; }
  virtual MetadataPtr update_block_table(const AttentionMetadata& metadata, const BlockTable& table,
                                         const std::vector<std::int64_t>& slot_mapping);
  virtual bool supports_draft_decode_metadata_update() const { return false; }
  virtual MetadataPtr update_draft_decode_metadata(const AttentionMetadata& metadata);

  // The longest query that counts as a decode; none = the batch is not reordered.
  virtual std::optional<int> reorder_batch_threshold() const { return std::nullopt; }
  virtual void set_kernel_block_size(int block_size) { kernel_block_size_ = block_size; }
  std::optional<int> kernel_block_size() const { return kernel_block_size_; }

  // A builder has neither half of the workspace protocol, either, or both.
  virtual bool provides_workspace() const { return false; }
  virtual WorkspacePtr workspace() { return nullptr; }
  virtual bool takes_workspace() const { return false; }
  virtual void set_workspace(WorkspacePtr /*buffer*/) {}

 private:
  std::optional<int> kernel_block_size_;
};

}  // namespace attn
