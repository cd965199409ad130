// Judges answers to cases, and says it in JSON and in text.
#pragma once

#include <string>

#include "attn/judgement.h"
#include "cli/answer.h"
#include "cli/document.h"

namespace attn::cli {

struct Judging {
  PrecisionContract contract;  // of the arithmetic that answered
  bool strict = false;
  bool policies = false;  // they are printed: also computes what they need
};

// Judges every output that `expected` has; `canary_damage` as ActualAnswer has it. Error naming
// `where` when one is missing, or of a wrong shape or type.
Judgement judge_outputs(const AttentionProblem& problem, const ExpectedAnswer& expected,
                        const TensorOf& actual, const Judging& judging, const std::string& where,
                        std::string canary_damage = "");

// Of an answer that no judge saw.
Judgement unjudged(Verdict verdict, std::string reason);

// Adds verdict, gate, reason, tensors, strict, telemetry and policies to a document.
void add_judgement(Json& document, const Judgement& judgement);

// "<id> pass under bf16_flash: largest error 0.3 times its bound".
std::string text_of(const std::string& id, const PrecisionContract& contract,
                    const Judgement& judgement);

// 0, or 1 when it failed; mistrusted is a failure with `strict`.
int exit_of(const Judgement& judgement, bool strict);

}  // namespace attn::cli
