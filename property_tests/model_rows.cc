#include "property_tests/model_rows.h"

#include <algorithm>
#include <cmath>

#include "attn/reference.h"
#include "reference/bias.h"

namespace attn::property_tests {
namespace {

void add_biases(const AttentionOp& op, const ModelPlace& place, std::int64_t key, ModelRow& row) {
  const std::int64_t context_len = op.context_len(place.request);
  const std::array<double, 3> terms = reference::bias_terms(
      op.bias, {place.request, place.row, context_len + place.row, context_len}, place.head, key);
  if (op.bias.alibi_form != AlibiForm::kNone) row.biases.push_back(terms[0]);
  if (op.bias.attn_bias.present()) row.biases.push_back(terms[1]);
  if (op.bias.qq_bias.present()) row.biases.push_back(terms[2]);
}

}  // namespace

AttentionRows::AttentionRows(const AttentionOp& op, const SoftwareModel& model)
    : op_(op), arithmetic_(model.arithmetic()), hooks_(model.hooks()) {}

const ModelMatrix& AttentionRows::keys(std::int64_t request, std::int64_t kv_head) {
  const auto [at, is_new] = keys_.try_emplace({request, kv_head});
  ModelMatrix& matrix = at->second;
  if (!is_new) return matrix;
  const NumberRounder key(arithmetic_.key);
  matrix.columns = op_.head_size();
  for (std::int64_t k = 0; k < op_.seq_len(request); ++k) {
    double* to = matrix.add_row();
    for (std::int64_t d = 0; d < op_.head_size(); ++d) {
      to[d] = key(decode_key(op_.kv, request, k, kv_head, d));
    }
  }
  return matrix;
}

const ModelMatrix& AttentionRows::values(std::int64_t request,
                                         const std::vector<std::int64_t>& kv_heads) {
  const auto [at, is_new] = values_.try_emplace({request, kv_heads});
  ModelMatrix& matrix = at->second;
  if (!is_new) return matrix;
  const NumberRounder value(arithmetic_.value);
  const std::int64_t width = op_.head_size_v();
  matrix.columns = width * static_cast<std::int64_t>(kv_heads.size());
  for (std::int64_t k = 0; k < op_.seq_len(request); ++k) {
    double* to = matrix.add_row();
    for (const std::int64_t kv_head : kv_heads) {
      for (std::int64_t j = 0; j < width; ++j) {
        *to++ = value(decode_value(op_.kv, request, k, kv_head, j));
      }
    }
  }
  return matrix;
}

std::vector<std::int64_t> AttentionRows::visible(const ModelPlace& place) const {
  const std::vector<KeyRange> ranges = visible_ranges(op_, place.request, place.head, place.row);
  std::vector<std::int64_t> seen;
  auto range = ranges.begin();
  for (std::int64_t k = 0; k < op_.seq_len(place.request); ++k) {
    while (range != ranges.end() && range->end <= k) ++range;
    const bool visible = range != ranges.end() && range->begin <= k;
    if (hooks_.sees(place, k, visible)) seen.push_back(k);
  }
  return seen;
}

ModelRow AttentionRows::row(const ModelPlace& place, std::int64_t key_head,
                            const std::vector<std::int64_t>& value_heads) {
  ModelRow row;
  row.place = place;
  const NumberRounder query(arithmetic_.query);
  double q_scale = 1.0;
  if (op_.q_scale.present()) {
    q_scale = value_at(op_.q_scale, op_.q_scale.shape[0] == 1 ? 0 : key_head);
  }
  for (std::int64_t d = 0; d < op_.head_size(); ++d) {
    row.query.push_back(query(value_at(op_.query, place.token, place.head, d) * q_scale));
  }
  row.num_biases = static_cast<std::int64_t>(op_.bias.alibi_form != AlibiForm::kNone) +
                   static_cast<std::int64_t>(op_.bias.attn_bias.present()) +
                   static_cast<std::int64_t>(op_.bias.qq_bias.present());
  row.scale = op_.scale;
  row.cap = op_.logits_soft_cap;
  if (op_.sinks.present()) row.sink = value_at(op_.sinks, place.head);
  row.lse_includes_sink = op_.lse_includes_sink;
  const ModelMatrix& all_keys = keys(place.request, hooks_.kv_head(place, key_head));
  std::vector<std::int64_t> heads = value_heads;
  for (std::int64_t& head : heads) head = hooks_.kv_head(place, head);
  const ModelMatrix& all_values = values(place.request, heads);
  row.head_size_v = all_values.columns;
  row.positions = visible(place);
  for (const std::int64_t k : row.positions) {
    const std::int64_t read = hooks_.key_read(place, k);
    row.keys.push_back(all_keys.row(read));
    row.values.push_back(all_values.row(read));
    add_biases(op_, place, k, row);
  }
  return row;
}

void for_each_row(const MergeStatesOp& op, const SoftwareModel& model, const TakeModelRow& take) {
  const NumberRounder vector(
      Rounding{model.arithmetic().vector, RoundingMode::kNearest, 1.0, model.arithmetic().flush});
  const double ln_2 = vector(std::log(2.0));
  const NumberRounder value(model.arithmetic().value);
  const std::int64_t size = op.out_parts.shape[3];
  for (std::int64_t token = 0; token < op.out_parts.shape[1]; ++token) {
    for (std::int64_t head = 0; head < op.out_parts.shape[2]; ++head) {
      ModelRow row;
      row.place = {0, token, token, head};
      row.head_size_v = size;
      ModelMatrix parts;
      parts.columns = size;
      for (std::int64_t p = 0; p < op.out_parts.shape[0]; ++p) {
        const double lse = value_at(op.lse_parts, p, head, token);
        if (std::isinf(lse)) continue;
        row.scores.push_back(op.lse_base_2 ? vector(lse * ln_2) : lse);
        row.positions.push_back(static_cast<std::int64_t>(row.positions.size()));
        double* to = parts.add_row();
        for (std::int64_t j = 0; j < size; ++j) {
          to[j] = value(value_at(op.out_parts, p, token, head, j));
        }
      }
      for (std::int64_t i = 0; i < row.num_keys(); ++i) row.values.push_back(parts.row(i));
      take(row);
    }
  }
}

}  // namespace attn::property_tests
