#include "reference/second/key_set.h"

#include <algorithm>

namespace attn::second {

KeySet::KeySet(std::int64_t begin, std::int64_t end) {
  if (begin < end) intervals_.push_back({begin, end});
}

KeySet operator&(const KeySet& a, const KeySet& b) {
  KeySet both;
  for (const Interval& x : a.intervals_) {
    for (const Interval& y : b.intervals_) {
      const Interval common{std::max(x.begin, y.begin), std::min(x.end, y.end)};
      if (common.begin < common.end) both.intervals_.push_back(common);
    }
  }
  return both;
}

KeySet operator|(const KeySet& a, const KeySet& b) {
  std::vector<Interval> parts = a.intervals_;
  parts.insert(parts.end(), b.intervals_.begin(), b.intervals_.end());
  std::sort(parts.begin(), parts.end(),
            [](const Interval& x, const Interval& y) { return x.begin < y.begin; });
  KeySet either;
  for (const Interval& part : parts) {
    if (!either.intervals_.empty() && part.begin < either.intervals_.back().end) {
      either.intervals_.back().end = std::max(either.intervals_.back().end, part.end);
    } else {
      either.intervals_.push_back(part);
    }
  }
  return either;
}

}  // namespace attn::second
