#include "property_tests/model_answer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "attn/error.h"
#include "attn/problem.h"
#include "judge/bound_terms.h"
#include "property_tests/model_rows.h"
#include "property_tests/model_scalars.h"

namespace attn::property_tests {
namespace {

// The roundings of scores of base 2, and of wider ones, are those of their conversion.
Arithmetic of_merging(const Arithmetic& arithmetic, const MergeStatesOp& op) {
  Arithmetic merging = judge::merging_arithmetic(arithmetic, op);
  merging.logit_roundings = 0;
  return merging;
}

Tensors empty_answer(const Operation& operation, DType stored) {
  Tensors tensors;
  for (const OutputSpec& spec : output_specs(AttentionProblem(operation), stored)) {
    if (spec.name != "out_codes") tensors.emplace(spec.name, HostTensor(spec.dtype, spec.shape));
  }
  return tensors;
}

// Values the contract has rounded: of the stored type, unless it declares a wider one.
void store(HostTensor& tensor, double value, std::int64_t flat) {
  tensor.set_code(flat, encode(tensor.dtype(), value, Overflow::kInfinity));
}

class Answerer {
 public:
  Answerer(const Operation& operation, const Arithmetic& arithmetic, const ModelOptions& options,
           const ModelHooks* hooks)
      : arithmetic_(with_stored_type(arithmetic, options.stored)),
        options_(options),
        hooks_(hooks),
        tensors_(empty_answer(operation, options.stored)) {}

  Tensors take() { return std::move(tensors_); }

  void operator()(const AttentionOp& op) {
    const SoftwareModel model(arithmetic_, options_, hooks_);
    AttentionRows rows(op, model);
    for_each_place(op, op.num_heads(), [&](const ModelPlace& place) {
      const std::int64_t kv_head = place.head / op.num_queries_per_kv();
      put(model, rows.row(place, kv_head, {kv_head}));
    });
  }

  void operator()(const MlaOp& op) { answer_rows(op, arithmetic_); }
  void operator()(const MlaSparseOp& op) { answer_rows(op, arithmetic_); }
  void operator()(const MergeStatesOp& op) { answer_rows(op, of_merging(arithmetic_, op)); }

  void operator()(const DifferentialOp& op);
  void operator()(const IndexerOp& op);
  void operator()(const CacheWriteOp&) { throw Error("cache_write computes nothing"); }
  void operator()(const MlaCacheWriteOp&) { throw Error("mla_cache_write computes nothing"); }

 private:
  template <class Take>
  static void for_each_place(const AttentionOp& op, std::int64_t heads, const Take& take) {
    for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
      for (std::int64_t i = 0; i < op.query_len(r); ++i) {
        for (std::int64_t h = 0; h < heads; ++h) take({r, i, op.query_start(r) + i, h});
      }
    }
  }

  template <class Op>
  void answer_rows(const Op& op, const Arithmetic& arithmetic) {
    const SoftwareModel model(arithmetic, options_, hooks_);
    for_each_row(op, model, [&](const ModelRow& row) { put(model, row); });
  }

  void put(const SoftwareModel& model, const ModelRow& row) {
    HostTensor& out = tensors_.at("out");
    HostTensor& lse = tensors_.at("lse");
    const std::int64_t heads = out.shape()[1];
    const std::int64_t width = out.shape()[2];
    std::vector<double> values(static_cast<std::size_t>(width));
    const double log_sum = model.answer(row, values);
    for (std::int64_t j = 0; j < width; ++j) {
      store(out, values[static_cast<std::size_t>(j)],
            (row.place.token * heads + row.place.head) * width + j);
    }
    store(lse, log_sum, row.place.head * lse.shape()[1] + row.place.token);
  }

