#include "attn/guarded_tensor.h"

#include <fmt/core.h>

#include <limits>
#include <utility>

#include "attn/error.h"

namespace attn {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::byte kPoison{0xA5};

// What a guard byte holds. Neighbours differ, and so do bytes a power of two apart, so that a row
// copied to the wrong place shows.
std::byte guard_byte(std::int64_t offset) {
  auto mixed = static_cast<std::uint64_t>(offset) * 0x9E3779B97F4A7C15u;
  return static_cast<std::byte>(mixed >> 56);
}

bool has_nan(DType dtype) { return is_floating(dtype) && dtype != DType::kF4E2M1; }

}  // namespace

GuardedTensor::GuardedTensor(std::string name, DType dtype, std::vector<std::int64_t> shape)
    : name_(std::move(name)) {
  for (const std::int64_t length : shape) {
    if (length < 0) throw Error(fmt::format("{} has an axis of length {}", name_, length));
  }
  view_ = contiguous(static_cast<void*>(nullptr), dtype, shape);
  const std::int64_t units = view_.num_units();
  bytes_ = units * unit_bytes(dtype);
  memory_.resize(static_cast<std::size_t>(2 * kGuardBytes + kAlignment + bytes_));
  const auto address = reinterpret_cast<std::uintptr_t>(memory_.data()) + kGuardBytes;
  start_ =
      kGuardBytes + static_cast<std::int64_t>((kAlignment - address % kAlignment) % kAlignment);
  view_.data = memory_.data() + start_;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(memory_.size()); ++i) {
    const std::int64_t offset = i - start_;
    const bool payload = offset >= 0 && offset < bytes_;
    memory_[static_cast<std::size_t>(i)] = payload ? kPoison : guard_byte(offset);
  }
  if (!has_nan(dtype)) return;
  const std::uint64_t nan =
      encode(dtype, std::numeric_limits<double>::quiet_NaN(), Overflow::kInfinity);
  for (std::int64_t i = 0; i < units; ++i) {
    store_code(dtype, nan, memory_.data() + start_ + i * unit_bytes(dtype));
  }
}

std::string GuardedTensor::damage_between(const char* where, std::int64_t first,
                                          std::int64_t last) const {
  std::int64_t count = 0;
  std::int64_t at = 0;
  for (std::int64_t offset = first; offset < last; ++offset) {
    if (memory_[static_cast<std::size_t>(start_ + offset)] == guard_byte(offset)) continue;
    if (count++ == 0) at = offset;
  }
  if (count == 0) return "";
  return count == 1
             ? fmt::format("1 byte {} {} was written, at {}", where, name_, at)
             : fmt::format("{} bytes {} {} were written, the first at {}", count, where, name_, at);
}

std::string GuardedTensor::damage() const {
  const std::string before = damage_between("before", -start_, 0);
  const std::string behind =
      damage_between("behind", bytes_, static_cast<std::int64_t>(memory_.size()) - start_);
  return before + (before.empty() || behind.empty() ? "" : "; ") + behind;
}

}  // namespace attn
