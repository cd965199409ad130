#include "golden/questions/fill.h"

#include <utility>

#include "core/special_values.h"

namespace attn::questions {

std::uint64_t fill_code(Fill fill, DType type) {
  if (fill == Fill::kZero) return 0;
  if (type == DType::kF4E2M1) return 0x77;  // the largest, twice
  if (type == DType::kI8) return fill == Fill::kMinusInfinity ? 0x80 : 0x7F;
  switch (fill) {
    case Fill::kPlusInfinity:
      return encode(type, kInf, Overflow::kInfinity);
    case Fill::kMinusInfinity:
      return encode(type, -kInf, Overflow::kInfinity);
    case Fill::kLargest:
      return encode(type, kInf, Overflow::kSaturate);
    default:
      return encode(type, kNaN, Overflow::kInfinity);
  }
}

HostTensor filled(DType type, std::vector<std::int64_t> shape, Fill fill) {
  HostTensor tensor(type, std::move(shape));
  tensor.fill(fill_code(fill, type));
  return tensor;
}

Fill drawn_fill(const Source& source) {
  constexpr Fill kFills[] = {Fill::kNaN, Fill::kPlusInfinity, Fill::kMinusInfinity, Fill::kLargest};
  const Words words =
      random_words(source.seed, std::uint64_t{1} << 32, RandomTensor::kConfiguration, 0);
  return kFills[below(words, 4)];
}

}  // namespace attn::questions
