#include "judge/bound_terms.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "judge/row_values.h"

namespace attn::judge {
namespace {

// The type of elements that decode without a multiplication.
std::optional<DType> unscaled(const TensorView& data, KvEncoding encoding,
                              const TensorView& scale) {
  if (encoding != KvEncoding::kPlain || scale.present()) return std::nullopt;
  return data.dtype;
}

// Of a scale tensor of any shape, at least 1.
double largest_scale(const TensorView& scale) {
  if (!scale.present()) return 1.0;
  double largest = 1.0;
  std::vector<double> values(static_cast<std::size_t>(scale.shape[scale.rank - 1]));
  const std::int64_t rows = scale.rank == 1 ? 1 : scale.shape[0];
  for (std::int64_t row = 0; row < rows; ++row) {
    const auto count = static_cast<std::int64_t>(values.size());
    if (scale.rank == 1) {
      read_row(scale, 0, count, values.data());
    } else {
      read_row(scale, 0, count, values.data(), row);
    }
    for (const double x : values) largest = std::max(largest, std::fabs(x));
  }
  return largest;
}

}  // namespace

SoftmaxTerms bound_terms(const AttentionOp& op) {
  SoftmaxTerms terms;
  terms.dot_length = op.head_size();
  terms.num_biases = static_cast<int>(op.bias.alibi_form != AlibiForm::kNone) +
                     static_cast<int>(op.bias.attn_bias.present()) +
                     static_cast<int>(op.bias.qq_bias.present());
  terms.soft_cap = op.logits_soft_cap;
  terms.abs_scale = std::fabs(op.scale);
  terms.sink = op.sinks.present();
  terms.lse_includes_sink = op.lse_includes_sink;
  terms.query = unscaled(op.query, KvEncoding::kPlain, op.q_scale);
  terms.key = unscaled(op.kv.key, op.kv.encoding, op.kv.k_scale);
  terms.value = unscaled(op.kv.value, op.kv.encoding, op.kv.v_scale);
  terms.query_scale = largest_scale(op.q_scale);
  terms.key_scale = std::max(largest_scale(op.kv.k_scale), largest_scale(op.kv.k_global_scale));
  terms.value_scale = std::max(largest_scale(op.kv.v_scale), largest_scale(op.kv.v_global_scale));
  terms.key_scale_in_cache = op.kv.encoding != KvEncoding::kPlain;
  terms.value_scale_in_cache = terms.key_scale_in_cache;
  return terms;
}

SoftmaxTerms bound_terms(const MlaOp& op) {
  SoftmaxTerms terms;
  terms.dot_length = op.kv_lora_rank + op.qk_rope_head_dim;
  terms.abs_scale = std::fabs(op.scale);
  terms.query = op.query.dtype;
  terms.key = unscaled(op.kv_cache, op.encoding, op.k_scale);
  terms.value = terms.key;
  terms.key_scale = largest_scale(op.k_scale);
  terms.value_scale = terms.key_scale;
  terms.key_scale_in_cache = op.encoding != KvEncoding::kPlain;
  terms.value_scale_in_cache = terms.key_scale_in_cache;
  if (op.form == MlaForm::kExpanded) {
    terms.projected = std::max(op.kv_lora_rank, op.qk_nope_head_dim);
    terms.dot_length = terms.projected + op.qk_rope_head_dim;
    terms.w_uk = op.w_uk.dtype;
    terms.w_uv = op.w_uv.dtype;
  }
  return terms;
}

SoftmaxTerms bound_terms(const MlaSparseOp& op) {
  SoftmaxTerms terms = bound_terms(op.mla);
  terms.sink = op.sinks.present();
  terms.lse_includes_sink = op.lse_includes_sink;
  return terms;
}

SoftmaxTerms bound_terms(const MergeStatesOp& op) {
  SoftmaxTerms terms;
  terms.value = op.out_parts.dtype;
  return terms;
}

Arithmetic merging_arithmetic(Arithmetic arithmetic, const MergeStatesOp& op) {
  arithmetic.scale_roundings = 0;
  // ln 2 and the product with it; what is read in a wider type.
  arithmetic.logit_roundings =
      (op.lse_base_2 ? 2 : 0) + static_cast<int>(!embeds(op.lse_parts.dtype, arithmetic.vector));
  arithmetic.tile = 0;
  arithmetic.splits = op.out_parts.shape[0];
  arithmetic.merge_kind = MergeKind::kLse;
  arithmetic.merge_depth = std::max<std::int64_t>(1, arithmetic.splits - 1);
  return arithmetic;
}

}  // namespace attn::judge
