#include "attn/metadata.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "attn/error.h"
#include "core/checks.h"

namespace attn {
namespace {

using checks::fail;
using Batch = CommonAttentionMetadata;

void expect_size(std::string_view field, std::size_t size, std::int64_t expected) {
  if (static_cast<std::int64_t>(size) != expected) {
    fail("{} has {} entries, must have {}", field, size, expected);
  }
}

template <class T>
void expect_size(std::string_view field, const std::optional<std::vector<T>>& values,
                 std::int64_t expected) {
  if (values) expect_size(field, values->size(), expected);
}

void expect_starts_of(std::string_view field, const std::vector<std::int32_t>& starts,
                      const Batch& batch) {
  expect_size(field, starts.size(), std::int64_t{batch.num_reqs} + 1);
  if (starts.front() != 0) fail("{}[0] is {}, must be 0", field, starts.front());
  for (std::size_t i = 1; i < starts.size(); ++i) {
    if (starts[i] < starts[i - 1]) {
      fail("{}[{}] is {}, less than the entry before, {}", field, i, starts[i], starts[i - 1]);
    }
  }
  if (starts.back() > batch.num_actual_tokens) {
    fail("num_actual_tokens is {}, {}[{}] is {}", batch.num_actual_tokens, field, batch.num_reqs,
         starts.back());
  }
}

void expect_table(const Batch& batch) {
  const BlockTable& table = batch.block_table;
  if (table.width < 0 || table.width > std::numeric_limits<std::int32_t>::max()) {
    fail("block_table.width is {}, must be in [0, 2^31)", table.width);
  }
  expect_size("block_table.entries", table.entries.size(), batch.num_reqs * table.width);
}

void expect_logits(const Batch& batch) {
  if (!batch.num_logits_indices) return;
  const std::int32_t count = *batch.num_logits_indices;
  if (count < 0) fail("num_logits_indices is {}, must be at least 0", count);
  if (!batch.logits_indices_padded) return;
  const std::vector<std::int32_t>& indices = *batch.logits_indices_padded;
  if (static_cast<std::size_t>(count) > indices.size()) {
    fail("num_logits_indices is {}, logits_indices_padded has {} entries", count, indices.size());
  }
  for (std::int32_t i = 0; i < count; ++i) {
    const std::int32_t index = indices[static_cast<std::size_t>(i)];
    if (index < 0 || index >= batch.query_start_loc_cpu.back()) {
      fail("logits_indices_padded[{}] is {}, must be in [0, {})", i, index,
           batch.query_start_loc_cpu.back());
    }
  }
}

void expect_all_at_least(std::string_view field, const std::vector<std::int32_t>& values,
                         std::int32_t min) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] < min) fail("{}[{}] is {}, must be at least {}", field, i, values[i], min);
  }
}

void expect_all_at_least(std::string_view field,
                         const std::optional<std::vector<std::int32_t>>& values, std::int32_t min) {
  if (values) expect_all_at_least(field, *values, min);
}

void expect_row(const Batch& batch, std::int32_t row) {
  const auto r = static_cast<std::size_t>(row);
  const std::int32_t query_len = batch.query_len(row);
  const std::int32_t seq_len = batch.seq_lens[r];
  if (query_len > batch.max_query_len) {
    fail("max_query_len is {}, row {} has query length {}", batch.max_query_len, row, query_len);
  }
  if (query_len == 0) return;  // padding
  if (seq_len < query_len) {
    fail("seq_lens[{}] is {}, less than the query length {}", row, seq_len, query_len);
  }
  if (seq_len > batch.max_seq_len) {
    fail("max_seq_len is {}, seq_lens[{}] is {}", batch.max_seq_len, row, seq_len);
  }
  if (!batch.seq_lens_cpu_upper_bound) return;
  const std::int32_t bound = (*batch.seq_lens_cpu_upper_bound)[r];
  if (bound < seq_len) {
    fail("seq_lens_cpu_upper_bound[{}] is {}, seq_lens[{}] is {}", row, bound, row, seq_len);
  }
  if (batch.is_prefilling && (*batch.is_prefilling)[r] && bound != seq_len) {
    fail("seq_lens_cpu_upper_bound[{}] is {}, must be {} in a row that is prefilling", row, bound,
         seq_len);
  }
}

