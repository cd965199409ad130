// The truth a second time: written from the specification by other means than REFERENCE, so that
// one misunderstanding cannot hide in both.
#pragma once

#include <memory>

#include "attn/backend.h"

namespace attn {

// Backend `SECOND_REFERENCE`: long double, sets of positions instead of a predicate, one key at a
// time instead of gather and reduce. Answers every operation, mask, bias and cache that a case can
// hold; out, lse and logits in F64, rounded once. Honours no exec and answers no conditioning sums.
std::unique_ptr<Backend> make_second_reference_backend();

}  // namespace attn
