// Rows of latent attention.
#include <algorithm>
#include <cstddef>
#include <numeric>

#include "property_tests/model_rows.h"
#include "reference/latent.h"

namespace attn::property_tests {
namespace {

// Keys, values and queries of one head as the kernel multiplies them, and what its output is
// multiplied by.
//
// Expanded, there are two ways. Prefill: keys latent * w_uk ‖ rope and values latent * w_uv are
// summed, stored as the contract says of projections, and rounded as operands. Absorbed: the query
// is multiplied by w_uk, the output by w_uv, and both are stored so; the latents are the operands.
class LatentHead {
 public:
  LatentHead(const MlaOp& op, const SoftwareModel& model, std::int64_t head,
             const reference::RowMatrix& rows)
      : op_(op), model_(model), head_(head) {
    const bool expanded = op.form == MlaForm::kExpanded;
    prefill_ = expanded && model.options().latent == LatentPath::kPrefill;
    absorbed_ = expanded && !prefill_;
    if (absorbed_) read_out_weights();
    make_operands(rows);
  }

  ModelRow row(const ModelPlace& place) const {
    ModelRow row;
    row.place = place;
    row.query = query(place.token);
    row.scale = op_.scale;
    row.head_size_v = values_.columns;
    if (absorbed_) {
      row.out_projection = out_weights_.elements.data();
      row.out_size = out_weights_.columns;
    }
    return row;
  }
  void add_key(std::int64_t position, std::int64_t i, ModelRow& row) const {
    row.positions.push_back(position);
    row.keys.push_back(keys_.row(i));
    row.values.push_back(values_.row(i));
  }

 private:
  double projected(const std::vector<double>& a, const std::vector<double>& b) const {
    return model_.projected(
        model_.project_rules().dot(a.data(), b.data(), static_cast<std::int64_t>(a.size())));
  }

  // weights[:, head, column] or weights[row, head, :].
  std::vector<double> column_of(const TensorView& weights, std::int64_t column) const {
    std::vector<double> to;
    for (std::int64_t l = 0; l < weights.shape[0]; ++l) {
      to.push_back(value_at(weights, l, head_, column));
    }
    return to;
  }
  std::vector<double> row_of(const TensorView& weights, std::int64_t row) const {
    std::vector<double> to;
    for (std::int64_t c = 0; c < weights.shape[2]; ++c) {
      to.push_back(value_at(weights, row, head_, c));
    }
    return to;
  }

  void read_out_weights() {
    out_weights_.columns = op_.w_uv.shape[2];
    for (std::int64_t l = 0; l < op_.kv_lora_rank; ++l) {
      const std::vector<double> row = row_of(op_.w_uv, l);
      std::copy(row.begin(), row.end(), out_weights_.add_row());
    }
  }

  void make_operands(const reference::RowMatrix& rows) {
    const NumberRounder key(model_.arithmetic().key);
    const NumberRounder value(model_.arithmetic().value);
    const std::int64_t rank = op_.kv_lora_rank;
    const std::int64_t nope = prefill_ ? op_.qk_nope_head_dim : rank;
    keys_.columns = nope + op_.qk_rope_head_dim;
    values_.columns = prefill_ ? op_.w_uv.shape[2] : rank;
    for (Eigen::Index i = 0; i < rows.rows(); ++i) {
      const double* row = rows.row(i).data();
      const std::vector<double> latent(row, row + rank);
      double* to_key = keys_.add_row();
      double* to_value = values_.add_row();
      for (std::int64_t d = 0; d < nope; ++d) {
        to_key[d] = key(prefill_ ? projected(latent, column_of(op_.w_uk, d)) : row[d]);
      }
      for (std::int64_t d = 0; d < op_.qk_rope_head_dim; ++d) to_key[nope + d] = key(row[rank + d]);
      for (std::int64_t j = 0; j < values_.columns; ++j) {
        to_value[j] = value(prefill_ ? projected(latent, column_of(op_.w_uv, j)) : row[j]);
      }
    }
  }

