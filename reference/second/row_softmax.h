// The softmax of one row, one key at a time.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace attn::second {

struct RowAnswer {
  std::vector<long double> out;
  long double lse = 0.0L;
};

// A running maximum, and sums relative to it that are rescaled whenever it grows (Milakov and
// Gimelshein: Online normalizer calculation for softmax, 2018). A NaN, and a logit of +inf, make
// the whole row NaN. Infinite and NaN values are kept apart from the sums: no weight, however
// small, makes them finite.
class RowSoftmax {
 public:
  explicit RowSoftmax(std::int64_t width);  // elements of a value

  // Counts one more key. `value` is called for each of its elements, but not when the logit is
  // -inf: such a key is absent.
  template <class Value>
  void add(long double logit, const Value& value) {
    if (!begin_key(logit)) return;
    for (std::int64_t j = 0; j < width(); ++j) add_element(j, value(j));
  }

  RowAnswer answer() const;  // without a sink
  RowAnswer answer(long double sink, bool lse_includes_sink) const;

 private:
  std::int64_t width() const { return static_cast<std::int64_t>(sums_.size()); }
  bool begin_key(long double logit);
  void add_element(std::int64_t j, long double value);
  long double keys_lse() const;
  std::vector<long double> quotients(long double factor, long double divisor) const;

  long double max_;
  long double weight_ = 0.0L;          // of the key being added
  long double total_ = 0.0L;           // sum of e^(logit - max)
  std::vector<long double> sums_;      // of e^(logit - max) * value, finite values
  std::vector<long double> specials_;  // sum of the other values; 0 when there is none
  bool is_nan_ = false;
};

}  // namespace attn::second
