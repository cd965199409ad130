// One run of the CPU backend, for its tests.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/operation.h"

namespace attn::cpu_tests {

// What the backend answered; every element was NaN (codes: 0x55) before.
struct Reply {
  std::vector<float> out;  // [num_tokens, num_heads, head_size_v]
  std::vector<float> lse;  // [num_heads, num_tokens]
  std::vector<std::uint8_t> codes;
  ExecSpec exec;

  bool same_bits(const Reply& other) const {
    const auto bytes = [](const std::vector<float>& v) {
      return std::string(reinterpret_cast<const char*>(v.data()), v.size() * sizeof(float));
    };
    return bytes(out) == bytes(other.out) && bytes(lse) == bytes(other.lse) && codes == other.codes;
  }
};

// `workspace_fill` is what every byte of the workspace holds beforehand. Leaves set_num_workers at
// `workers`.
Reply answer(const AttentionOp& op, int workers = 1, int workspace_fill = 0);

}  // namespace attn::cpu_tests
