#include "cli/naive_answer.h"

#include "attn/arithmetic.h"
#include "property_tests/model_answer.h"

namespace attn::cli {
namespace {

// Products beyond which nobody waits for a figure that decides nothing: about a second.
constexpr std::int64_t kMostProducts = std::int64_t{1} << 26;

PrecisionContract naive_contract(DType type) {
  switch (type) {
    case DType::kF64:
      return {"f64"};
    case DType::kF16:
      return {"bf16_unfused",
              R"({"query":"f16","key":"f16","value":"f16","logit":"f16","flush":false,)"
              R"("p":{"type":"f16","normalized":true}})"};
    case DType::kBF16:
      return {"bf16_unfused"};
    default:
      return {"fp32", R"({"tile":0})"};
  }
}

std::int64_t products(const AttentionOp& op) {
  std::int64_t pairs = 0;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) pairs += op.query_len(r) * op.seq_len(r);
  return pairs * op.num_heads() * (op.head_size() + op.head_size_v());
}

}  // namespace

HostTensor naive_answer(const AttentionProblem& problem, DType type) {
  const AttentionOp* op = problem.attention();
  if (op == nullptr || !format_of(type) || products(*op) > kMostProducts) return {};
  const Arithmetic arithmetic = with_stored_type(resolve(naive_contract(type)), type);
  property_tests::Tensors tensors = property_tests::model_answer(
      problem.operation(), arithmetic, property_tests::plain_model_options(arithmetic, type));
  return std::move(tensors.at("out"));
}

}  // namespace attn::cli
