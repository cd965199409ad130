// Questions of the operation `attention` whose inputs are drawn, one function a topic.
#pragma once

#include <vector>

#include "attn/case_file.h"
#include "golden/questions/question.h"

namespace attn::questions {

std::vector<Question> base_mask_questions();  // full, encoder, cross, causal, ... and layouts
std::vector<Question> window_questions();     // sliding_window, sink_tokens, chunked_local, rswa
std::vector<Question> range_questions();      // mm_prefix
std::vector<Question> score_questions();      // tree, masked, softcap, alibi
std::vector<Question> sink_questions();       // sinks, static_sink
std::vector<Question> head_questions();       // heads, diffkv
std::vector<Question> quantised_questions();  // types and scales of cache, query and output
std::vector<Question> batch_questions();      // empty, padding, poisoned, kernel_blocks, batches
std::vector<Question> exec_questions();       // split_kv, cascade, dcp

// Rows of batch_questions() that must be the same bits.
std::vector<CaseRelation> batch_relations();

}  // namespace attn::questions
