// Questions of the operation `attention` whose inputs are drawn, one function a topic.
#pragma once

#include <vector>

#include "attn/case_file.h"
#include "golden/questions/ask.h"

namespace attn::questions {

std::vector<AttentionEntry> base_mask_entries();  // full, encoder, cross, causal, ... and layouts
std::vector<AttentionEntry> window_entries();  // sliding_window, sink_tokens, chunked_local, rswa
std::vector<AttentionEntry> range_entries();   // mm_prefix
std::vector<AttentionEntry> score_entries();   // tree, masked, softcap, alibi
std::vector<AttentionEntry> sink_entries();    // sinks, static_sink
std::vector<AttentionEntry> head_entries();    // heads, diffkv
std::vector<AttentionEntry> quantised_entries();  // types and scales of cache, query and output
std::vector<AttentionEntry> batch_entries();  // empty, padding, poisoned, kernel_blocks, batches
std::vector<AttentionEntry> exec_entries();   // split_kv, cascade, dcp

std::vector<AttentionEntry> attention_entries();  // all of them

// Rows of batch_entries() that must be the same bits.
std::vector<CaseRelation> batch_relations();

}  // namespace attn::questions
