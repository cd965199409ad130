#include "attn/output.h"

#include <fmt/format.h>

#include <span>
#include <string_view>

#include "attn/error.h"

namespace attn {
namespace {

void check_output(std::string_view what, const MutableTensorView& view, DType dtype,
                  std::span<const std::int64_t> shape) {
  if (!view.present()) return;
  const bool same = view.dtype == dtype && view.rank == static_cast<std::int32_t>(shape.size()) &&
                    std::equal(shape.begin(), shape.end(), view.shape);
  if (!same) {
    throw Error(fmt::format("output {} is {}, expected {}[{}]", what, to_string(view), name(dtype),
                            fmt::join(shape, ",")));
  }
  if (view.data == nullptr && view.num_units() != 0) {
    throw Error(fmt::format("output {} has no memory", what));
  }
}

}  // namespace

void check_outputs(const AttentionProblem& problem, const Outputs& outputs, DType dtype) {
  const AttentionOp* op = problem.attention();
  if (op == nullptr) {
    throw Error(fmt::format("no outputs are defined for operation {}", name(problem.kind())));
  }
  const std::int64_t out_shape[] = {op->num_tokens(), op->num_heads(), op->head_size_v()};
  const bool by_head = outputs.lse_form.layout == LseLayout::kHeadsTokens;
  const std::int64_t lse_shape[] = {by_head ? op->num_heads() : op->num_tokens(),
                                    by_head ? op->num_tokens() : op->num_heads()};
  check_output("out", outputs.out, dtype, out_shape);
  check_output("lse", outputs.lse, dtype, lse_shape);
  check_output("out_codes", outputs.out_codes, DType::kF8E4M3FN, out_shape);
  if (outputs.out_codes.present() && !op->output_scale.present()) {
    throw Error("output out_codes was asked for, but the problem has no output_scale");
  }
}

}  // namespace attn
