// A backend's answer, owned, as numbers and as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "attn/backend.h"
#include "property_tests/logical_problem.h"
#include "property_tests/memory_form.h"

namespace attn::property_tests {

// The backend gave reasons why it cannot answer.
class Unsupported : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Answer {
  std::int64_t num_tokens = 0;
  std::int64_t num_heads = 0;
  std::int64_t head_size_v = 0;
  DType dtype = DType::kF64;        // of out and lse as the backend wrote them
  std::vector<double> out;          // [num_tokens, num_heads, head_size_v]
  std::vector<double> lse;          // [num_heads, num_tokens]
  std::vector<std::uint8_t> codes;  // of out_codes, with output_scale
  ExecSpec exec;                    // what was honoured

  double out_at(std::int64_t token, std::int64_t head, std::int64_t dim) const {
    return out[static_cast<std::size_t>((token * num_heads + head) * head_size_v + dim)];
  }
  double lse_at(std::int64_t token, std::int64_t head) const {
    return lse[static_cast<std::size_t>(head * num_tokens + token)];
  }
};

// Circumstances of a run that must not reach the answer.
struct Circumstances {
  std::uint8_t outputs_before = 0xFF;    // every byte; 0xFF is NaN in every floating type
  std::uint8_t workspace_before = 0xFF;  // every byte
  const AttentionOp* prepared_for =
      nullptr;                  // the plan is made for this problem of the same shapes
  bool ran_before = false;      // with prepared_for: the plan has answered that problem
  std::int64_t output_gap = 0;  // elements behind each row of out, lse and out_codes
  bool with_out = true, with_lse = true, with_codes = true;  // else absent, and empty in Answer
};

// Throws Unsupported with the reasons, Error when the problem is invalid.
Answer answer(const Backend& backend, const AttentionOp& op, const Circumstances& = {});
Answer answer(const Backend& backend, const LogicalProblem& problem, const MemoryForm& form = {});

// The same numbers, bit by bit (NaN only with NaN), in `count` tokens from `first_a` of a and from
// `first_b` of b; empty, or what differs first.
std::string bit_difference(const Answer& a, std::int64_t first_a, const Answer& b,
                           std::int64_t first_b, std::int64_t count);
std::string bit_difference(const Answer& a, const Answer& b);

// How far two answers may be apart: |difference| <= out or lse. Infinities and NaN must match.
struct Closeness {
  double out = 0.0;
  double lse = 0.0;
};
std::string difference(const Answer& a, std::int64_t first_a, const Answer& b, std::int64_t first_b,
                       std::int64_t count, Closeness allowed);
std::string difference(const Answer& a, const Answer& b, Closeness allowed);

}  // namespace attn::property_tests
