#include "attn/cpu_backend.h"

#include <optional>

#include "optimized/cpu/contract.h"
#include "optimized/cpu/latent.h"
#include "optimized/cpu/plan.h"

namespace attn {
namespace {

Capabilities cpu_capabilities() {
  const std::vector<DType> stored = {DType::kF32,      DType::kF16,        DType::kBF16,
                                     DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2};
  Capabilities c;
  c.operations = {OpKind::kAttention, OpKind::kMla};
  c.contracts = {"fp32"};
  c.query_dtypes = stored;
  c.kv_dtypes = stored;
  c.kv_encodings = {KvEncoding::kPlain, KvEncoding::kPerTokenHead, KvEncoding::kNvfp4};
  c.kv_layouts = {KvLayout::kVarlen, KvLayout::kPaged, KvLayout::kPacked};
  for (const Feature feature :
       {Feature::kSlidingWindow, Feature::kSinkTokens, Feature::kChunkedLocal, Feature::kRswa,
        Feature::kMmPrefix, Feature::kAttnMask, Feature::kCausalPerRequest, Feature::kNonCausal,
        Feature::kSoftCap, Feature::kAlibi, Feature::kAlibiSqrt, Feature::kAttnBias,
        Feature::kTreeBias, Feature::kSinks, Feature::kPerHeadScales, Feature::kQueryScale,
        Feature::kOutputQuantised, Feature::kDifferentHeadSizeV}) {
    c.features |= static_cast<std::uint32_t>(feature);
  }
  c.output_dtypes = {DType::kF32};
  c.honours_splits = true;
  c.honours_common_prefix = true;
  c.batch_invariant = true;
  return c;
}

class CpuBackend final : public Backend {
 public:
  std::string_view name() const override { return "CPU"; }
  const Capabilities& capabilities() const override { return capabilities_; }

  PrecisionContract contract(const AttentionProblem& problem) const override {
    const std::optional<AttentionOp> op = cpu::as_attention(problem);
    return op ? cpu::attention_contract(*op, honoured(*op)) : PrecisionContract{"fp32"};
  }

  std::vector<std::string> supports(const AttentionProblem& problem) const override {
    std::vector<std::string> reasons = unsupported_reasons(capabilities_, problem);
    if (const auto* op = std::get_if<MlaOp>(&problem.operation())) {
      for (std::string& reason : cpu::latent_reasons(*op)) reasons.push_back(std::move(reason));
      if (!reasons.empty()) return reasons;
      return unsupported_reasons(capabilities_, AttentionProblem(*cpu::as_attention(problem)));
    }
    return reasons;
  }

  std::size_t workspace_bytes(const AttentionProblem& problem) const override {
    const std::optional<AttentionOp> op = cpu::as_attention(problem);
    return op ? cpu::plan_workspace_bytes(*op, honoured(*op)) : 0;
  }

  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override {
    require_supported(*this, problem, workspace);
    const AttentionOp op = *cpu::as_attention(problem);
    return cpu::make_plan(op, honoured(op), workspace);
  }

 private:
  ExecSpec honoured(const AttentionOp& op) const { return honoured_exec(capabilities_, op.exec); }

  Capabilities capabilities_ = cpu_capabilities();
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace attn
