#include "reference/second/contract.h"

#include <string>

namespace attn::second {
namespace {

// Over "f64", whose scalar operations and functions are less exact than those of long double (u =
// 2^-64). Sums are plain chains. A product of a dot counts three roundings, two of scales, so a
// chain of D products less than (D + 1) * 2^-63. A key may raise the maximum: a rescaling of one
// exponential (2^-63) and one product besides its own product and sum, less than 2^-61 a key.
constexpr std::string_view kSums =
    R"("dot":{"inner":{"unit":"0x1p-63"}},"sum":{"inner":{"unit":"0x1p-61"}},)"
    R"("pv":{"inner":{"unit":"0x1p-61"}})";

// Keys and values of a cache are decoded to double.
std::string decoded(const AttentionOp& op) {
  std::string members;
  if (op.kv.key.dtype == DType::kF64 && op.kv.k_scale.present()) members += R"(,"key":"f64")";
  if (op.kv.value.dtype == DType::kF64 && op.kv.v_scale.present()) members += R"(,"value":"f64")";
  return members;
}

struct Members {
  std::string operator()(const AttentionOp& op) const { return decoded(op); }
  std::string operator()(const DifferentialOp& op) const { return decoded(op.attention); }
  std::string operator()(const MlaOp& op) const {
    if (op.form == MlaForm::kAbsorbed) return "";
    return R"(,"project":{"sum":{"type":"f64","fused":false,"inner":{"unit":"0x1p-63"}}})";
  }
  std::string operator()(const MergeStatesOp& op) const {
    return op.lse_base_2 ? R"(,"logit_roundings":1)" : "";
  }
  template <class Other>
  std::string operator()(const Other&) const {
    return "";
  }
};

}  // namespace

PrecisionContract declared_contract(const AttentionProblem& problem) {
  std::string object = "{";
  object += kSums;
  object += std::visit(Members(), problem.operation());
  object += '}';
  return {"f64", object};
}

}  // namespace attn::second
