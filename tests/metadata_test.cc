#include "attn/metadata.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "attn/error.h"
#include "tests/small_batch.h"

namespace attn {
namespace {

using Batch = CommonAttentionMetadata;

Batch full_batch() {
  Batch batch = small_batch({3, 0, 1}, {5, 0, 9}, 2);
  batch.num_actual_tokens = 6;  // two tokens of padding
  batch.slot_mapping = {4, 5, 6, 7, -1, -1};
  batch.max_query_len = 4;
  batch.max_seq_len = 16;
  batch.causal_per_req = {true, false, true};
  batch.seq_lens_cpu_upper_bound = {5, 7, 12};
  batch.is_prefilling = {true, false, false};
  batch.mm_req_doc_ranges = {{2, {{4, 6}, {7, 7}, {9, 8}, {1, 3}}}, {0, {}}};
  batch.positions = {2, 3, 4, 8, 0, 0};
  batch.logits_indices_padded = {2, 3, 99};
  batch.num_logits_indices = 2;
  batch.max_logits_per_req = 1;
  batch.encoder_seq_lens = {1, 2, 3};
  batch.encoder_seq_lens_cpu = {1, 2, 3};
  batch.dcp_local_seq_lens = {1, 0, 3};
  batch.dcp_local_seq_lens_cpu_upper_bound = {1, 0, 3};
  batch.req_idx = {0, 0, 1};
  batch.rswa_prefix_lens = {0, 0, 5};
  return batch;
}

std::string error_of(const std::function<void(Batch&)>& damage) {
  Batch batch = full_batch();
  damage(batch);
  try {
    validate(batch);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Metadata, ABatchWithEveryFieldIsValid) {
  EXPECT_NO_THROW(validate(full_batch()));
  EXPECT_NO_THROW(validate(small_batch({}, {})));
  EXPECT_NO_THROW(validate(small_batch({0}, {3})));  // the length of a padding row says nothing
}

TEST(Metadata, ADefaultBatchHasNoStart) { EXPECT_THROW(validate(Batch{}), Error); }

TEST(Metadata, ErrorsNameFieldIndexAndValue) {
  EXPECT_EQ(error_of([](Batch& b) { b.query_start_loc[2] = 2; }),
            "query_start_loc[2] is 2, less than the entry before, 3");
  EXPECT_EQ(error_of([](Batch& b) { b.seq_lens[0] = 2; }),
            "seq_lens[0] is 2, less than the query length 3");
  EXPECT_EQ(error_of([](Batch& b) { b.mm_req_doc_ranges->at(1).row = 3; }),
            "mm_req_doc_ranges names row 3, num_reqs is 3");
}

struct Damage {
  const char* starts_with;
  std::function<void(Batch&)> damage;
};

TEST(Metadata, EveryInvariantIsChecked) {
  const Damage damages[] = {
      {"num_reqs is -1", [](Batch& b) { b.num_reqs = -1; }},
      {"query_start_loc has 4 entries", [](Batch& b) { b.num_reqs = 2; }},
      {"query_start_loc[0] is 1", [](Batch& b) { b.query_start_loc[0] = 1; }},
      {"query_start_loc_cpu[0] is -1", [](Batch& b) { b.query_start_loc_cpu[0] = -1; }},
      {"query_start_loc_cpu[3] is 2", [](Batch& b) { b.query_start_loc_cpu[3] = 2; }},
      {"num_actual_tokens is 3", [](Batch& b) { b.num_actual_tokens = 3; }},
      {"seq_lens has 2 entries", [](Batch& b) { b.seq_lens.pop_back(); }},
      {"block_table.width is -1", [](Batch& b) { b.block_table.width = -1; }},
      {"block_table.entries has 7", [](Batch& b) { b.block_table.entries.push_back(0); }},
      {"slot_mapping has 5", [](Batch& b) { b.slot_mapping.pop_back(); }},
      {"slot_mapping[5] is -2", [](Batch& b) { b.slot_mapping[5] = -2; }},
      {"causal_per_req has 2", [](Batch& b) { b.causal_per_req->pop_back(); }},
      {"seq_lens_cpu_upper_bound has 2", [](Batch& b) { b.seq_lens_cpu_upper_bound->pop_back(); }},
      {"is_prefilling has 4", [](Batch& b) { b.is_prefilling->push_back(true); }},
      {"positions has 5", [](Batch& b) { b.positions->pop_back(); }},
      {"num_logits_indices is -1", [](Batch& b) { b.num_logits_indices = -1; }},
      {"num_logits_indices is 4", [](Batch& b) { b.num_logits_indices = 4; }},
      {"logits_indices_padded[2] is 99", [](Batch& b) { b.num_logits_indices = 3; }},
      {"logits_indices_padded[0] is -1", [](Batch& b) { b.logits_indices_padded->at(0) = -1; }},
      {"encoder_seq_lens has 2", [](Batch& b) { b.encoder_seq_lens->pop_back(); }},
      {"encoder_seq_lens[1] is -1", [](Batch& b) { b.encoder_seq_lens->at(1) = -1; }},
      {"encoder_seq_lens_cpu has 2", [](Batch& b) { b.encoder_seq_lens_cpu->pop_back(); }},
      {"encoder_seq_lens_cpu[0] is -1", [](Batch& b) { b.encoder_seq_lens_cpu->at(0) = -1; }},
      {"dcp_local_seq_lens has 2", [](Batch& b) { b.dcp_local_seq_lens->pop_back(); }},
      {"dcp_local_seq_lens[2] is -1", [](Batch& b) { b.dcp_local_seq_lens->at(2) = -1; }},
      {"dcp_local_seq_lens_cpu_upper_bound has 4",
       [](Batch& b) { b.dcp_local_seq_lens_cpu_upper_bound->push_back(0); }},
      {"dcp_local_seq_lens_cpu_upper_bound[0] is -1",
       [](Batch& b) { b.dcp_local_seq_lens_cpu_upper_bound->at(0) = -1; }},
      {"req_idx has 2", [](Batch& b) { b.req_idx->pop_back(); }},
      {"rswa_prefix_lens has 2", [](Batch& b) { b.rswa_prefix_lens->pop_back(); }},
      {"rswa_prefix_lens[2] is -5", [](Batch& b) { b.rswa_prefix_lens->at(2) = -5; }},
      {"seq_lens[1] is -1", [](Batch& b) { b.seq_lens[1] = -1; }},
      {"max_query_len is 2", [](Batch& b) { b.max_query_len = 2; }},
      {"max_seq_len is 8", [](Batch& b) { b.max_seq_len = 8; }},
      {"seq_lens_cpu_upper_bound[2] is 8", [](Batch& b) { b.seq_lens_cpu_upper_bound->at(2) = 8; }},
      {"seq_lens_cpu_upper_bound[0] is 6", [](Batch& b) { b.seq_lens_cpu_upper_bound->at(0) = 6; }},
      {"mm_req_doc_ranges names row -1", [](Batch& b) { b.mm_req_doc_ranges->at(0).row = -1; }},
      {"mm_req_doc_ranges names row 2 twice", [](Batch& b) { b.mm_req_doc_ranges->at(1).row = 2; }},
      {"mm_req_doc_ranges of row 2 holds [1, 4] and [4, 6]",
       [](Batch& b) { b.mm_req_doc_ranges->at(0).ranges[3].end = 4; }},
      {"mm_req_doc_ranges of row 2 holds [-1, 3]",
       [](Batch& b) { b.mm_req_doc_ranges->at(0).ranges[3].start = -1; }},
  };
  for (const Damage& one : damages) {
    const std::string text = error_of(one.damage);
    EXPECT_TRUE(text.starts_with(one.starts_with)) << one.starts_with << " vs " << text;
    EXPECT_EQ(text.find('\n'), std::string::npos);
  }
}

TEST(Metadata, SizesAloneDoNotLookAtLengths) {
  Batch batch = full_batch();
  batch.seq_lens[0] = 2;
  batch.mm_req_doc_ranges->at(0).row = 7;
  EXPECT_NO_THROW(validate_sizes(batch));
  batch.slot_mapping.pop_back();
  EXPECT_THROW(validate_sizes(batch), Error);
}

}  // namespace
}  // namespace attn
