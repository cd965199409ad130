// Membership in a list.
#pragma once

#include <algorithm>
#include <iterator>

namespace attn {

template <class List, class Item>
bool contains(const List& list, const Item& item) {
  return std::find(std::begin(list), std::end(list), item) != std::end(list);
}

}  // namespace attn
