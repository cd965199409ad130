// Memory of the tensors of a test. Views stay valid as long as the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "attn/dtype.h"
#include "attn/view.h"

namespace attn {

class TensorPool {
 public:
  MutableTensorView zeros(DType type, const std::vector<std::int64_t>& shape) {
    MutableTensorView view = contiguous(static_cast<void*>(nullptr), type, shape);
    // Exactly as many bytes as the tensor has, so that a sanitizer sees a read beyond.
    memory_.emplace_back(static_cast<std::size_t>(view.num_units() * unit_bytes(type)));
    view.data = memory_.back().data();
    return view;
  }

  // In C order, one code for every unit (a pair of the packed types).
  MutableTensorView codes(DType type, const std::vector<std::int64_t>& shape,
                          std::span<const std::uint64_t> units) {
    const MutableTensorView view = zeros(type, shape);
    auto* to = static_cast<std::byte*>(view.data);
    for (const std::uint64_t unit : units) {
      store_code(type, unit, to);
      to += unit_bytes(type);
    }
    return view;
  }

  MutableTensorView values(DType type, const std::vector<std::int64_t>& shape,
                           const std::vector<double>& elements) {
    std::vector<std::uint64_t> units;
    for (const double element : elements) {
      units.push_back(encode(type, element, Overflow::kInfinity));
    }
    return codes(type, shape, units);
  }

 private:
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace attn
