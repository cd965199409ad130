#include "attn/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "attn/conditioning.h"
#include "attn/error.h"
#include "judge/answer_pairs.h"
#include "judge/gates.h"
#include "judge/logits_judge.h"
#include "judge/row_bounds.h"
#include "judge/row_judge.h"

namespace attn {
namespace judge {
namespace {

// Stored types of the answer in place of "stored".
Arithmetic with_types_of(const PrecisionContract& contract, const std::vector<TensorPair>& pairs) {
  Arithmetic arithmetic = resolve(contract);
  const TensorPair* out = find(pairs, "out");
  const TensorPair* lse = find(pairs, "lse");
  const TensorPair* logits = find(pairs, "logits");
  if (lse != nullptr) {
    arithmetic.lse = with_stored_type(arithmetic, lse->actual.dtype).lse;
  }
  const TensorPair* first = out != nullptr ? out : logits;
  return with_stored_type(arithmetic, first != nullptr ? first->actual.dtype
                                      : lse != nullptr ? lse->actual.dtype
                                                       : DType::kF32);
}

// The same arithmetic with one more rounding, to codes.
Arithmetic with_codes(Arithmetic arithmetic, double scale) {
  arithmetic.out = Rounding{NumberFormat::kF8E4M3FN, RoundingMode::kNearest, 1.0 / scale, false};
  ++arithmetic.normalize_roundings;
  return arithmetic;
}

// Why a run that passed every gate proves nothing; empty when it does. An answer that is the same
// everywhere comes about by accident, unless it is a single row.
template <class Rows>
std::string mistrust(const Judgement& judgement, const Rows& rows, bool all_empty) {
  if (all_empty) return "no row sees a key";
  if (judgement.rows == 0) return "no row has a finite answer";
  if (judgement.vacuous_rows > 0) {
    return fmt::format("{} of {} rows have no bound", judgement.vacuous_rows, judgement.rows);
  }
  if (rows.expects_zero()) return "the expected answer is 0 everywhere";
  if (rows.expects_a_constant() && judgement.rows > 1) {
    return "the expected answer is the same everywhere";
  }
  return rows.zeros_pass() ? "zeros would pass: no element is larger than its bound" : "";
}

void conclude(const Gates& gates, const std::string& mistrusted, Judgement& judgement) {
  judgement.gate = gates.first();
  if (judgement.gate) {
    judgement.verdict = Verdict::kFail;
    judgement.reason = gates.reason(*judgement.gate);
  } else if (!mistrusted.empty()) {
    judgement.verdict = Verdict::kMistrusted;
    judgement.reason = mistrusted;
  }
}

bool fits(const TensorView& view, const std::vector<std::int64_t>& shape) {
  return std::vector<std::int64_t>(view.shape, view.shape + view.rank) == shape &&
         format_of(view.dtype).has_value();
}

// Throws Error unless the right answer and all its conditioning sums are there.
void require_expectation(const AttentionProblem& problem, const Expectation& expectation) {
  const bool indexer = problem.kind() == OpKind::kIndexer;
  const std::string_view main = indexer ? "logits" : "out";
  for (const OutputSpec& spec : output_specs(problem, DType::kF64)) {
    const TensorView& view = indexer ? expectation.logits : expectation.out;
    if (spec.name == main && !fits(view, spec.shape)) {
      throw Error(fmt::format("the expectation's {} is {}, expected [{}]", main, to_string(view),
                              fmt::join(spec.shape, ",")));
    }
  }
  for (const OutputSpec& spec : conditioning_specs(problem)) {
    const auto* sum = std::find_if(std::begin(kNamedSums), std::end(kNamedSums),
                                   [&](const NamedSum& known) { return known.name == spec.name; });
    const TensorView& view = expectation.sums.*sum->view;
    if (!fits(view, spec.shape)) {
      throw Error(fmt::format("the expectation's {} is {}, expected [{}]", spec.name,
                              to_string(view), fmt::join(spec.shape, ",")));
    }
  }
}

void require_naive(const TensorView& naive, const Expectation& expectation) {
  if (!naive.present()) return;
  const TensorView& out = expectation.out;
  const bool fits =
      naive.rank == out.rank && std::equal(out.shape, out.shape + out.rank, naive.shape);
  if (!fits || !format_of(naive.dtype)) {
    throw Error(
        fmt::format("naive is {}, expected the shape of {}", to_string(naive), to_string(out)));
  }
}

// Tensors of an answer next to the expected ones, checked, and the contract of the answer.
struct PairedAnswer {
  PairedAnswer(const AttentionProblem& p, const ExpectedAnswer& e, const ActualAnswer& a,
               const JudgeOptions& o)
      : problem(p), expected(e.expectation), actual(a), options(o), pairs(answer_pairs(p, e, a)) {
    require_expectation(problem, expected);
    require_naive(options.naive, expected);
    arithmetic = with_types_of(options.contract, pairs);
  }

