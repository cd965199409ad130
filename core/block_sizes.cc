#include "attn/block_sizes.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "core/checks.h"
#include "core/contains.h"

namespace attn {
namespace {

std::optional<BlockSize> intersection(BlockSize a, BlockSize b) {
  if (a.multiples && b.multiples)
    return multiple_of(checks::least_common_multiple("block sizes", a.size, b.size));
  if (a.multiples) std::swap(a, b);  // now b may be MultipleOf, a is a plain size
  const bool fits = b.multiples ? a.size % b.size == 0 : a.size == b.size;
  return fits ? std::optional(a) : std::nullopt;
}

// Stricter than supports_block_size: a plain entry stands for itself only.
bool accepts(const BlockSizes& entries, int size) {
  return std::any_of(entries.begin(), entries.end(), [size](BlockSize entry) {
    return entry.multiples ? size % entry.size == 0 : size == entry.size;
  });
}

}  // namespace

std::string to_string(BlockSize entry) {
  return entry.multiples ? fmt::format("MultipleOf({})", entry.size) : std::to_string(entry.size);
}

std::string to_string(std::span<const BlockSize> entries) {
  std::string text = "[";
  for (const BlockSize entry : entries) {
    if (text.size() > 1) text += ", ";
    text += to_string(entry);
  }
  return text + "]";
}

bool supports_block_size(std::span<const BlockSize> entries, std::optional<int> block_size) {
  if (!block_size || entries.empty()) return true;
  return std::any_of(entries.begin(), entries.end(),
                     [&](BlockSize entry) { return *block_size % entry.size == 0; });
}

int preferred_block_size(std::span<const BlockSize> entries, int preferred) {
  if (supports_block_size(entries, preferred)) return preferred;
  return std::min_element(entries.begin(), entries.end(),
                          [](BlockSize a, BlockSize b) { return a.size < b.size; })
      ->size;
}

BlockSizes intersect_block_sizes(std::span<const BlockSize> outer,
                                 std::span<const BlockSize> inner) {
  BlockSizes common;
  for (const BlockSize a : outer) {
    for (const BlockSize b : inner) {
      const std::optional<BlockSize> both = intersection(a, b);
      if (both && !contains(common, *both)) {
        common.push_back(*both);
      }
    }
  }
  return common;
}

int select_common_block_size(int manager_block_size, std::span<const NamedBlockSizes> backends) {
  const auto accepted_by_all = [&](int size) {
    return std::all_of(backends.begin(), backends.end(),
                       [size](const NamedBlockSizes& b) { return accepts(b.sizes, size); });
  };
  if (accepted_by_all(manager_block_size)) return manager_block_size;
  int best = 0;
  for (const NamedBlockSizes& backend : backends) {
    for (const BlockSize entry : backend.sizes) {
      const bool divides = !entry.multiples && manager_block_size % entry.size == 0;
      if (divides && entry.size > best && accepted_by_all(entry.size)) best = entry.size;
    }
  }
  if (best != 0) return best;
  std::string lists;
  for (const NamedBlockSizes& backend : backends) {
    if (!lists.empty()) lists += "; ";
    lists += fmt::format("{}: {}", backend.name, to_string(backend.sizes));
  }
  throw VllmError("ValueError",
                  fmt::format("No common block size for {} ({}).", manager_block_size, lists));
}

}  // namespace attn
