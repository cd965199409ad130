// An answer to any operation, owned: tensors by their names in attn/output.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "attn/host_tensor.h"

namespace attn::property_tests {

using Tensors = std::map<std::string, HostTensor, std::less<>>;

// Every output in F64; with `sums` the conditioning sums too. Memory was poisoned before. Throws
// Error when the problem is invalid or not supported.
Tensors answer_operation(const Backend& backend, const Operation& operation, bool sums = false);

// The same from the exact evaluation. Where a place of out_codes is undecided there are none of
// them; throws Error when it cannot decide anything else.
Tensors answer_operation_exactly(const Operation& operation);

// The same codes (NaN only with NaN, any NaN with any), tensor by tensor; empty, or the first
// place where they differ.
std::string bit_difference(const Tensors& a, const Tensors& b);

// `count` tokens from `first_a` of a and from `first_b` of b: of tensors [tokens, ...], and of lse
// [heads, tokens].
std::string bit_difference(const Tensors& a, std::int64_t first_a, const Tensors& b,
                           std::int64_t first_b, std::int64_t count);

// Whether two codes of a type say the same.
bool same_code(DType dtype, std::uint64_t a, std::uint64_t b);

// The indices of the unit at `flat`, for messages: "[2,0,5]".
std::string place_in(const HostTensor& tensor, std::int64_t flat);

}  // namespace attn::property_tests
