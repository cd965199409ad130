// The table of described backends in docs/vllm_mapping.md, from the selector's rows.
#pragma once

#include <string>
#include <vector>

namespace attn {

// One backend on one platform, as the cells of the table.
struct BackendLine {
  std::string platform;  // "cuda"
  std::string member;
  std::string heads;  // "any", "64, 128", ">= 32", "multiples of 8 up to 512"
  std::string dtypes;
  std::string kv_cache_dtypes;  // "none" = not given
  std::string kernel_blocks;
  std::string attn_types;
  std::string features;
  std::string layouts;
  std::string devices;  // among those that the table lists; "" where there is no choice
};

// CUDA as on 9.0, ROCm as on gfx90a, in the default environment.
std::vector<BackendLine> described_backend_lines();

std::string backend_table(const std::vector<BackendLine>& lines);

}  // namespace attn