  Arithmetic arithmetic_;
  ModelOptions options_;
  const ModelHooks* hooks_;
  Tensors tensors_;
};

// y = y0 - lambda y1: lambda as held, the product, the difference. The mean of squares: a chain of
// 2 Dv products and the division, then eps, the root, the quotient, weight and factor.
void Answerer::operator()(const DifferentialOp& op) {
  const AttentionOp& inner = op.attention;
  const SoftwareModel model(arithmetic_, options_, hooks_);
  const NumberRounder vector(
      Rounding{arithmetic_.vector, RoundingMode::kNearest, 1.0, arithmetic_.flush});
  const NumberRounder out_rounder(arithmetic_.out);
  AttentionRows rows(inner, model);
  HostTensor& out = tensors_.at("out");
  const std::int64_t width = out.shape()[2];
  const auto size = static_cast<std::size_t>(width);
  for_each_place(inner, inner.num_heads() / 2, [&](const ModelPlace& pair) {
    const std::int64_t kv_pair = pair.head / inner.num_queries_per_kv();
    std::vector<double> sides[2];
    for (std::int64_t side = 0; side < 2; ++side) {
      sides[side].resize(size);
      const ModelPlace place = {pair.request, pair.row, pair.token, 2 * pair.head + side};
      model.answer(rows.row(place, 2 * kv_pair + side, {2 * kv_pair, 2 * kv_pair + 1}), sides[side],
                   false);
    }
    std::vector<double>& y = sides[0];
    double squares = 0.0;
    for (std::size_t j = 0; j < size; ++j) {
      y[j] = vector(vector(y[j]) - vector(vector(op.lambda) * vector(sides[1][j])));
      squares = vector(squares + vector(y[j] * y[j]));
    }
    const double mean = vector(squares / static_cast<double>(width));
    const double root = vector(std::sqrt(vector(mean + vector(op.eps))));
    const double factor = vector(1.0 - op.lambda_init);
    for (std::size_t j = 0; j < size; ++j) {
      double z = y[j];
      if (op.norm_weight.present()) {
        const double weight = value_at(op.norm_weight, static_cast<std::int64_t>(j));
        z = vector(vector(z / root) * weight);
      }
      z = vector(z * factor);
      store(out, out_rounder(z),
            (pair.token * out.shape()[1] + pair.head) * width + static_cast<std::int64_t>(j));
    }
  });
}

// logits = sum_h w_h relu(q_h . k): the dot, the product with w_h, a chain of H additions.
void Answerer::operator()(const IndexerOp& op) {
  const SoftwareModel model(arithmetic_, options_, hooks_);
  const NumberRounder vector(
      Rounding{arithmetic_.vector, RoundingMode::kNearest, 1.0, arithmetic_.flush});
  const NumberRounder query(arithmetic_.query);
  const NumberRounder key(arithmetic_.key);
  const NumberRounder out(arithmetic_.out);
  const std::int64_t width = op.key.shape[1];
  const std::int64_t num_keys = op.key.shape[0];
  ModelMatrix keys;
  keys.columns = width;
  for (std::int64_t n = 0; n < num_keys; ++n) {
    double scale = 1.0;
    if (op.k_scale.present()) {
      scale = op.k_scale.rank == 2 ? value_at(op.k_scale, n, 0) : value_at(op.k_scale, n);
    }
    double* to = keys.add_row();
    for (std::int64_t d = 0; d < width; ++d) to[d] = key(value_at(op.key, n, d) * scale);
  }
  HostTensor& logits = tensors_.at("logits");
  std::vector<double> row(static_cast<std::size_t>(width));
  std::vector<double> sums(static_cast<std::size_t>(num_keys));
  for (std::int64_t token = 0; token < op.query.shape[0]; ++token) {
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::int64_t head = 0; head < op.query.shape[1]; ++head) {
      for (std::int64_t d = 0; d < width; ++d) {
        row[static_cast<std::size_t>(d)] = query(value_at(op.query, token, head, d));
      }
      const double weight = value_at(op.weights, token, head);
      for (std::int64_t n = 0; n < num_keys; ++n) {
        const double dot = vector(model.dot_rules().dot(row.data(), keys.row(n), width));
        double& sum = sums[static_cast<std::size_t>(n)];
        sum = vector(sum + vector(weight * (dot < 0.0 ? 0.0 : dot)));
      }
    }
    for (std::int64_t n = 0; n < num_keys; ++n) {
      const bool inside = int_at(op.k_start, token) <= n && n < int_at(op.k_end, token);
      store(logits,
            inside ? out(sums[static_cast<std::size_t>(n)])
                   : -std::numeric_limits<double>::infinity(),
            token * num_keys + n);
    }
  }
}

}  // namespace

Tensors model_answer(const Operation& operation, const Arithmetic& arithmetic,
                     const ModelOptions& options, const ModelHooks* hooks) {
  Answerer answerer(operation, arithmetic, options, hooks);
  std::visit(answerer, operation);
  return answerer.take();
}

}  // namespace attn::property_tests
