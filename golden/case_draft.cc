#include "golden/case_draft.h"

#include <algorithm>

#include "attn/case_file.h"
#include "golden/dense_copy.h"

namespace attn::golden {

void CaseDraft::axis(const char* name, std::int64_t size) {
  axes[name] = std::max<std::int64_t>(size, 0);
}

void CaseDraft::input(const std::string& name, const TensorView& view) {
  if (view.present()) inputs.insert_or_assign(name, dense_copy(name, view));
}

CaseDraft draft_of(const Operation& operation) {
  CaseDraft result;
  std::visit([&](const auto& op) { draft(op, result); }, operation);
  return result;
}

std::int64_t last_start(const TensorView& starts, std::int64_t fallback) {
  const bool readable = starts.rank == 1 && starts.shape[0] > 0 && starts.data != nullptr &&
                        starts.space == MemorySpace::kHost &&
                        (starts.dtype == DType::kI32 || starts.dtype == DType::kI64);
  return readable ? int_at(starts, starts.shape[0] - 1) : fallback;
}

void draft_exec(const ExecSpec& exec, CaseDraft& draft) {
  const std::string text = to_json(exec);
  if (text != "{}") draft.attrs["exec"] = nlohmann::json::parse(text);
}

void draft(const IndexerOp& op, CaseDraft& draft) {
  draft.axis("num_tokens", axis_or_zero(op.query, 0));
  draft.axis("num_heads", axis_or_zero(op.query, 1));
  draft.axis("head_size", axis_or_zero(op.query, 2));
  draft.axis("num_keys", axis_or_zero(op.key, 0));
  draft.input("query", op.query);
  draft.input("key", op.key);
  draft.input("k_scale", op.k_scale);
  draft.input("weights", op.weights);
  draft.input("k_start", op.k_start);
  draft.input("k_end", op.k_end);
}

void draft(const MergeStatesOp& op, CaseDraft& draft) {
  draft.axis("num_parts", axis_or_zero(op.out_parts, 0));
  draft.axis("num_tokens", axis_or_zero(op.out_parts, 1));
  draft.axis("num_heads", axis_or_zero(op.out_parts, 2));
  draft.axis("head_size_v", axis_or_zero(op.out_parts, 3));
  draft.attrs["lse_base"] = op.lse_base_2 ? "2" : "e";
  draft.input("out_parts", op.out_parts);
  draft.input("lse_parts", op.lse_parts);
}

}  // namespace attn::golden
