// Memory for one output that tells when something wrote beside it, or did not write it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "attn/view.h"

namespace attn {

// Owns contiguous memory with guard bytes before and behind the tensor. Every element starts as
// poison: NaN; of types without NaN, bytes 0xA5. An output that is written whole holds none of it
// afterwards. Views stay valid when it is moved.
class GuardedTensor {
 public:
  // Throws Error for a shape that is none.
  GuardedTensor(std::string name, DType dtype, std::vector<std::int64_t> shape);
  GuardedTensor(GuardedTensor&&) = default;
  GuardedTensor& operator=(GuardedTensor&&) = default;

  // The first element is aligned to 64 bytes.
  MutableTensorView view() { return view_; }
  TensorView view() const { return view_; }

  // What happened to guard bytes, in one line: "4 bytes before out were written, the first at -8;
  // 1 byte behind out was written, at 520". Offsets are in bytes from the first element on. Empty
  // when nothing did.
  std::string damage() const;

 private:
  static constexpr std::int64_t kGuardBytes = 256;  // on either side

  std::string damage_between(const char* where, std::int64_t first, std::int64_t last) const;

  std::string name_;
  std::vector<std::byte> memory_;
  std::int64_t start_ = 0;  // of the tensor in memory_
  std::int64_t bytes_ = 0;  // of the tensor
  MutableTensorView view_;
};

}  // namespace attn
