// What the metadata builders of one group of layers are made with, after the kernel block size of
// the group is chosen.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "attn/block_sizes.h"
#include "attn/metadata.h"

namespace attn {

// A table of kernel blocks of a table of framework blocks: entry b becomes b * m + j,
// j < block_size / kernel_block_size, where m is kernel_block_stride or, when that is 0, their
// number. Throws Error unless kernel_block_size divides block_size, both >= 1, and all ids fit.
BlockTable kernel_block_table(const BlockTable& table, int block_size, int kernel_block_size,
                              int kernel_block_stride);

struct SpeculativeDecoding {
  bool configured = false;
  std::optional<int> num_tokens;  // drafted per step; 0 counts
  bool parallel_drafting = false;
};

// The longest query of a decode. Throws Error for a number of tokens outside [0, 2^20].
int max_decode_query_len(const SpeculativeDecoding& speculative, bool use_v2_model_runner);

struct ReorderRequest {
  std::optional<int> wanted;  // reorder_batch_threshold of the builder
  bool supports_spec_as_decode = false;
  bool supports_dcp_with_varlen = false;
  SpeculativeDecoding speculative;
  bool use_v2_model_runner = false;
  int decode_context_parallel_size = 1;
};

// The longest query that counts as a decode; none = do not reorder.
std::optional<int> reorder_threshold(const ReorderRequest& request);

// Of all groups of a runner: the least that is given.
std::optional<int> common_reorder_threshold(std::span<const std::optional<int>> of_groups);

struct BuilderGroup {
  int block_size = 16;                         // of the cache spec
  std::optional<int> group_kernel_block_size;  // none = none was chosen
  NamedBlockSizes backend;                     // kernel block sizes for this spec
  bool requires_block_table_width = false;
  int max_model_len = 0;
  int decode_context_parallel_size = 1;
  int max_num_seqs = 0;
  int num_metadata_builders = 1;
};

struct BuilderPlan {
  int builder_block_size = 16;                    // of the spec that the builders get
  std::optional<int> kernel_block_size;           // where it is not the spec's: a table of its own
  std::optional<std::int64_t> block_table_width;  // for builders that require it
  // [num_metadata_builders, max_num_seqs, width], filled by kernel_block_table before each build
  std::optional<std::array<std::int64_t, 3>> kernel_block_table_shape;
};

// Throws VllmError ValueError when the backend has no block size for the group, Error for sizes
// below 1 and for a kernel block size that does not divide the spec's.
BuilderPlan plan_builders(const BuilderGroup& group);

}  // namespace attn
