// Inputs of questions: pure functions of (family, seed, tensor, coordinates), the same bits in
// every language. Families are kinds of data, each made to show other mistakes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "attn/host_tensor.h"
#include "attn/random.h"

namespace attn::questions {

// The number is part of every draw's counter; a published family never changes.
enum class Family : std::uint32_t {
  kUniform = 1,
  kBell = 2,
  kNeedleVisible = 3,      // one key beside the border of the mask takes nearly all the weight
  kNeedleHidden = 4,       // the same with a key just beyond the border
  kNegativeLogits = 5,     // scores near -128: a phantom key of score 0 wins
  kLargeLogits = 6,        // scores near +128
  kExactLane = 7,          // query 0, small integers: exact when a row sees 2^j keys
  kMembership = 8,         // query 0, value k is bit k mod 8 of dim k / 8: lists the visible keys
  kWeights = 9,            // softmax weights 1 ... 8
  kRepeatedKeys = 10,      // four different keys
  kCancellingValues = 11,  // values near +1 and -1 in turn
  kDenormalValues = 12,
  kExtremeValues = 13,
  kChannelOutliers = 14,
  kAllCodes = 15,        // caches of at most 8 bits: codes, not values
  kHalfUlpWeights = 16,  // weights just below a tie of bf16
  kConstantValues = 17,  // one value for all keys: the output is that value
  kPoisoned = 18,        // bell; all that is not addressed is not finite or the largest
  kPermutedBlocks = 19,  // bell; blocks out of order
};

std::string_view name(Family family);  // "needle_visible", ...

struct Source {
  Family family = Family::kBell;
  std::uint64_t seed = 0;
};

std::string where(const Source& source);  // "bell seed 0x2a"

// Coordinates of an element, whatever its tensor's memory order is.
struct Place {
  std::int64_t request = 0;
  std::int64_t position = 0;  // absolute
  std::int64_t head = 0;
  std::int64_t dim = 0;
};

// The element's words, under the family of `source` or (block tables, indices, needles,
// configuration) under family 0.
Words words_at(const Source& source, RandomTensor tensor, const Place& at);
Words plain_words_at(const Source& source, RandomTensor tensor, const Place& at);

// A code of a type of at most 8 bits, NaN and infinities made finite.
std::uint64_t random_code(const Words& words, DType type);

// Elements of query, key and value. A key with dim 0 raised is a needle. Throws Error when the
// family asks for a scale that is a power of two and `scale` is none.
class FamilyValues {
 public:
  FamilyValues(const Source& source, double scale, std::int64_t head_size_v);

  double query(const Place& at, DType type) const;
  double key(const Place& at, DType type, bool needle = false) const;
  double value(const Place& at, DType type) const;

  // One rounding to nearest even, saturating; kAllCodes: a code of its own for caches.
  std::uint64_t key_code(const Place& at, DType type, bool needle = false) const;
  std::uint64_t value_code(const Place& at, DType type) const;

 private:
  bool draws_codes(DType type) const;

  Source source_;
  double scale_;
  std::int64_t head_size_v_;
};

// A tensor whose unit at every index is element(index), rounded into `type`; `index` has one entry
// an axis.
template <class Element>
HostTensor drawn(DType type, const std::vector<std::int64_t>& shape, const Element& element) {
  HostTensor tensor(type, shape);
  std::vector<std::int64_t> index(shape.size(), 0);
  for (std::int64_t flat = 0; flat < tensor.num_units(); ++flat) {
    std::int64_t rest = flat;
    for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
      index[axis] = rest % shape[axis];
    }
    const double value = element(std::as_const(index));
    const bool infinite = value - value != 0.0 && value == value;
    tensor.set_code(flat,
                    encode(type, value, infinite ? Overflow::kInfinity : Overflow::kSaturate));
  }
  return tensor;
}

// i32 [n].
HostTensor int_tensor(const std::vector<std::int64_t>& values);

// i32 [n + 1]: 0 and the running sums.
HostTensor starts(const std::vector<std::int64_t>& lengths);

// Scales: f32 of the map `scale`, request and head as coordinates.
HostTensor drawn_scale(const Source& source, RandomTensor tensor);  // [1]
HostTensor drawn_scale_per_head(const Source& source, RandomTensor tensor, std::int64_t num_heads);
HostTensor drawn_scale_per_request_head(const Source& source, RandomTensor tensor,
                                        std::int64_t num_reqs, std::int64_t num_heads);

}  // namespace attn::questions
