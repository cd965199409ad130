// A random operation and the memory it looks into.
#pragma once

#include "attn/host_tensor.h"
#include "attn/operation.h"

namespace attn::property_tests {

struct DrawnOperation {
  TensorStore memory;
  Operation operation;  // not yet validated

  template <class Op>
  Op& as() {
    return std::get<Op>(operation);
  }
};

}  // namespace attn::property_tests
