// What a report says of a tensor beside its verdict, gathered row by row: telemetry, peers'
// policies, and whether the expectation could tell a right answer from a constant.
#pragma once

#include <span>
#include <vector>

#include "judge/peer_policies.h"
#include "judge/telemetry.h"

namespace attn::judge {

class Figures {
 public:
  Figures(DType stored, bool has_magnitudes, bool has_naive)
      : telemetry_(stored), policies_(stored, has_magnitudes, has_naive) {}

  // Rows may hold NaN and infinities; those elements are left out of every figure but their number.
  void add(const PolicyRow& row);

  // Several finite elements are expected, all of the same value.
  bool expects_a_constant() const { return policies_.expects_a_constant(); }
  bool expects_zero() const { return policies_.expects_zero(); }

  // No telemetry when every element was left out.
  void write_to(Judgement& judgement) const;

 private:
  void add_finite(const PolicyRow& row);
  void add_with_specials(const PolicyRow& row);

  TelemetryTally telemetry_;
  PolicyTally policies_;
  std::int64_t left_out_ = 0;
};

}  // namespace attn::judge
