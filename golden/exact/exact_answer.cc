#include "golden/exact/exact_answer.h"

#include "attn/error.h"
#include "golden/exact/attention.h"
#include "golden/exact/cache_write.h"
#include "golden/exact/differential.h"
#include "golden/exact/indexer.h"
#include "golden/exact/latent_attention.h"
#include "golden/exact/merge_states.h"

namespace attn::exact {
namespace {

struct Answerer {
  const Outputs& outputs;

  int operator()(const CacheWriteOp& op) const {
    answer(op, outputs);
    return 0;
  }
  int operator()(const MlaCacheWriteOp& op) const {
    answer(op, outputs);
    return 0;
  }
  template <class Op>
  int operator()(const Op& op) const {
    return answer(op, outputs);
  }
};

}  // namespace

int answer_exactly(const AttentionProblem& problem, const Outputs& outputs) {
  check_outputs(problem, outputs, DType::kF64, true);
  if (outputs.lse_form != LseForm{}) {
    throw Error("exact answers have lse in the default form: natural, [num_heads, num_tokens]");
  }
  return std::visit(Answerer{outputs}, problem.operation());
}

}  // namespace attn::exact
