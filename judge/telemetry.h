// Figures of merit that decide nothing, gathered row by row.
#pragma once

#include <cstdint>
#include <span>

#include "attn/judgement.h"

namespace attn::judge {

class TelemetryTally {
 public:
  explicit TelemetryTally(DType stored);  // type of the answer; floating

  // Finite elements only, spans of one length.
  void add(std::span<const double> expected, std::span<const double> actual);

  Telemetry result() const;

 private:
  double squared_errors_ = 0.0, squared_expected_ = 0.0, squared_actual_ = 0.0, products_ = 0.0;
  double max_abs_ = 0.0, max_rel_ = 0.0;
  double max_in_binades_ = 0.0;    // largest |a - e| over the power of two at or below |e|
  double units_in_binade_;         // of the stored type
  std::uint64_t lowest_exponent_;  // biased as in double, of the stored type's smallest normal
};

}  // namespace attn::judge
