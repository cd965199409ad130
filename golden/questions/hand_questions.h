// Questions after public reports of wrong kernels, written down by hand: inputs so plain that the
// right answer is a fraction or a logarithm.
#pragma once

#include <vector>

#include "attn/case_file.h"
#include "golden/questions/question.h"

namespace attn::questions {

std::vector<Question> hand_questions();  // ordered by id

// Rows of hand_questions() that must be the same bits: memory that no request addresses may hold
// anything.
std::vector<CaseRelation> hand_relations();

// Its parts, one file a topic. Each appends.
void add_hand_windows(std::vector<Question>& to);   // which keys a row sees
void add_hand_ranges(std::vector<Question>& to);    // images in a prompt
void add_hand_sinks(std::vector<Question>& to);     // one more term of the softmax
void add_hand_memory(std::vector<Question>& to);    // nothing to attend to; poison
void add_hand_merges(std::vector<Question>& to);    // partial states
void add_hand_scores(std::vector<Question>& to);    // scales of codes, soft cap
void add_hand_heads(std::vector<Question>& to);     // grouped heads, long heads
void add_hand_cascades(std::vector<Question>& to);  // a prefix that requests share

}  // namespace attn::questions
