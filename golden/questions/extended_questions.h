// The parts of pack `extended`.
#pragma once

#include <string>
#include <vector>

#include "attn/case_file.h"
#include "golden/questions/ask.h"
#include "golden/questions/draw.h"
#include "golden/questions/question.h"

namespace attn::questions {

// Every variant of the operation `attention` with every family that applies, over the settings of
// pack `core` in turn; relations of those whose rows are the same bits.
std::vector<AttentionEntry> family_entries();
std::vector<CaseRelation> family_relations();

// Sweeps over head sizes, contexts, blocks, and lengths at the borders of masks and parts.
std::vector<AttentionEntry> size_entries();

// The other operations.
std::vector<Question> extended_operations();

// "<variant>-x-<what>-<family>".
std::string extended_id(std::string_view variant, std::string_view what, Family family);

}  // namespace attn::questions
