#include "property_tests/hand_row.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "attn/host_tensor.h"
#include "attn/operation.h"

namespace attn::property_tests {
namespace {

std::vector<std::vector<double>> scaled(const std::vector<std::vector<double>>& rows,
                                        const std::optional<double>& scale) {
  std::vector<std::vector<double>> stored = rows;
  for (std::vector<double>& row : stored) {
    for (double& x : row) x /= scale.value_or(1.0);
  }
  return stored;
}

// Rows of a tensor with a row for every position; those without a key hold 0.
std::vector<double> at_positions(const std::vector<std::vector<double>>& rows,
                                 const std::vector<std::int64_t>& positions) {
  const std::size_t width = rows[0].size();
  std::vector<double> all(static_cast<std::size_t>(positions.back() + 1) * width, 0.0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::copy(rows[i].begin(), rows[i].end(),
              all.begin() + positions[i] * static_cast<std::int64_t>(width));
  }
  return all;
}

// A value of each position, 0 of those without a key.
std::vector<double> places(const std::vector<std::int64_t>& positions,
                           const std::vector<double>& values) {
  std::vector<double> all(static_cast<std::size_t>(positions.back() + 1), 0.0);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    all[static_cast<std::size_t>(positions[i])] = values[i];
  }
  return all;
}

class RowWriter {
 public:
  explicit RowWriter(const HandRow& row) : row_(row), positions_(row.positions) {
    if (positions_.empty()) {
      positions_.resize(row.keys.size());
      std::iota(positions_.begin(), positions_.end(), 0);
    }
    length_ = positions_.back() + 1;
  }

  DrawnOperation write() {
    const auto length = static_cast<double>(length_);
    const auto size = static_cast<std::int64_t>(row_.query.size());
    op_.query = keep(row_.type, {1, 1, size}, scaled({row_.query}, row_.query_scale)[0]);
    op_.query_start_loc = keep(DType::kI32, {2}, {0.0, 1.0});
    op_.seq_lens = keep(DType::kI32, {1}, {length});
    row_.token_scale ? write_scaled_tokens() : write_plain();
    op_.scale = row_.scale;
    op_.logits_soft_cap = row_.cap;
    op_.mask.attn_mask = keep(DType::kBool, {1, 1, 1, length_},
                              places(positions_, std::vector<double>(positions_.size(), 1.0)));
    if (!row_.biases.empty()) {
      op_.bias.attn_bias = keep(row_.type, {1, 1, 1, length_}, places(positions_, row_.biases));
    }
    if (row_.alibi_slope) {
      op_.bias.alibi_form = AlibiForm::kZero;
      op_.bias.alibi_slopes = keep(DType::kF32, {1}, {*row_.alibi_slope});
    }
    if (row_.sink) op_.sinks = keep(row_.type, {1}, {*row_.sink});
    op_.lse_includes_sink = row_.lse_includes_sink;
    if (row_.query_scale) op_.q_scale = keep(DType::kF32, {1}, {*row_.query_scale});
    drawn_.operation = op_;
    return std::move(drawn_);
  }

 private:
  TensorView keep(DType type, std::vector<std::int64_t> shape, const std::vector<double>& values) {
    return drawn_.memory.keep(HostTensor(type, std::move(shape), values));
  }

  void write_plain() {
    const auto size = static_cast<std::int64_t>(row_.query.size());
    const auto size_v = static_cast<std::int64_t>(row_.values[0].size());
    op_.kv.kv_start_loc = keep(DType::kI32, {2}, {0.0, static_cast<double>(length_)});
    op_.kv.key = keep(row_.type, {length_, 1, size},
                      at_positions(scaled(row_.keys, row_.key_scale), positions_));
    op_.kv.value = keep(row_.type, {length_, 1, size_v},
                        at_positions(scaled(row_.values, row_.value_scale), positions_));
    if (row_.key_scale) op_.kv.k_scale = keep(DType::kF32, {1}, {*row_.key_scale});
    if (row_.value_scale) op_.kv.v_scale = keep(DType::kF32, {1}, {*row_.value_scale});
  }

  void write_scaled_tokens() {
    const auto size = static_cast<std::int64_t>(row_.query.size());
    const auto size_v = static_cast<std::int64_t>(row_.values[0].size());
    const std::vector<double> scales(static_cast<std::size_t>(length_), *row_.token_scale);
    op_.kv.layout = KvLayout::kPaged;
    op_.kv.encoding = KvEncoding::kPerTokenHead;
    op_.kv.block_table = keep(DType::kI32, {1, 1}, {0.0});
    op_.kv.key = keep(DType::kF8E4M3FN, {1, length_, 1, size},
                      at_positions(scaled(row_.keys, row_.token_scale), positions_));
    op_.kv.value = keep(DType::kF8E4M3FN, {1, length_, 1, size_v},
                        at_positions(scaled(row_.values, row_.token_scale), positions_));
    op_.kv.k_scale_cache = keep(DType::kF32, {1, length_, 1}, scales);
    op_.kv.v_scale_cache = keep(DType::kF32, {1, length_, 1}, scales);
  }

  const HandRow& row_;
  std::vector<std::int64_t> positions_;
  std::int64_t length_ = 0;
  DrawnOperation drawn_;
  AttentionOp op_;
};

}  // namespace

DrawnOperation operation_of(const HandRow& row) { return RowWriter(row).write(); }

HandRow scored_row(const std::vector<double>& scores, const std::vector<double>& values) {
  HandRow row;
  for (const double score : scores) row.keys.push_back({score});
  for (const double value : values) row.values.push_back({value});
  return row;
}

HandRow one_above(double top, std::size_t count, double others) {
  std::vector<double> scores(count + 1, others);
  scores[0] = top;
  return scored_row(scores, std::vector<double>(count + 1, 1.0));
}

HandRow duel_of_scores(double up, double down) { return scored_row({up, down}, {1.0, -1.0}); }

std::vector<double> all(std::size_t size, double element) {
  return std::vector<double>(size, element);
}

std::vector<double> chain(std::size_t size, double rest) {
  std::vector<double> elements(size, rest);
  elements[0] = 1.0;
  return elements;
}

}  // namespace attn::property_tests
