// Where an answer goes, and in which form a log-sum-exp is written.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "attn/problem.h"
#include "attn/view.h"

namespace attn {

enum class LseBase : std::uint8_t { kE, k2 };
enum class LseLayout : std::uint8_t { kHeadsTokens, kTokensHeads };
enum class EmptyLse : std::uint8_t { kMinusInfinity, kPlusInfinity };

// Kernels disagree about these. A backend declares its form; the judge alone translates.
struct LseForm {
  LseBase base = LseBase::kE;
  LseLayout layout = LseLayout::kHeadsTokens;
  EmptyLse empty = EmptyLse::kMinusInfinity;  // of a row that sees no key and has no finite sink
  bool includes_sink = true;  // when false the problem's lse_includes_sink is ignored

  bool operator==(const LseForm&) const = default;
};

// Caller-owned; an absent view is not answered. Every element of a present view is written, also
// rows that see no key; nothing outside is touched (strides may leave gaps).
struct Outputs {
  MutableTensorView
      out;  // [num_tokens, num_heads, head_size_v], a dtype of Capabilities::output_dtypes
  MutableTensorView lse;  // [num_heads, num_tokens] or as `lse_form.layout` says, same dtype as out
  MutableTensorView
      out_codes;  // f8_e4m3fn [num_tokens, num_heads, head_size_v], with AttentionOp::output_scale
  MutableTensorView logits;  // [num_tokens, num_keys], indexer
  // Caches after a write, whole tensors, in the type of the input.
  MutableTensorView key_cache, value_cache, kv_cache, k_scale_cache, v_scale_cache;
  // Conditioning sums (attn/conditioning.h), from backends with Capabilities::conditioning.
  MutableTensorView cond_pv, cond_pav, cond_puv, cond_v, cond_row, cond_o, cond_ix;
  LseForm lse_form;
};

// One output of an operation: its name in case and result files, its place in Outputs, what it must
// be.
struct OutputSpec {
  std::string_view name;
  MutableTensorView Outputs::*view;
  DType dtype;
  std::vector<std::int64_t> shape;
  TensorView before;  // of a cache: the one before the write; else absent
};

// Every output the operation has, in the order of their names. `computed` is the type a backend
// computes in: that of out, lse and logits. Caches after a write have the type and shape of the one
// before.
std::vector<OutputSpec> output_specs(const AttentionProblem& problem, DType computed,
                                     LseLayout layout = LseLayout::kHeadsTokens);

// Throws Error when a present output is not what output_specs says, or is none of the operation's.
// Backends call it before they write; `conditioning` says whether they answer conditioning sums.
void check_outputs(const AttentionProblem& problem, const Outputs& outputs, DType computed,
                   bool conditioning = false);

}  // namespace attn
