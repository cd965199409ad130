// Points where a kernel may go wrong: the software model asks here. As written, nothing is wrong.
#pragma once

#include <cstdint>

#include "property_tests/model_row.h"

namespace attn::property_tests {

class ModelHooks {
 public:
  virtual ~ModelHooks() = default;

  // Whether position `key` is read by a row of attention, which sees it or not; which position's K
  // and V are then taken, and from which KV head.
  virtual bool sees(const ModelPlace&, std::int64_t /*key*/, bool visible) const { return visible; }
  virtual std::int64_t key_read(const ModelPlace&, std::int64_t key) const { return key; }
  virtual std::int64_t kv_head(const ModelPlace&, std::int64_t kv_head) const { return kv_head; }

  // The whole row, before anything is computed: query, scale, cap, biases, sink.
  virtual void change_row(ModelRow&) const {}

  // The final logit of a key; its weight as it enters the row sum and the sum with values.
  virtual double logit(const ModelPlace&, std::int64_t /*position*/, double u) const { return u; }
  virtual double sum_weight(const ModelPlace&, std::int64_t /*position*/, double w) const {
    return w;
  }
  virtual double value_weight(const ModelPlace&, std::int64_t /*position*/, double w) const {
    return w;
  }

  // Factors of the row sum and of the accumulator, when the running maximum has grown and when
  // part `part` is merged.
  virtual double rescale_sum(const ModelPlace&, double factor) const { return factor; }
  virtual double rescale_values(const ModelPlace&, double factor) const { return factor; }
  virtual double merge_weight(const ModelPlace&, std::int64_t /*part*/, double w) const {
    return w;
  }

  // What the row sum is at the end, and the answer before it is stored.
  virtual double row_sum(const ModelPlace&, double sum) const { return sum; }
  virtual double out(const ModelPlace&, std::int64_t /*dim*/, double value) const { return value; }
  virtual double lse(const ModelPlace&, double value) const { return value; }
};

}  // namespace attn::property_tests
