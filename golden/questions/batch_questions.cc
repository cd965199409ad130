#include <utility>

#include "golden/questions/attention_questions.h"

namespace attn::questions {
namespace {

std::vector<AttentionEntry> nothing_to_see() {
  return {
      {.id = "empty-no_requests",
       .name = "a batch without requests",
       .scenario = "a launch over nothing fails",
       .setup = {.source = {Family::kBell, 0x801}, .requests = {}}},
      {.id = "empty-q_len_zero",
       .name = "requests without rows between others",
       .scenario = "a row finds the wrong request when neighbouring starts are equal",
       .rulings = {"q_len_zero", "seq_len_zero"},
       .setup = {.source = {Family::kBell, 0x802},
                 .requests = {{0, 6}, {2, 5}, {0, 0}, {0, 3}, {3, 4}, {0, 7}},
                 .cache = CacheForm::kPagedNhd,
                 .blocks = {.permuted = true},
                 .fill = Fill::kNaN}},
      {.id = "empty-all_masked",
       .name = "every key of one row of head 0 and of all rows of head 1 hidden",
       .scenario = "a mask by a large negative number gives the mean of the values",
       .rulings = {"empty_row_zero"},
       .setup = {.source = {Family::kBell, 0x803},
                 .requests = {{3, 7}, {2, 4}},
                 .cache = CacheForm::kPagedNhd,
                 .mask = {.attn_mask =
                              MaskTensor{.axes = {.per_request = false, .per_key = false},
                                         .given = [](auto, auto head, auto row,
                                                     auto) { return head == 0 && row != 1; }}}}},
      {.id = "empty-parts",
       .name = "rows before position 0, over three parts of the keys",
       .scenario = "merging two empty parts makes NaN",
       .rulings = {"empty_row_zero", "q_len_gt_S", "split_equals_one_pass"},
       .setup = {.source = {Family::kNegativeLogits, 0x804},
                 .requests = {{5, 3}, {2, 7}},
                 .exec = {.num_splits = 3}}},
  };
}

std::vector<AttentionEntry> unaddressed_memory() {
  return {
      {.id = "padding-rows",
       .name = "three rows of query beyond the last token",
       .scenario = "rows beyond the last token read or written",
       .rulings = {"padding_rows_ignored"},
       .setup = {.source = {Family::kBell, 0x811},
                 .requests = {{2, 6}, {1, 4}},
                 .padding_rows = 3}},
      {.id = "padding-requests",
       .name = "rows beyond the last token, and requests without rows and keys",
       .scenario = "padded requests read a block, or shift the rows of others",
       .rulings = {"padding_rows_ignored", "q_len_zero", "seq_len_zero"},
       .setup = {.source = {Family::kBell, 0x812},
                 .requests = {{1, 6}, {1, 9}, {0, 0}, {0, 0}},
                 .cache = CacheForm::kPagedNhd,
                 .blocks = {.permuted = true},
                 .fill = Fill::kNaN,
                 .padding_rows = 2}},
      {.id = "poisoned-family",
       .name = "unaddressed slots not finite, chunks, heads before slots",
       .scenario = "weight 0 times a value that is not finite",
       .rulings = {"masked_never_read", "hnd_layout"},
       .setup = {.source = {Family::kPoisoned, 0x821},
                 .requests = {{3, 10}, {2, 5}},
                 .num_heads = 4,
                 .num_kv_heads = 2,
                 .cache = CacheForm::kPagedHnd,
                 .blocks = {.permuted = true}}},
      {.id = "poisoned-hidden_keys",
       .name = "NaN in the keys and values that the window hides, too",
       .scenario = "weight 0 times NaN for keys that are addressed but not visible",
       .rulings = {"masked_never_read", "window_counts_self"},
       .setup = {.source = {Family::kBell, 0x822},
                 .requests = {{1, 14}, {2, 11}},
                 .cache = CacheForm::kPagedNhd,
                 .blocks = {.permuted = true},
                 .fill = Fill::kNaN,
                 .fill_hidden = true,
                 .mask = {.window_left = 2}}},
  };
}

// The same requests in the same memory, blocks of 8 as a manager counts them and of 4 as a kernel
// may.
AttentionEntry kernel_blocks(std::int64_t kernel_block_size) {
  return {.id = "kernel_blocks-" + std::to_string(kernel_block_size),
          .name = "a cache in blocks of 8, seen in blocks of " + std::to_string(kernel_block_size),
          .scenario = "block b becomes b + j instead of b * n + j",
          .rulings = {"table_row_per_request"},
          .setup = {
              .source = {Family::kBell, 0x831},
              .requests = {{2, 19}, {1, 9}},
              .cache = CacheForm::kPagedNhd,
              .blocks = {.block_size = 8, .permuted = true, .kernel_block_size = kernel_block_size},
              .fill = Fill::kNaN}};
}

AttentionEntry invariant_batch(const std::string& what, const std::string& name,
                               std::vector<RequestSetup> requests) {
  return {.id = "batch_invariance-" + what,
          .name = name,
          .scenario = "tiles or parts chosen by the batch change the last bits of a request",
          .rulings = {"batch_invariance"},
          .setup = {.source = {Family::kBell, 0x841},
                    .requests = std::move(requests),
                    .query_dtype = DType::kBF16,
                    .kv_dtype = DType::kBF16,
                    .cache = CacheForm::kPagedNhd}};
}

std::vector<AttentionEntry> related() {
  const RequestSetup first = {.query_len = 3, .seq_len = 10, .drawn_as = 0};
  const RequestSetup second = {.query_len = 1, .seq_len = 17, .drawn_as = 1};
  const RequestSetup third = {.query_len = 4, .seq_len = 4, .drawn_as = 2};
  return {kernel_blocks(8), kernel_blocks(4),
          invariant_batch("alone", "one request alone", {first}),
          invariant_batch("batch", "the request before two others", {first, second, third}),
          invariant_batch("reordered", "the request behind them", {third, second, first})};
}

}  // namespace

std::vector<AttentionEntry> batch_entries() {
  std::vector<AttentionEntry> entries = nothing_to_see();
  for (AttentionEntry& entry : unaddressed_memory()) entries.push_back(std::move(entry));
  for (AttentionEntry& entry : related()) entries.push_back(std::move(entry));
  return entries;
}

std::vector<CaseRelation> batch_relations() {
  const std::string alone = "batch_invariance-alone";
  const std::string batch = "batch_invariance-batch";
  const std::string reordered = "batch_invariance-reordered";
  return {{.about = "blocks of another size over the same memory",
           .rows = {{"kernel_blocks-8", 0, 3}, {"kernel_blocks-4", 0, 3}}},
          {.about = "a request alone, before others, behind others",
           .rows = {{alone, 0, 3}, {batch, 0, 3}, {reordered, 5, 3}}},
          {.about = "a decode row between others", .rows = {{batch, 3, 1}, {reordered, 4, 1}}},
          {.about = "a prompt behind others, before others",
           .rows = {{batch, 4, 4}, {reordered, 0, 4}}}};
}

}  // namespace attn::questions
