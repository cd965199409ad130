#include "golden/case_operation.h"

namespace attn::golden {

IndexerOp indexer_operation(CaseInputs& inputs) {
  const std::string context = operation_text(OpKind::kIndexer);
  inputs.expect_attributes({}, context);
  IndexerOp op;
  op.query = inputs.take("query", 3);
  op.key = inputs.take("key", 2);
  op.k_scale = inputs.take_if_given("k_scale");
  op.weights = inputs.take("weights", 2);
  op.k_start = inputs.take("k_start", 1);
  op.k_end = inputs.take("k_end", 1);
  inputs.expect_all_taken(context);
  return op;
}

}  // namespace attn::golden
