#include "attn/second_reference.h"

#include <iterator>

#include "attn/error.h"
#include "reference/second/contract.h"
#include "reference/second/operations.h"

namespace attn {
namespace {

Capabilities second_reference_capabilities() {
  Capabilities c;
  c.operations.assign(std::begin(kAllOpKinds), std::end(kAllOpKinds));
  c.contracts = {"f64"};
  c.query_dtypes = {DType::kF64,      DType::kF32,        DType::kF16,   DType::kBF16,
                    DType::kF8E4M3FN, DType::kF8E4M3FNUZ, DType::kF8E5M2};
  c.kv_dtypes = c.query_dtypes;
  c.kv_encodings = {KvEncoding::kPlain, KvEncoding::kPerTokenHead, KvEncoding::kNvfp4,
                    KvEncoding::kFp8DsMla};
  c.kv_layouts = {KvLayout::kVarlen, KvLayout::kPaged, KvLayout::kPacked};
  c.features = ~std::uint32_t{0};  // every one
  c.output_dtypes = {DType::kF64};
  c.batch_invariant = true;
  return c;
}

struct Answer {
  const Outputs& outputs;

  void operator()(const AttentionOp& op) const { second::attention(op, outputs); }
  void operator()(const DifferentialOp& op) const { second::differential(op, outputs); }
  void operator()(const MlaOp& op) const { second::mla(op, outputs); }
  void operator()(const MlaSparseOp& op) const { second::mla_sparse(op, outputs); }
  void operator()(const IndexerOp& op) const { second::indexer(op, outputs); }
  void operator()(const MergeStatesOp& op) const { second::merge_states(op, outputs); }
  void operator()(const CacheWriteOp& op) const { second::cache_write(op, outputs); }
  void operator()(const MlaCacheWriteOp& op) const { second::mla_cache_write(op, outputs); }
};

class SecondReferencePlan final : public Plan {
 public:
  void run(const AttentionProblem& problem, const Outputs& outputs) const override {
    check_outputs(problem, outputs, DType::kF64);
    if (outputs.lse_form != LseForm{}) {
      throw Error("SECOND_REFERENCE writes lse in its declared form only");
    }
    std::visit(Answer{outputs}, problem.operation());
  }

  ExecSpec exec() const override { return {}; }
};

class SecondReferenceBackend final : public Backend {
 public:
  std::string_view name() const override { return "SECOND_REFERENCE"; }
  const Capabilities& capabilities() const override { return capabilities_; }
  PrecisionContract contract(const AttentionProblem& problem) const override {
    return second::declared_contract(problem);
  }
  std::size_t workspace_bytes(const AttentionProblem&) const override { return 0; }

  std::unique_ptr<Plan> prepare(const AttentionProblem& problem,
                                Workspace workspace) const override {
    require_supported(*this, problem, workspace);
    return std::make_unique<SecondReferencePlan>();
  }

 private:
  Capabilities capabilities_ = second_reference_capabilities();
};

}  // namespace

std::unique_ptr<Backend> make_second_reference_backend() {
  return std::make_unique<SecondReferenceBackend>();
}

}  // namespace attn
