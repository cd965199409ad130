// KV cache block sizes that a kernel takes, and what several backends take together.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace attn {

// One entry of a backend's list of kernel block sizes: a size, or all multiples of it.
struct BlockSize {
  int size = 1;  // >= 1
  bool multiples = false;

  bool operator==(const BlockSize&) const = default;
};
constexpr BlockSize multiple_of(int size) { return {size, true}; }

using BlockSizes = std::vector<BlockSize>;

std::string to_string(BlockSize entry);                     // "16", "MultipleOf(16)"
std::string to_string(std::span<const BlockSize> entries);  // "[16, MultipleOf(32)]"

// A multiple of any entry, also of a plain size; an empty list and a block size that is not given
// are supported.
bool supports_block_size(std::span<const BlockSize> entries, std::optional<int> block_size);

// `preferred` when it is supported, else the smallest entry.
int preferred_block_size(std::span<const BlockSize> entries, int preferred);

// Sizes in both lists, in the order of `outer`, then of `inner`; the first of equal entries stays.
// Throws Error when a least common multiple does not fit an int.
BlockSizes intersect_block_sizes(std::span<const BlockSize> outer,
                                 std::span<const BlockSize> inner);

struct NamedBlockSizes {
  std::string name;
  BlockSizes sizes;
};

// The kernel block size for a manager's block size: the manager's own, else the largest plain
// entry that divides it and that all backends accept (a plain entry accepts only itself).
// None: VllmError ValueError.
int select_common_block_size(int manager_block_size, std::span<const NamedBlockSizes> backends);

}  // namespace attn
