// Checks of the operations around attention: differential, indexer, merge_states, cache_write.
#include "attn/problem.h"
#include "core/checks.h"
#include "core/written_values.h"

namespace attn {
namespace {

using namespace checks;

void check_key_range(const IndexerOp& op, std::string_view what, const TensorView& ends) {
  expect_tensor(what, ends, DType::kI32, {op.query.shape[0]});
  for (std::int64_t t = 0; t < ends.shape[0]; ++t) {
    const std::int64_t end = int_at(ends, t);
    if (end < 0 || end > op.key.shape[0]) {
      fail("{}[{}] is {}, outside [0, {}]", what, t, end, op.key.shape[0]);
    }
  }
}

class CacheWriteChecker {
 public:
  explicit CacheWriteChecker(const CacheWriteOp& op) : op_(op), cache_(op.cache) {}

  void check() const {
    check_shapes();
    expect_slot_mapping(op_.slot_mapping, cache_.key.shape[0] * cache_.block_size());
    expect_rows("key", op_.key, op_.slot_mapping);
    switch (cache_.encoding) {
      case KvEncoding::kPlain:
        check_plain();
        break;
      case KvEncoding::kPerTokenHead:
        check_per_token_head();
        break;
      default:
        fail("cache_write does not write {} caches", name(cache_.encoding));
    }
  }

 private:
  void check_shapes() const {
    if (!cache_.paged()) fail("cache_write needs a paged cache");
    expect_absent("block_table", cache_.block_table, "slot_mapping says where to write");
    expect_shape("key_cache", cache_.key, {kAny, kAny, kAny, kAny});
    expect_at_least("block_size", cache_.block_size(), 1);
    expect_shape("value_cache", cache_.value,
                 {cache_.key.shape[0], cache_.key.shape[1], cache_.key.shape[2], kAny});
    expect_real("key", op_.key);
    expect_shape("key", op_.key, {kAny, cache_.num_kv_heads(), cache_.key.shape[3]});
    expect_real("value", op_.value);
    expect_shape("value", op_.value,
                 {op_.key.shape[0], cache_.num_kv_heads(), cache_.value.shape[3]});
  }

  void check_plain() const {
    expect_real("key_cache", cache_.key);
    expect_real("value_cache", cache_.value);
    check_scale("k_scale", cache_.k_scale);
    check_scale("v_scale", cache_.v_scale);
    expect_absent("k_scale_cache", cache_.k_scale_cache, "the cache has no scale per token");
    expect_absent("v_scale_cache", cache_.v_scale_cache, "the cache has no scale per token");
  }

  void check_scale(std::string_view what, const TensorView& scale) const {
    if (!scale.present()) return;
    expect_scale(what, scale, cache_.num_kv_heads(), kAny);
    expect_no_zero_scale(what, scale);
  }

  void check_per_token_head() const {
    for (const TensorView* side : {&cache_.key, &cache_.value}) {
      if (side->dtype != DType::kI8 && side->dtype != DType::kF8E4M3FN) {
        fail("a cache with a scale per token and head is i8 or f8_e4m3fn, not {}",
             to_string(*side));
      }
    }
    expect_scale_cache("k_scale_cache", cache_.k_scale_cache);
    expect_scale_cache("v_scale_cache", cache_.v_scale_cache);
    expect_absent("k_scale", cache_.k_scale, "the cache has scales of its own");
    expect_absent("v_scale", cache_.v_scale, "the cache has scales of its own");
    expect_finite_rows("key", op_.key, op_.slot_mapping);
    expect_finite_rows("value", op_.value, op_.slot_mapping);
  }

  void expect_scale_cache(std::string_view what, const TensorView& scale) const {
    expect_data(what, scale, DType::kF32,
                {cache_.key.shape[0], cache_.key.shape[1], cache_.num_kv_heads()});
  }

  const CacheWriteOp& op_;
  const KvCacheView& cache_;
};

}  // namespace

void validate(const DifferentialOp& op) {
  const AttentionOp& attention = op.attention;
  validate(attention);
  if (attention.kv.paged()) fail("differential needs kv_layout varlen");
  if (attention.num_heads() % 2 != 0 || attention.num_kv_heads() % 2 != 0) {
    fail("differential pairs heads: num_heads {} and num_kv_heads {} must be even",
         attention.num_heads(), attention.num_kv_heads());
  }
  expect_absent("sinks", attention.sinks, "differential has none");
  expect_absent("output_scale", attention.output_scale, "differential has none");
  if (attention.exec.any()) fail("differential has no exec");
  expect_finite_number("diff_lambda", op.lambda);
  expect_finite_number("diff_lambda_init", op.lambda_init);
  expect_finite_number("diff_eps", op.eps);
  if (op.eps < 0.0) fail("diff_eps is {}, must not be negative", op.eps);
  if (!op.norm_weight.present()) return;
  expect_real("diff_norm_weight", op.norm_weight);
  expect_shape("diff_norm_weight", op.norm_weight, {2 * attention.head_size_v()});
}

void validate(const IndexerOp& op) {
  expect_real("query", op.query);
  expect_shape("query", op.query, {kAny, kAny, kAny});
  expect_real("key", op.key);
  expect_shape("key", op.key, {kAny, op.query.shape[2]});
  expect_real("weights", op.weights);
  expect_shape("weights", op.weights, {op.query.shape[0], op.query.shape[1]});
  if (op.k_scale.present()) {
    expect_dtype("k_scale", op.k_scale, DType::kF32);
    if (op.k_scale.rank == 2) {
      expect_shape("k_scale", op.k_scale, {op.key.shape[0], 1});
    } else {
      expect_shape("k_scale", op.k_scale, {op.key.shape[0]});
    }
  }
  check_key_range(op, "k_start", op.k_start);
  check_key_range(op, "k_end", op.k_end);
}

void validate(const MergeStatesOp& op) {
  expect_real("out_parts", op.out_parts);
  expect_shape("out_parts", op.out_parts, {kAny, kAny, kAny, kAny});
  expect_real("lse_parts", op.lse_parts);
  const std::int64_t* shape = op.out_parts.shape;
  expect_shape("lse_parts", op.lse_parts, {shape[0], shape[2], shape[1]});
}

void validate(const CacheWriteOp& op) { CacheWriteChecker(op).check(); }

}  // namespace attn
