#include "cli/judging.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "attn/error.h"
#include "cli/contract_choice.h"
#include "cli/naive_answer.h"
#include "cli/options.h"

namespace attn::cli {
namespace {

Json to_json(const TensorComparison& c) {
  Json worst = nullptr;
  if (!c.worst.at.empty()) {
    worst = {{"at", c.worst.at},
             {"expected", real(c.worst.expected)},
             {"actual", real(c.worst.actual)},
             {"bound", real(c.worst.bound)}};
  }
  return {{"elements", c.elements}, {"over", c.over}, {"ratio", real(c.ratio)}, {"worst", worst}};
}

Json to_json(const std::optional<Telemetry>& telemetry) {
  if (!telemetry) return nullptr;
  return {{"nmse", real(telemetry->nmse)},       {"cosine", real(telemetry->cosine)},
          {"max_ulp", real(telemetry->max_ulp)}, {"max_abs", real(telemetry->max_abs)},
          {"max_rel", real(telemetry->max_rel)}, {"left_out", telemetry->left_out}};
}

}  // namespace

Judgement judge_outputs(const AttentionProblem& problem, const ExpectedAnswer& expected,
                        const TensorOf& actual, const Judging& judging, const std::string& where,
                        std::string canary_damage) {
  ActualAnswer answer;
  answer.canary_damage = std::move(canary_damage);
  for (const NamedView& wanted : expected.tensors) {
    const TensorView view = actual(wanted.name);
    if (!view.present()) throw Error(fmt::format("{}: tensor {} is missing", where, wanted.name));
    answer.tensors.push_back({wanted.name, as_stored_like(wanted.view, view)});
  }
  HostTensor naive;
  const TensorView out = actual("out");
  if (judging.policies && out.present()) naive = naive_answer(problem, out.dtype);
  JudgeOptions options{judging.contract, judging.strict, {}};
  if (naive.present()) options.naive = naive.view();
  try {
    return judge_answer(problem, expected, answer, options);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", where, error.what()));
  }
}

Judgement unjudged(Verdict verdict, std::string reason) {
  Judgement judgement;
  judgement.verdict = verdict;
  judgement.reason = std::move(reason);
  return judgement;
}

void add_judgement(Json& document, const Judgement& judgement) {
  document["verdict"] = name(judgement.verdict);
  document["gate"] = nullptr;
  if (judgement.gate) document["gate"] = name(*judgement.gate);
  document["reason"] = judgement.reason;
  Json tensors = Json::object();
  for (const TensorComparison& c : judgement.tensors) tensors[c.name] = to_json(c);
  document["tensors"] = tensors;
  document["strict"] = nullptr;
  if (judgement.strict) document["strict"] = name(*judgement.strict);
  document["telemetry"] = to_json(judgement.telemetry);
  Json policies = Json::object();
  for (const auto& [policy, verdict] : judgement.policies) {
    policies[policy] = nullptr;
    if (verdict) policies[policy] = name(*verdict ? Verdict::kPass : Verdict::kFail);
  }
  document["policies"] = policies;
}

std::string text_of(const std::string& id, const PrecisionContract& contract,
                    const Judgement& judgement) {
  double ratio = 0.0;
  for (const TensorComparison& c : judgement.tensors) ratio = std::max(ratio, c.ratio);
  return fmt::format("{} {} under {}{}{}: largest error {:.3g} times its bound{}{}", id,
                     name(judgement.verdict), text_of(contract),
                     judgement.strict ? ", strict " : "",
                     judgement.strict ? name(*judgement.strict) : "", ratio,
                     judgement.reason.empty() ? "" : "; ", judgement.reason);
}

int exit_of(const Judgement& judgement, bool strict) {
  if (judgement.verdict == Verdict::kFail) return kFailed;
  return strict && judgement.verdict == Verdict::kMistrusted ? kFailed : kPassed;
}

}  // namespace attn::cli
