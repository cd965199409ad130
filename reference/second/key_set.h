// Sets of key positions, as the rules of a mask are combined: unions and intersections.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace attn::second {

// Positions [begin, end).
struct Interval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

class KeySet {
 public:
  static constexpr std::int64_t kNoBound = std::numeric_limits<std::int64_t>::max();

  KeySet() = default;  // the empty set
  KeySet(std::int64_t begin, std::int64_t end);
  static KeySet from(std::int64_t begin) { return {begin, kNoBound}; }
  static KeySet before(std::int64_t end) { return {-kNoBound, end}; }

  // Disjoint, ascending, none empty. Intervals that touch may stay apart.
  const std::vector<Interval>& intervals() const { return intervals_; }

  friend KeySet operator&(const KeySet& a, const KeySet& b);
  friend KeySet operator|(const KeySet& a, const KeySet& b);

 private:
  std::vector<Interval> intervals_;
};

}  // namespace attn::second
