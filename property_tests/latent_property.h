// The suite of the relations of latent attention, which two files define.
#pragma once

#include "property_tests/operation_property.h"

namespace attn::property_tests {

class Latent : public OperationProperty {};

}  // namespace attn::property_tests
