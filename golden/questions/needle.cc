#include "golden/questions/needle.h"

#include <vector>

#include "golden/questions/visible.h"

namespace attn::questions {
namespace {

// Around which kernels cut the keys into tiles and blocks.
constexpr std::int64_t kTile = 16;

std::vector<bool> visible_keys(const AttentionOp& op, std::int64_t request, std::int64_t row) {
  std::vector<bool> visible;
  for (std::int64_t k = 0; k < op.seq_len(request); ++k) {
    visible.push_back(sees(op, request, 0, row, k));
  }
  return visible;
}

// True when a neighbour's visibility is `wanted`; one that does not exist counts as hidden.
bool has_neighbour(const std::vector<bool>& visible, std::size_t k, bool wanted) {
  const bool left = k > 0 && visible[k - 1];
  const bool right = k + 1 < visible.size() && visible[k + 1];
  return left == wanted || right == wanted;
}

std::vector<std::int64_t> candidates(const std::vector<bool>& visible, bool among_visible) {
  std::vector<std::int64_t> keys;
  for (std::size_t k = 0; k < visible.size(); ++k) {
    const auto key = static_cast<std::int64_t>(k);
    const bool at_tile = among_visible && (key % kTile == 0 || key % kTile == kTile - 1);
    if (visible[k] == among_visible && (at_tile || has_neighbour(visible, k, !among_visible))) {
      keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace

std::optional<std::int64_t> find_needle(const AttentionOp& op, const Source& source,
                                        std::int64_t request, std::int64_t drawn_as) {
  const bool hidden = source.family == Family::kNeedleHidden;
  if (!hidden && source.family != Family::kNeedleVisible) return std::nullopt;
  if (op.query_len(request) == 0) return std::nullopt;
  const Words words = plain_words_at(source, RandomTensor::kNeedle, {.request = drawn_as});
  const std::int64_t row = below(words, static_cast<std::uint32_t>(op.query_len(request)));
  const std::vector<bool> visible = visible_keys(op, request, row);
  std::vector<std::int64_t> keys;
  if (hidden) keys = candidates(visible, false);
  if (keys.empty()) keys = candidates(visible, true);
  if (keys.empty()) return std::nullopt;
  return keys[(std::uint64_t{words[1]} * keys.size()) >> 32];
}

}  // namespace attn::questions
