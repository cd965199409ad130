// Under which contract an answer is judged, and how a document says it.
#pragma once

#include <optional>
#include <string>

#include "attn/case_file.h"
#include "attn/contract.h"
#include "cli/document.h"

namespace attn::cli {

// What --contract names: a named contract or a JSON file. None when the flag was not given (empty);
// Error when it is neither.
std::optional<PrecisionContract> contract_of_flag(const std::string& flag);

// Of an answer in a file: what the backend that it names declares for the problem when it is one of
// this build, else by the type that `out` is stored in.
PrecisionContract contract_of_answer(const ResultFile& actual, const AttentionProblem& problem);

// Of an answer that a case stores: arithmetic in the precision of its row, also where the file has
// a wider type than `out` had. None for answers written down by hand with a few digits: only the
// row's tolerance says how good they are.
std::optional<PrecisionContract> contract_of_source(const CaseIndexRow& row, DType stored);

// Adds the contract's name, and its fields when it is more than the named one.
void add_contract(Json& document, const PrecisionContract& contract);

// "fp32", "fp32 with changes".
std::string text_of(const PrecisionContract& contract);

}  // namespace attn::cli
