// The rounded elements of one row, and the rule that decides whether they may be stored.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "attn/view.h"
#include "golden/exact/real.h"

namespace attn::exact {

// Collects the elements of one row, evaluated with one precision. An absent view takes nothing.
class RoundedRow {
 public:
  using Index = std::initializer_list<std::int64_t>;

  // `size` bounds the terms that x was summed from (golden/exact/rounding.h).
  void nearest(std::string_view name, const MutableTensorView& view, Index at, const Real& x,
               const Real& size);
  void upward(std::string_view name, const MutableTensorView& view, Index at, const Real& x);
  void downward(std::string_view name, const MutableTensorView& view, Index at, const Real& x);
  void out_code(std::string_view name, const MutableTensorView& view, Index at,
                const Real& quotient, const Real& size);

 private:
  friend int answer_row(const std::function<RoundedRow(int bits)>& evaluate);

  struct Element {
    std::string_view name;
    MutableTensorView view;
    std::int64_t at[kMaxRank];
    std::uint64_t code;
    bool cancels;  // see golden/exact/rounding.h
    bool refused;  // see OutCode
  };

  Element& add(std::string_view name, const MutableTensorView& view, Index at, std::uint64_t code);

  static std::string place(const Element& e);  // "out[0,1,2]"
  void store() const;

  std::vector<Element> elements_;
};

// Evaluates with 200 bits, 400 and so on until two in a row give the same codes; stores them and
// returns the bits of the last. A 0 that is left of terms which cancel is believed from 1600 bits
// on: fewer may have lost what is left. Throws Error, naming an element, when 6400 do not suffice
// or an element is refused; then nothing is stored.
int answer_row(const std::function<RoundedRow(int bits)>& evaluate);

// answer_row for every i in [0, count), in parallel. Returns the most bits that were needed, 0
// without rows.
int answer_rows(std::int64_t count,
                const std::function<RoundedRow(std::int64_t i, int bits)>& evaluate);

}  // namespace attn::exact
