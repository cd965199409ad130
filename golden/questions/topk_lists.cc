#include "golden/questions/topk_lists.h"

#include <vector>

namespace attn::questions {

HostTensor draw_lists(const LatentSetup& setup, std::int64_t length,
                      const std::function<std::uint32_t(std::int64_t request)>& count_of) {
  std::vector<Place> rows;
  for (std::size_t r = 0; r < setup.query_lens.size(); ++r) {
    for (std::int64_t i = 0; i < setup.query_lens[r]; ++i) {
      rows.push_back({.request = static_cast<std::int64_t>(r), .position = i});
    }
  }
  return drawn(DType::kI32, {static_cast<std::int64_t>(rows.size()), length},
               [&](const std::vector<std::int64_t>& at) {
                 Place place = rows[static_cast<std::size_t>(at[0])];
                 place.dim = at[1];
                 const Words words =
                     plain_words_at(setup.source, RandomTensor::kTopkIndices, place);
                 if (words[1] >> 29 == 0) return -1.0;
                 return static_cast<double>(below(words, count_of(place.request)));
               });
}

HostTensor draw_positions(const LatentSetup& setup, std::int64_t length) {
  return draw_lists(setup, length, [&](std::int64_t request) {
    return static_cast<std::uint32_t>(setup.seq_lens[static_cast<std::size_t>(request)]);
  });
}

}  // namespace attn::questions
