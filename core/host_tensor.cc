#include "attn/host_tensor.h"

#include <fmt/core.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "attn/error.h"

namespace attn {
namespace {

std::int64_t product(const std::vector<std::int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

}  // namespace

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      bytes_(static_cast<std::size_t>(product(shape_) * unit_bytes(dtype))) {}

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape,
                       const std::vector<double>& values)
    : HostTensor(dtype, std::move(shape)) {
  if (static_cast<std::int64_t>(values.size()) != num_units()) {
    throw Error(fmt::format("{} values for a tensor of {} units", values.size(), num_units()));
  }
  for (std::size_t i = 0; i < values.size(); ++i) {
    set_code(static_cast<std::int64_t>(i), rounded_code(dtype, values[i]));
  }
}

std::uint64_t HostTensor::rounded_code(DType dtype, double value) {
  return encode(dtype, value, std::isinf(value) ? Overflow::kInfinity : Overflow::kSaturate);
}

std::int64_t HostTensor::num_units() const { return present() ? product(shape_) : 0; }

TensorView HostTensor::view() const {
  return present() ? contiguous(bytes_.data(), dtype_, shape_) : TensorView{};
}

MutableTensorView HostTensor::view() {
  return present() ? contiguous(bytes_.data(), dtype_, shape_) : MutableTensorView{};
}

std::uint64_t HostTensor::code(std::int64_t flat) const {
  return load_code(dtype_, bytes_.data() + flat * unit_bytes(dtype_));
}

void HostTensor::set_code(std::int64_t flat, std::uint64_t code) {
  store_code(dtype_, code, bytes_.data() + flat * unit_bytes(dtype_));
}

void HostTensor::fill(std::uint64_t code) {
  for (std::int64_t i = 0; i < num_units(); ++i) set_code(i, code);
}

HostTensor sliced(const HostTensor& tensor, int axis, std::int64_t first, std::int64_t length) {
  std::vector<std::int64_t> shape = tensor.shape();
  const auto at = shape.begin() + axis;
  const std::int64_t inner =
      std::accumulate(at + 1, shape.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t outer =
      std::accumulate(shape.begin(), at, std::int64_t{1}, std::multiplies<>());
  const std::int64_t old_length = *at;
  *at = length;
  HostTensor part(tensor.dtype(), shape);
  for (std::int64_t o = 0; o < outer; ++o) {
    copy_units(tensor, (o * old_length + first) * inner, length * inner, part, o * length * inner);
  }
  return part;
}

void copy_units(const HostTensor& from, std::int64_t first, std::int64_t count, HostTensor& to,
                std::int64_t at) {
  const std::int64_t size = unit_bytes(from.dtype_);
  if (count == 0) return;
  std::memcpy(to.bytes_.data() + at * size, from.bytes_.data() + first * size,
              static_cast<std::size_t>(count * size));
}

TensorView TensorStore::keep(HostTensor tensor) {
  tensors_.push_back(std::move(tensor));
  return std::as_const(tensors_.back()).view();
}

}  // namespace attn
