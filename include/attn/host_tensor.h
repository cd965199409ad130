// A tensor that owns its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "attn/view.h"

namespace attn {

// Dense, C order, in an allocation of exactly its size (a sanitizer sees the first byte beyond).
// Default-constructed: absent. Views stay valid when a tensor is moved, not when it is copied.
class HostTensor {
 public:
  HostTensor() = default;
  HostTensor(DType dtype, std::vector<std::int64_t> shape);  // all codes 0

  // `values` in C order, each as set() stores it. Throws Error unless there is one for every unit.
  HostTensor(DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& values);

  bool present() const { return !shape_.empty(); }
  DType dtype() const { return dtype_; }
  const std::vector<std::int64_t>& shape() const { return shape_; }
  std::int64_t num_units() const;
  const std::vector<std::byte>& bytes() const { return bytes_; }

  TensorView view() const;  // absent when the tensor is
  MutableTensorView view();

  std::uint64_t code(std::int64_t flat) const;  // by position in C order
  void set_code(std::int64_t flat, std::uint64_t code);
  void fill(std::uint64_t code);

  // One index per axis, not checked. A finite value saturates, an infinite one stays infinite where
  // the type has infinities.
  template <class... Index>
  double value(Index... index) const {
    return value_at(view(), index...);
  }
  template <class... Index>
  void set(double value, Index... index) {
    store_code(dtype_, rounded_code(dtype_, value), view().at(index...));
  }

  bool operator==(const HostTensor&) const = default;

 private:
  static std::uint64_t rounded_code(DType dtype, double value);

  friend void copy_units(const HostTensor& from, std::int64_t first, std::int64_t count,
                         HostTensor& to, std::int64_t at);

  DType dtype_ = DType::kF32;
  std::vector<std::int64_t> shape_;
  std::vector<std::byte> bytes_;
};

// Units [first, first + length) of one axis, copied.
HostTensor sliced(const HostTensor& tensor, int axis, std::int64_t first, std::int64_t length);

// `count` units between two tensors of one type, by positions in C order.
void copy_units(const HostTensor& from, std::int64_t first, std::int64_t count, HostTensor& to,
                std::int64_t at);

// Keeps tensors alive for the views that look at them, also when it is moved.
class TensorStore {
 public:
  TensorStore() = default;
  TensorStore(TensorStore&&) = default;
  TensorStore& operator=(TensorStore&&) = default;

  TensorView keep(HostTensor tensor);  // absent when the tensor is

 private:
  std::vector<HostTensor> tensors_;
};

}  // namespace attn
