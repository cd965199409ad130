#include "golden/case_operation.h"

namespace attn::golden {

MergeStatesOp merge_states_operation(CaseInputs& inputs) {
  const std::string context = operation_text(OpKind::kMergeStates);
  inputs.expect_attributes({"lse_base"}, context);
  MergeStatesOp op;
  op.out_parts = inputs.take("out_parts", 4);
  op.lse_parts = inputs.take("lse_parts", 3);
  op.lse_base_2 = inputs.attrs().lse_base_2;
  inputs.expect_all_taken(context);
  return op;
}

}  // namespace attn::golden
