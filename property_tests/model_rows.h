// From an operation to the rows of the software model: memory decoded, operands rounded as the
// contract says, latents projected.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "attn/operation.h"
#include "property_tests/model_hooks.h"
#include "property_tests/software_model.h"

namespace attn::property_tests {

// Rows of doubles behind one another.
struct ModelMatrix {
  std::int64_t columns = 0;
  std::vector<double> elements;

  double* add_row() {
    elements.resize(elements.size() + static_cast<std::size_t>(columns));
    return elements.data() + elements.size() - columns;
  }
  const double* row(std::int64_t i) const { return elements.data() + i * columns; }
};

// Of attention, and of the softmaxes of differential attention. A row it makes looks into it.
class AttentionRows {
 public:
  AttentionRows(const AttentionOp& op, const SoftwareModel& model);

  // The row of `place` with keys of one KV head and the values of others, side by side.
  ModelRow row(const ModelPlace& place, std::int64_t key_head,
               const std::vector<std::int64_t>& value_heads);

 private:
  const ModelMatrix& keys(std::int64_t request, std::int64_t kv_head);
  const ModelMatrix& values(std::int64_t request, const std::vector<std::int64_t>& kv_heads);
  std::vector<std::int64_t> visible(const ModelPlace& place) const;

  const AttentionOp& op_;
  const Arithmetic& arithmetic_;
  const ModelHooks& hooks_;
  std::map<std::pair<std::int64_t, std::int64_t>, ModelMatrix> keys_;
  std::map<std::pair<std::int64_t, std::vector<std::int64_t>>, ModelMatrix> values_;
};

using TakeModelRow = std::function<void(const ModelRow& row)>;

// Every row, heads of a token one after the other. Rows are valid during the call only.
void for_each_row(const MlaOp& op, const SoftwareModel& model, const TakeModelRow& take);
void for_each_row(const MlaSparseOp& op, const SoftwareModel& model, const TakeModelRow& take);
void for_each_row(const MergeStatesOp& op, const SoftwareModel& model, const TakeModelRow& take);

}  // namespace attn::property_tests
