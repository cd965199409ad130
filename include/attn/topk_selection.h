// Whether a sparse attention's choice of keys is one of the right ones.
#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace attn {

// Why `chosen` is not a choice of the chosen.size() highest of `logits` (indexer logits of one
// token, -inf outside its range); empty when it is. Order does not matter, nor which of equal
// logits is chosen: what must agree is the multiset of chosen logits. -1 stands for "none" and is
// right only as often as there are too few logits above -inf. Throws Error when a logit is NaN.
std::string topk_offence(std::span<const double> logits, std::span<const std::int32_t> chosen);

}  // namespace attn