  const AttentionProblem& problem;
  const Expectation& expected;
  const ActualAnswer& actual;
  const JudgeOptions& options;
  std::vector<TensorPair> pairs;
  Arithmetic arithmetic;
};

Gates gates_of(const ActualAnswer& actual) {
  Gates gates;
  if (!actual.canary_damage.empty()) gates.fail(Gate::kCanary, actual.canary_damage);
  return gates;
}

Judgement judge_caches(const std::vector<TensorPair>& pairs, const ActualAnswer& actual) {
  Judgement judgement;
  Gates gates = gates_of(actual);
  for (const TensorPair& pair : pairs) {
    judgement.tensors.push_back(compare_bits(pair.name, pair.expected, pair.actual));
    const TensorComparison& result = judgement.tensors.back();
    if (result.over == 0) continue;
    gates.fail(Gate::kExact, fmt::format("{}[{}] is {}, expected exactly {}", pair.name,
                                         fmt::join(result.worst.at, ","), result.worst.actual,
                                         result.worst.expected));
  }
  conclude(gates, "", judgement);
  return judgement;
}

Judgement judge_paired(const BoundSources& bounds, const PairedAnswer& answer) {
  Judgement judgement;
  Gates gates = gates_of(answer.actual);
  if (answer.problem.kind() == OpKind::kIndexer) {
    LogitsJudge logits(bounds, *find(answer.pairs, "logits"));
    logits.run();
    logits.write_to(judgement, gates);
    conclude(gates, mistrust(judgement, logits, false), judgement);
    return judgement;
  }
  RowJudge rows(bounds, answer.problem, answer.expected, answer.arithmetic, answer.pairs,
                answer.actual.lse_form, answer.options);
  rows.run();
  rows.write_to(judgement, gates);
  const TensorView& out = answer.expected.out;
  const bool all_empty = rows.empty_rows() == out.shape[0] * out.shape[1];
  conclude(gates, mistrust(judgement, rows, all_empty), judgement);
  return judgement;
}

}  // namespace

Judgement judge_by(const BoundSources& bounds, const AttentionProblem& problem,
                   const ExpectedAnswer& expected, const ActualAnswer& actual,
                   const JudgeOptions& options) {
  return judge_paired(bounds, PairedAnswer(problem, expected, actual, options));
}

}  // namespace judge

Judgement judge_answer(const AttentionProblem& problem, const ExpectedAnswer& expected,
                       const ActualAnswer& actual, const JudgeOptions& options) {
  using judge::CertifiedBounds;
  if (problem.kind() == OpKind::kCacheWrite || problem.kind() == OpKind::kMlaCacheWrite) {
    return judge::judge_caches(judge::answer_pairs(problem, expected, actual), actual);
  }
  const judge::PairedAnswer paired(problem, expected, actual, options);
  const CertifiedBounds answer(problem, paired.arithmetic, expected.expectation);
  const CertifiedBounds own(problem, with_stored_type(resolve(expected.contract), DType::kF64),
                            expected.expectation);
  std::optional<CertifiedBounds> codes;
  if (judge::find(paired.pairs, "out_codes") != nullptr) {
    codes.emplace(problem, judge::with_codes(paired.arithmetic, judge::output_scale(problem)),
                  expected.expectation);
  }
  return judge::judge_paired({&answer, codes ? &*codes : nullptr, &own}, paired);
}

}  // namespace attn
