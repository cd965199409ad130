#include <vector>

#include "attn/error.h"
#include "attn/reference.h"
#include "reference/attention.h"
#include "reference/cache_write.h"
#include "reference/contract.h"
#include "reference/differential.h"
#include "reference/indexer.h"
#include "reference/merge_states.h"
#include "reference/mla.h"

namespace attn {
namespace {

Capabilities reference_capabilities() {
  Capabilities c;
  c.operations.assign(std::begin(kAllOpKinds), std::end(kAllOpKinds));
  c.contracts = {"reference"};
  c.query_dtypes = {DType::kF64,      DType::kF32,        DType::kF16,   DType::kBF16,
                    DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2};
  c.kv_dtypes = c.query_dtypes;
  c.kv_dtypes.push_back(DType::kI4);
  c.kv_encodings = {KvEncoding::kPlain, KvEncoding::kPerTokenHead, KvEncoding::kNvfp4,
                    KvEncoding::kFp8DsMla};
  c.kv_layouts = {KvLayout::kVarlen, KvLayout::kPaged, KvLayout::kPacked};
  c.features = ~std::uint32_t{0};  // every one
  c.output_dtypes = {DType::kF64};
  c.honours_splits = true;
  c.honours_common_prefix = true;
  c.honours_dcp = true;
  c.conditioning = true;
  c.batch_invariant = true;
  return c;
}

// Runs the reference of whichever operation a problem holds.
struct Answer {
  const Outputs& outputs;

  void operator()(const AttentionOp& op) const { reference::attention(op, outputs); }
  void operator()(const DifferentialOp& op) const { reference::differential(op, outputs); }
  void operator()(const MlaOp& op) const { reference::mla(op, outputs); }
  void operator()(const MlaSparseOp& op) const { reference::mla_sparse(op, outputs); }
  void operator()(const IndexerOp& op) const { reference::indexer(op, outputs); }
  void operator()(const MergeStatesOp& op) const { reference::merge_states(op, outputs); }
  void operator()(const CacheWriteOp& op) const { reference::cache_write(op, outputs); }
  void operator()(const MlaCacheWriteOp& op) const { reference::mla_cache_write(op, outputs); }
};

// Nothing to lay out: the reference works straight from the problem.
class ReferencePlan final : public Plan {
 public:
  explicit ReferencePlan(const ExecSpec& exec) : exec_(exec) {}

  void run(const AttentionProblem& problem, const Outputs& outputs) const override {
    check_outputs(problem, outputs, DType::kF64, true);
    if (outputs.lse_form != LseForm{})
      throw Error("REFERENCE writes lse in its declared form only");
    std::visit(Answer{outputs}, problem.operation());
  }

  ExecSpec exec() const override { return exec_; }

 private:
  ExecSpec exec_;
};

class ReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "REFERENCE"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  PrecisionContract contract(const AttentionProblem& problem) const override {
    return reference::declared_contract(problem);
  }
  std::size_t workspace_bytes(const AttentionProblem&) const override { return 0; }

  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override {
    require_supported(*this, problem, workspace);
    return std::make_unique<ReferencePlan>(honoured_exec(capabilities_, asked_exec(problem)));
  }

 private:
  Capabilities capabilities_ = reference_capabilities();
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace attn
