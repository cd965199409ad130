// A pack of a few questions of every kind, answered by REFERENCE: for tests of what packs are, not
// of what is in them.
#pragma once

#include <filesystem>

#include "golden/pack_maker.h"

namespace attn {

// Nine questions: every operation but differential and mla_sparse, an HND cache, an invalid one;
// two flags, some rulings, one relation that holds.
questions::QuestionSet small_questions();

golden::PackSpec small_pack_spec();

int answer_by_reference(const AttentionProblem& problem, const Outputs& outputs);

golden::MadePack make_small_pack(const std::filesystem::path& target);

}  // namespace attn