  std::vector<double> query(std::int64_t token) const {
    const NumberRounder rounded(model_.arithmetic().query);
    std::vector<double> given;
    for (std::int64_t d = 0; d < op_.query.shape[2]; ++d) {
      given.push_back(rounded(value_at(op_.query, token, head_, d)));
    }
    if (!absorbed_) return given;
    const auto nope = static_cast<std::ptrdiff_t>(op_.qk_nope_head_dim);
    const std::vector<double> head(given.begin(), given.begin() + nope);
    std::vector<double> made;
    for (std::int64_t l = 0; l < op_.kv_lora_rank; ++l) {
      made.push_back(projected(head, row_of(op_.w_uk, l)));
    }
    made.insert(made.end(), given.begin() + nope, given.end());
    return made;
  }

  const MlaOp& op_;
  const SoftwareModel& model_;
  std::int64_t head_;
  bool prefill_ = false;
  bool absorbed_ = false;
  ModelMatrix keys_, values_, out_weights_;
};

std::int64_t start_of(const MlaOp& op, std::int64_t request) {
  return int_at(op.query_start_loc, request);
}

void take_listed(const MlaSparseOp& op, std::int64_t request, std::int64_t token,
                 const SoftwareModel& model, const TakeModelRow& take) {
  const MlaOp& mla = op.mla;
  const std::int64_t listed =
      op.topk_lens.present() ? int_at(op.topk_lens, token) : op.topk_indices.shape[1];
  const std::int64_t block_size = mla.kv_cache.shape[1];
  std::vector<KvSlot> slots;
  std::vector<std::int64_t> places;
  for (std::int64_t i = 0; i < listed; ++i) {
    const std::int64_t index = int_at(op.topk_indices, token, i);
    if (index < 0) continue;
    places.push_back(i);
    slots.push_back(op.index_space == TopkIndexSpace::kSlot
                        ? KvSlot{index / block_size, index % block_size}
                        : reference::latent_slots(mla, request, {{index}})[0]);
  }
  const reference::RowMatrix rows = reference::gather_latent(mla, slots);
  for (std::int64_t head = 0; head < mla.query.shape[1]; ++head) {
    const LatentHead operands(mla, model, head, rows);
    ModelRow row = operands.row({request, token - start_of(mla, request), token, head});
    if (op.sinks.present()) row.sink = value_at(op.sinks, head);
    row.lse_includes_sink = op.lse_includes_sink;
    for (std::size_t i = 0; i < places.size(); ++i) {
      operands.add_key(places[i], static_cast<std::int64_t>(i), row);
    }
    take(row);
  }
}

}  // namespace

void for_each_row(const MlaOp& op, const SoftwareModel& model, const TakeModelRow& take) {
  for (std::int64_t request = 0; request < op.seq_lens.shape[0]; ++request) {
    const std::int64_t seq_len = int_at(op.seq_lens, request);
    const std::int64_t first = start_of(op, request);
    const std::int64_t query_len = start_of(op, request + 1) - first;
    std::vector<std::int64_t> positions(static_cast<std::size_t>(seq_len));
    std::iota(positions.begin(), positions.end(), 0);
    const reference::RowMatrix rows =
        reference::gather_latent(op, reference::latent_slots(op, request, positions));
    for (std::int64_t head = 0; head < op.query.shape[1]; ++head) {
      const LatentHead operands(op, model, head, rows);
      for (std::int64_t i = 0; i < query_len; ++i) {
        ModelRow row = operands.row({request, i, first + i, head});
        const std::int64_t last = op.causal ? seq_len - query_len + i : seq_len - 1;
        for (std::int64_t k = 0; k <= last; ++k) operands.add_key(k, k, row);
        take(row);
      }
    }
  }
}

void for_each_row(const MlaSparseOp& op, const SoftwareModel& model, const TakeModelRow& take) {
  for (std::int64_t request = 0; request < op.mla.seq_lens.shape[0]; ++request) {
    const std::int64_t end = start_of(op.mla, request + 1);
    for (std::int64_t token = start_of(op.mla, request); token < end; ++token) {
      take_listed(op, request, token, model, take);
    }
  }
}

}  // namespace attn::property_tests