void expect_disjoint(std::int32_t row, std::vector<ImageRange> ranges) {
  std::erase_if(ranges, [](ImageRange range) { return range.start >= range.end; });
  std::sort(ranges.begin(), ranges.end(),
            [](ImageRange a, ImageRange b) { return a.start < b.start; });
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    if (ranges[i].start < 0) {
      fail("mm_req_doc_ranges of row {} holds [{}, {}], which starts before position 0", row,
           ranges[i].start, ranges[i].end);
    }
    if (i > 0 && ranges[i].start <= ranges[i - 1].end) {
      fail("mm_req_doc_ranges of row {} holds [{}, {}] and [{}, {}], which overlap", row,
           ranges[i - 1].start, ranges[i - 1].end, ranges[i].start, ranges[i].end);
    }
  }
}

void expect_images(const Batch& batch) {
  if (!batch.mm_req_doc_ranges) return;
  std::vector<bool> seen(static_cast<std::size_t>(batch.num_reqs));
  for (const RowImages& images : *batch.mm_req_doc_ranges) {
    if (images.row < 0 || images.row >= batch.num_reqs) {
      fail("mm_req_doc_ranges names row {}, num_reqs is {}", images.row, batch.num_reqs);
    }
    if (seen[static_cast<std::size_t>(images.row)]) {
      fail("mm_req_doc_ranges names row {} twice", images.row);
    }
    seen[static_cast<std::size_t>(images.row)] = true;
    expect_disjoint(images.row, images.ranges);
  }
}

}  // namespace

void validate_sizes(const Batch& batch) {
  if (batch.num_reqs < 0) fail("num_reqs is {}, must be at least 0", batch.num_reqs);
  expect_starts_of("query_start_loc", batch.query_start_loc, batch);
  expect_starts_of("query_start_loc_cpu", batch.query_start_loc_cpu, batch);
  expect_size("seq_lens", batch.seq_lens.size(), batch.num_reqs);
  expect_all_at_least("seq_lens", batch.seq_lens, 0);
  expect_table(batch);
  if (batch.slot_mapping.size() < static_cast<std::size_t>(batch.num_actual_tokens)) {
    fail("slot_mapping has {} entries, num_actual_tokens is {}", batch.slot_mapping.size(),
         batch.num_actual_tokens);
  }
  expect_size("causal_per_req", batch.causal_per_req, batch.num_reqs);
  expect_size("seq_lens_cpu_upper_bound", batch.seq_lens_cpu_upper_bound, batch.num_reqs);
  expect_all_at_least("seq_lens_cpu_upper_bound", batch.seq_lens_cpu_upper_bound, 0);
  expect_size("is_prefilling", batch.is_prefilling, batch.num_reqs);
  expect_size("positions", batch.positions, batch.num_actual_tokens);
  expect_logits(batch);
  expect_size("encoder_seq_lens", batch.encoder_seq_lens, batch.num_reqs);
  expect_size("encoder_seq_lens_cpu", batch.encoder_seq_lens_cpu, batch.num_reqs);
  expect_size("dcp_local_seq_lens", batch.dcp_local_seq_lens, batch.num_reqs);
  expect_size("dcp_local_seq_lens_cpu_upper_bound", batch.dcp_local_seq_lens_cpu_upper_bound,
              batch.num_reqs);
  expect_size("req_idx", batch.req_idx, batch.num_reqs);
  expect_size("rswa_prefix_lens", batch.rswa_prefix_lens, batch.num_reqs);
}

void validate(const Batch& batch) {
  validate_sizes(batch);
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) expect_row(batch, row);
  for (std::size_t i = 0; i < batch.slot_mapping.size(); ++i) {
    if (batch.slot_mapping[i] < -1) {
      fail("slot_mapping[{}] is {}, must be at least -1", i, batch.slot_mapping[i]);
    }
  }
  expect_all_at_least("encoder_seq_lens", batch.encoder_seq_lens, 0);
  expect_all_at_least("encoder_seq_lens_cpu", batch.encoder_seq_lens_cpu, 0);
  expect_all_at_least("dcp_local_seq_lens", batch.dcp_local_seq_lens, 0);
  expect_all_at_least("dcp_local_seq_lens_cpu_upper_bound",
                      batch.dcp_local_seq_lens_cpu_upper_bound, 0);
  expect_all_at_least("rswa_prefix_lens", batch.rswa_prefix_lens, 0);
  expect_images(batch);
}

}  // namespace attn
