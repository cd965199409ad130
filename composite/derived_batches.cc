#include "attn/derived_batches.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "composite/row_fields.h"

namespace attn {
namespace {

using Batch = CommonAttentionMetadata;

void expect_part(const char* what, std::int32_t part, std::int32_t whole) {
  if (part < 0 || part > whole) {
    throw Error(fmt::format("{} is {}, must be in [0, {}]", what, part, whole));
  }
}

// Per row, how many of the query tokens whose logits are wanted are its own.
std::vector<std::int32_t> wanted_rows(const Batch& batch, std::span<const std::int32_t> tokens) {
  std::vector<std::int32_t> counts(batch.seq_lens.size());
  const auto& starts = batch.query_start_loc_cpu;
  for (const std::int32_t token : tokens) {
    const auto past = std::upper_bound(starts.begin(), starts.end(), token);
    ++counts[static_cast<std::size_t>(past - starts.begin() - 1)];
  }
  return counts;
}

// The wanted tokens must be the last ones of each row, row after row.
void expect_last_tokens(const Batch& batch, std::span<const std::int32_t> tokens,
                        const std::vector<std::int32_t>& counts) {
  std::size_t i = 0;
  for (std::size_t row = 0; row < counts.size(); ++row) {
    for (std::int32_t left = counts[row]; left > 0; --left, ++i) {
      const std::int32_t last = batch.query_start_loc_cpu[row + 1] - left;
      if (tokens[i] != last) {
        throw Error(fmt::format(
            "logits_indices_padded[{}] is {}, must be {}: only the last tokens of row {} are rows "
            "of a batch",
            i, tokens[i], last, row));
      }
    }
  }
}

void keep_masks(const Batch& from, Batch& to) {
  to.causal = from.causal;
  to.causal_per_req = from.causal_per_req;
  to.is_prefilling = from.is_prefilling;
  to.mm_req_doc_ranges = from.mm_req_doc_ranges;
  to.encoder_seq_lens = from.encoder_seq_lens;
  to.encoder_seq_lens_cpu = from.encoder_seq_lens_cpu;
  to.dcp_local_seq_lens = from.dcp_local_seq_lens;
  to.dcp_local_seq_lens_cpu_upper_bound = from.dcp_local_seq_lens_cpu_upper_bound;
  to.req_idx = from.req_idx;
  to.rswa_prefix_lens = from.rswa_prefix_lens;
}

}  // namespace

Batch unpadded(const Batch& batch, std::int32_t num_tokens, std::int32_t num_reqs,
               Derivation derivation) {
  validate_sizes(batch);
  expect_part("num_reqs", num_reqs, batch.num_reqs);
  expect_part("num_tokens", num_tokens, batch.num_actual_tokens);
  Batch part = sliced_rows(batch, 0, num_reqs);
  part.query_start_loc = first_of(batch.query_start_loc, num_reqs + 1);
  part.query_start_loc_cpu = first_of(batch.query_start_loc_cpu, num_reqs + 1);
  part.num_actual_tokens = num_tokens;
  part.slot_mapping = first_of(batch.slot_mapping, num_tokens);
  part.max_query_len = batch.max_query_len;
  part.max_seq_len = batch.max_seq_len;
  part.logits_indices_padded = batch.logits_indices_padded;
  part.num_logits_indices = batch.num_logits_indices;
  part.max_logits_per_req = batch.max_logits_per_req;
  if (derivation == Derivation::kVllm) {
    part.mm_req_doc_ranges.reset();
  } else if (num_tokens < part.query_start_loc.back()) {
    throw Error(fmt::format("num_tokens is {}, the first {} rows have {}", num_tokens, num_reqs,
                            part.query_start_loc.back()));
  }
  return part;
}

std::optional<Batch> fast_prefill(const Batch& batch, Derivation derivation) {
  validate_sizes(batch);
  if (batch.max_query_len == 1 || !batch.logits_indices_padded || !batch.num_logits_indices) {
    return std::nullopt;
  }
  if (!batch.max_logits_per_req) {
    throw VllmError("AssertionError", "max_logits_per_req is missing");
  }
  const auto tokens = std::span(*batch.logits_indices_padded)
                          .first(static_cast<std::size_t>(*batch.num_logits_indices));
  const std::vector<std::int32_t> counts = wanted_rows(batch, tokens);
  Batch wanted;
  wanted.query_start_loc = {0};
  for (const std::int32_t count : counts) {
    wanted.query_start_loc.push_back(wanted.query_start_loc.back() + count);
  }
  wanted.query_start_loc_cpu = wanted.query_start_loc;
  wanted.seq_lens = batch.seq_lens;
  wanted.seq_lens_cpu_upper_bound = batch.seq_lens_cpu_upper_bound;
  wanted.num_reqs = batch.num_reqs;
  wanted.num_actual_tokens = *batch.num_logits_indices;
  wanted.max_query_len = *batch.max_logits_per_req;
  wanted.max_seq_len = batch.max_seq_len;
  wanted.block_table = batch.block_table;
  wanted.slot_mapping = batch.slot_mapping;
  if (derivation == Derivation::kFaithful) {
    expect_last_tokens(batch, tokens, counts);
    keep_masks(batch, wanted);
  }
  return wanted;
}

}  // namespace attn
