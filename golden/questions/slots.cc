#include "golden/questions/slots.h"

#include <vector>

namespace attn::questions {

HostTensor draw_slots(const Source& source, std::int64_t num_slots, std::int64_t num_tokens) {
  constexpr std::uint64_t kFirstSkip = std::uint64_t{1} << 32;
  const std::vector<std::int32_t> order = random_permutation(
      source.seed, static_cast<std::int32_t>(num_slots), RandomTensor::kSlotMapping, 0);
  return drawn(DType::kI64, {num_tokens}, [&](const std::vector<std::int64_t>& at) {
    const Words words = random_words(source.seed, kFirstSkip + static_cast<std::uint64_t>(at[0]),
                                     RandomTensor::kSlotMapping, 0);
    return words[1] >> 29 == 0 ? -1.0 : static_cast<double>(order[static_cast<std::size_t>(at[0])]);
  });
}

}  // namespace attn::questions
