// Backends that answer problems (attn/backend.h) as backends of an engine, which answer batches;
// and the conversion between a batch and a problem.
#pragma once

#include <cstdint>
#include <memory>

#include "attn/attention_backend.h"
#include "attn/backend.h"
#include "attn/host_tensor.h"
#include "attn/metadata.h"
#include "attn/problem.h"

namespace attn {

// A problem, and the small tensors that were made for it. Its data tensors are somebody else's.
struct BatchProblem {
  TensorStore memory;
  AttentionProblem problem;
};

// What a layer has to compute for a batch. Lengths are those of the device's query_start_loc; a row
// without query tokens answers nothing.
//
//   causal        the batch's, for every request or per request
//   window_left   sliding_window - 1; where a row may be non-causal, window_right too
//   rswa          with rswa_prefix_lens and a sliding_window: rswa_window = sliding_window, alone
//   ranges        mm_req_doc_ranges without void ranges; none when nothing is left
//   keys          block_table and kv_cache; of encoder and encoder_only layers the key and value of
//                 this step, which are all there is to see; of encoder_decoder layers
//                 encoder_seq_lens of the cache, without a mask
//   output_scale  when `output` is f8_e4m3fn: out_codes are asked
//
// Throws Error when the batch is invalid (attn/metadata.h), when the arguments do not fit it or the
// layer, and for what no problem expresses: context parallel shares, image ranges together with
// R-SWA, a block scale of the output.
BatchProblem attention_problem(const CommonAttentionMetadata& batch, const ImplArguments& layer,
                               const ForwardArguments& forward);

// A problem as routing sees it: lengths with exact bounds, causal flags, image ranges, R-SWA
// prefixes; the block table and the slots of the query tokens where the cache is paged, else no
// columns and -1. A problem does not tell prompts: a row counts as prefilling when it has several
// tokens or no context. Requests with more tokens than keys stay as they are, although
// validate(batch) refuses them.
CommonAttentionMetadata batch_of(const AttentionOp& op);

// One request of it alone.
CommonAttentionMetadata batch_of_request(const AttentionOp& op, std::int64_t request);

// The layer of a problem, for making policies: one layer, whose window counts as clamped with
// mm_prefix_clamp.
BuilderArguments builder_arguments_of(const AttentionOp& op);

// `backend` for batches. Its metadata keeps a copy of the batch, which update_block_table replaces
// the table and the slots of; builders share workspaces. Plans are kept with the metadata and serve
// every layer with the same arguments and shapes. It can be captured into no graph: a plan is good
// for one set of lengths (attn/backend.h), and a graph is replayed with others.
//
// do_kv_cache_update writes with `backend` when that answers cache_write, else with `cache_writer`;
// Error when neither does. The writer must allow that its outputs are the tensors it reads. Image
// ranges that add no key to any row are kept from a backend without image masks.
//
// make_impl refuses what the capabilities lack by VllmError TypeError, as vLLM's constructors do.
AttentionBackendPtr make_executable_backend(std::shared_ptr<const Backend> backend,
                                            std::shared_ptr<const Backend> cache_writer = nullptr);

}  // namespace attn
