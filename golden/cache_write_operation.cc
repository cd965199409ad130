#include <fmt/core.h>

#include "attn/error.h"
#include "golden/case_operation.h"
#include "golden/kv_cache_inputs.h"

namespace attn::golden {

CacheWriteOp cache_write_operation(CaseInputs& inputs) {
  const CaseAttributes& attrs = inputs.attrs();
  const std::string context = operation_text(OpKind::kCacheWrite);
  inputs.expect_attributes({"kv_layout", "kv_cache_layout", "block_size", "kv_cache_dtype"},
                           context);
  if (attrs.kv_layout.value_or(KvLayout::kPaged) != KvLayout::kPaged) {
    throw Error("case.attrs.kv_layout must be paged or absent for operation cache_write");
  }
  if (attrs.kv_cache_dtype == CacheDType::kNvfp4 || attrs.kv_cache_dtype == CacheDType::kFp8DsMla) {
    throw Error(fmt::format("case.attrs.kv_cache_dtype {} does not belong to {}",
                            name(attrs.kv_cache_dtype), context));
  }
  CacheWriteOp op;
  op.key = inputs.take("key", 3);
  op.value = inputs.take("value", 3);
  op.slot_mapping = inputs.take("slot_mapping", 1);
  op.cache = take_written_cache(inputs);
  inputs.expect_all_taken(context);
  return op;
}

}  // namespace attn::golden
