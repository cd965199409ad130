#include "attn/batch_reorder.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "attn/error.h"
#include "composite/row_fields.h"

namespace attn {
namespace {

using Positions = std::vector<std::int32_t>;

int region(const RequestProgress& requests, std::size_t i, std::int32_t decode_threshold) {
  if (requests.num_computed_tokens[i] == 0) return 3;                 // prefill
  if (requests.num_scheduled_tokens[i] > decode_threshold) return 2;  // long extend
  return requests.num_computed_tokens[i] < requests.num_prompt_tokens[i] ? 1 : 0;
}

// Positions whose region is not the one that is to be there, ascending.
Positions misplaced(const std::vector<int>& regions) {
  std::vector<int> target = regions;
  std::sort(target.begin(), target.end());
  Positions positions;
  for (std::size_t i = 0; i < regions.size(); ++i) {
    if (regions[i] != target[i]) positions.push_back(static_cast<std::int32_t>(i));
  }
  return positions;
}

}  // namespace

BatchReorder reorder_batch(const RequestProgress& requests, std::int32_t decode_threshold) {
  const std::size_t n = requests.num_scheduled_tokens.size();
  if (requests.num_computed_tokens.size() != n || requests.num_prompt_tokens.size() != n) {
    throw Error(fmt::format(
        "num_scheduled_tokens has {} entries, num_computed_tokens {}, num_prompt_tokens {}", n,
        requests.num_computed_tokens.size(), requests.num_prompt_tokens.size()));
  }
  std::vector<int> regions(n);
  for (std::size_t i = 0; i < n; ++i) regions[i] = region(requests, i, decode_threshold);
  const Positions places = misplaced(regions);
  Positions sources = places;
  std::stable_sort(sources.begin(), sources.end(), [&](std::int32_t a, std::int32_t b) {
    return regions[index_of(a)] < regions[index_of(b)];
  });
  Positions destination(n);
  for (std::size_t i = 0; i < sources.size(); ++i) destination[index_of(sources[i])] = places[i];

  BatchReorder reorder;
  reorder.order.resize(n);
  std::iota(reorder.order.begin(), reorder.order.end(), 0);
  for (const std::int32_t source : sources) {
    // Follows the cycle through `source`; what is in place points at itself.
    std::int32_t place = destination[index_of(source)];
    while (place != source) {
      std::swap(reorder.order[index_of(source)], reorder.order[index_of(place)]);
      reorder.swaps.emplace_back(source, place);
      place = std::exchange(destination[index_of(place)], place);
    }
  }
  return reorder;
}

}  // namespace attn
