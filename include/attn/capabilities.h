// What a backend can do, as data. Selection, composites, listings and refusals all read this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attn/output.h"
#include "attn/problem.h"

namespace attn {

// Heads of a size in [min, max] that is a multiple of multiple_of; max 0 = unlimited.
struct HeadSizeRule {
  std::int64_t min = 1;
  std::int64_t max = 0;
  std::int64_t multiple_of = 1;

  bool allows(std::int64_t size) const {
    return size >= min && (max == 0 || size <= max) && size % multiple_of == 0;
  }
  bool operator==(const HeadSizeRule&) const = default;
};

// Features of the operation `attention` beyond plain (non-)causal attention.
enum class Feature : std::uint32_t {
  kSlidingWindow = 1u << 0,       // window_left, window_right
  kSinkTokens = 1u << 1,          // sink_token_length
  kChunkedLocal = 1u << 2,        // attention_chunk_size, lookback
  kRswa = 1u << 3,                // rswa_window
  kMmPrefix = 1u << 4,            // mm_prefix_ranges
  kAttnMask = 1u << 5,            // attn_mask
  kCausalPerRequest = 1u << 6,    // causal_per_req
  kNonCausal = 1u << 7,           // causal = false
  kSoftCap = 1u << 8,             // logits_soft_cap
  kAlibi = 1u << 9,               // row, context, zero and abs forms
  kAlibiSqrt = 1u << 10,          // sqrt form
  kAttnBias = 1u << 11,           // attn_bias
  kTreeBias = 1u << 12,           // qq_bias
  kSinks = 1u << 13,              // sinks
  kPerHeadScales = 1u << 14,      // k_scale, v_scale, q_scale with more than one element
  kQueryScale = 1u << 15,         // q_scale
  kOutputQuantised = 1u << 16,    // output_scale, out_codes
  kDifferentHeadSizeV = 1u << 17  // head_size_v != head_size
};

struct Capabilities {
  std::vector<OpKind> operations;
  std::vector<std::string> contracts;  // names that Backend::contract may declare
  std::vector<DType> query_dtypes;
  std::vector<DType> kv_dtypes;  // stored types of kPlain encoding, and kI4 of kPerTokenHead
  std::vector<KvEncoding> kv_encodings;
  std::vector<KvLayout> kv_layouts;
  HeadSizeRule head_size;
  std::uint32_t features = 0;        // of Feature
  std::vector<DType> output_dtypes;  // of out and lse; the first is preferred
  LseForm lse_form;
  bool returns_lse = true;
  bool honours_splits = false;         // exec: num_splits, kv_chunk
  bool honours_common_prefix = false;  // exec: common_prefix_len
  bool honours_dcp = false;            // exec: dcp_size, dcp_interleave
  bool device_memory = false;          // data tensors may lie on a device
  bool conditioning = false;           // answers conditioning sums
  bool batch_invariant = false;        // a request's bits do not depend on the rest of the batch

  bool has(Feature feature) const { return (features & static_cast<std::uint32_t>(feature)) != 0; }
};

// Every reason why a backend with these capabilities cannot answer, in a fixed order; empty = it
// can. Texts are of the form "head_size 640 not supported", "operation mla not supported".
std::vector<std::string> unsupported_reasons(const Capabilities& capabilities,
                                             const AttentionProblem& problem);

// The part of a problem's exec that a backend with these capabilities honours.
ExecSpec honoured_exec(const Capabilities& capabilities, const ExecSpec& asked);

}  // namespace attn
