// Questions of the operations beside `attention`, and of what must be rejected.
#pragma once

#include <string>
#include <vector>

#include "golden/questions/draw.h"
#include "golden/questions/question.h"

namespace attn::questions {

std::vector<Question> other_questions();  // ordered by id

// Its parts, one file each. Each appends.
void add_differential_questions(std::vector<Question>& to);
void add_mla_questions(std::vector<Question>& to);
void add_mla_sparse_questions(std::vector<Question>& to);
void add_indexer_questions(std::vector<Question>& to);
void add_merge_questions(std::vector<Question>& to);
void add_cache_write_questions(std::vector<Question>& to);
void add_mla_cache_write_questions(std::vector<Question>& to);
void add_invalid_questions(std::vector<Question>& to);

// Without operation. The variant is what stands before the first '-' of `id`.
Question drawn_question(std::string id, std::string name, std::string scenario,
                        std::vector<std::string> rulings, const Source& source);

}  // namespace attn::questions
