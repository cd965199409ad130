// Relations of a case folder: rows that must be the same bits in every answer.
#pragma once

#include <functional>
#include <string>

#include "attn/case_file.h"
#include "attn/judgement.h"

namespace attn::cli {

// `out` of the answer to a case, dense; absent when there is no answer. Valid until the next call.
using OutOf = std::function<TensorView(const std::string& id)>;

// Pass or fail; skipped when an answer is absent. Error for rows that do not exist.
Judgement judge_relation(const CaseRelation& relation, const OutOf& out_of);

}  // namespace attn::cli
