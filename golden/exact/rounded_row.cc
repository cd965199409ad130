#include "golden/exact/rounded_row.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "attn/error.h"
#include "attn/parallel.h"
#include "golden/exact/rounding.h"

namespace attn::exact {
namespace {

constexpr int kFirstBits = 200;
constexpr int kZeroBits = 1600;  // what these lose of terms below 2^485 is below the least double
constexpr int kMostBits = 6400;

}  // namespace

RoundedRow::Element& RoundedRow::add(std::string_view name, const MutableTensorView& view, Index at,
                                     std::uint64_t code) {
  Element element{name, view, {}, code, false, false};
  std::copy(at.begin(), at.end(), element.at);
  return elements_.emplace_back(element);
}

void RoundedRow::nearest(std::string_view name, const MutableTensorView& view, Index at,
                         const Real& x, const Real& size) {
  if (!view.present()) return;
  add(name, view, at, std::bit_cast<std::uint64_t>(to_f64(x, size))).cancels =
      exact::cancels(x, size);
}

void RoundedRow::upward(std::string_view name, const MutableTensorView& view, Index at,
                        const Real& x) {
  if (!view.present()) return;
  add(name, view, at,
      view.dtype == DType::kF32 ? std::bit_cast<std::uint32_t>(to_f32_upward(x))
                                : std::bit_cast<std::uint64_t>(to_f64_upward(x)));
}

void RoundedRow::downward(std::string_view name, const MutableTensorView& view, Index at,
                          const Real& x) {
  if (view.present()) add(name, view, at, std::bit_cast<std::uint64_t>(to_f64_downward(x)));
}

void RoundedRow::out_code(std::string_view name, const MutableTensorView& view, Index at,
                          const Real& quotient, const Real& size) {
  if (!view.present()) return;
  const OutCode rounded = to_out_code(quotient, size);
  Element& element = add(name, view, at, rounded.code);
  element.cancels = exact::cancels(quotient, size);
  element.refused = rounded.refused;
}

std::string RoundedRow::place(const Element& e) {
  return fmt::format("{}[{}]", e.name, fmt::join(e.at, e.at + e.view.rank, ","));
}

void RoundedRow::store() const {
  for (const Element& e : elements_) {
    if (!e.refused) continue;
    throw Error(fmt::format("{} is undecided: out / output_scale lies within 2^-40 of a boundary",
                            place(e)));
  }
  for (const Element& e : elements_) {
    std::int64_t offset = 0;
    for (int axis = 0; axis < e.view.rank; ++axis) offset += e.at[axis] * e.view.stride_bytes[axis];
    store_code(e.view.dtype, e.code, static_cast<std::byte*>(e.view.data) + offset);
  }
}

int answer_row(const std::function<RoundedRow(int bits)>& evaluate) {
  RoundedRow before = evaluate(kFirstBits);
  for (int bits = 2 * kFirstBits; bits <= kMostBits; bits *= 2) {
    RoundedRow now = evaluate(bits);
    const bool last = 2 * bits > kMostBits;
    std::size_t i = 0;
    while (i < now.elements_.size() && now.elements_[i].code == before.elements_[i].code &&
           (bits >= kZeroBits || !now.elements_[i].cancels)) {
      ++i;
    }
    if (i == now.elements_.size()) {
      now.store();
      return bits;
    }
    if (last) {
      throw Error(fmt::format("{} does not round to the same bytes with {} and {} bits",
                              RoundedRow::place(now.elements_[i]), bits / 2, bits));
    }
    before = std::move(now);
  }
  return 0;  // not reached: the last round returns or throws
}

int answer_rows(std::int64_t count,
                const std::function<RoundedRow(std::int64_t i, int bits)>& evaluate) {
  std::vector<int> needed(static_cast<std::size_t>(count), 0);
  parallel_for(count, [&](std::int64_t i, int) {
    const ThreadCaches caches;
    needed[static_cast<std::size_t>(i)] = answer_row([&](int bits) { return evaluate(i, bits); });
  });
  return needed.empty() ? 0 : *std::max_element(needed.begin(), needed.end());
}

}  // namespace attn::exact
