// One cache, one writer: whichever child answers, the cache holds the same bits.
#include <fmt/core.h>

#include "attn/composite.h"
#include "attn/error.h"
#include "attn/executable_backend.h"
#include "property_tests/composite_parts.h"
#include "property_tests/drawn_operation.h"
#include "property_tests/operation_property.h"

namespace attn::property_tests {
namespace {

// The drawn tensors are this test's own.
MutableTensorView writable(const TensorView& view) {
  MutableTensorView result;
  result.data = const_cast<void*>(view.data);
  result.dtype = view.dtype;
  result.rank = view.rank;
  for (int axis = 0; axis < kMaxRank; ++axis) {
    result.shape[axis] = view.shape[axis];
    result.stride_bytes[axis] = view.stride_bytes[axis];
  }
  return result;
}

CacheUpdate update_of(const CacheWriteOp& op) {
  CacheUpdate update;
  update.key = op.key;
  update.value = op.value;
  for (std::int64_t i = 0; i < op.slot_mapping.shape[0]; ++i) {
    update.slot_mapping.push_back(int_at(op.slot_mapping, i));
  }
  update.cache = op.cache;
  update.key_cache = writable(op.cache.key);
  update.value_cache = writable(op.cache.value);
  update.k_scale_cache = writable(op.cache.k_scale_cache);
  update.v_scale_cache = writable(op.cache.v_scale_cache);
  return update;
}

// Writes somewhere else than it is told: no cache may have been through it.
class Scribbler final : public Backend {
 public:
  std::string_view name() const override { return "SCRIBBLER"; }
  const Capabilities& capabilities() const override { return shared_reference()->capabilities(); }
  PrecisionContract contract(const AttentionProblem& problem) const override {
    return shared_reference()->contract(problem);
  }
  std::size_t workspace_bytes(const AttentionProblem&) const override { return 0; }
  std::unique_ptr<Plan> prepare(const AttentionProblem& problem, Workspace) const override {
    if (problem.kind() == OpKind::kCacheWrite) throw Error("SCRIBBLER was asked to write a cache");
    return shared_reference()->prepare(problem, {});
  }
};

void expect_same(const char* what, const TensorView& cache, const HostTensor& expected) {
  if (!cache.present()) return;
  std::int64_t flat = 0;
  for (std::int64_t b = 0; b < cache.shape[0]; ++b) {
    for (std::int64_t s = 0; s < cache.shape[1]; ++s) {
      for (std::int64_t h = 0; h < cache.shape[2]; ++h) {
        const std::int64_t dims = cache.rank == 4 ? cache.shape[3] : 1;
        for (std::int64_t d = 0; d < dims; ++d, ++flat) {
          const void* at = cache.rank == 4 ? cache.at(b, s, h, d) : cache.at(b, s, h);
          require(load_code(cache.dtype, static_cast<const std::byte*>(at)) == expected.code(flat),
                  fmt::format("{}[{},{},{},{}] is as the reference writes it", what, b, s, h, d));
        }
      }
    }
  }
}

TEST(CompositeCache, HoldsTheSameBitsWhicheverBackendIsAsked) {
  const auto scribbler =
      make_executable_backend(std::make_shared<Scribbler>(), std::make_shared<Scribbler>());
  const AttentionBackendPtr writers[] = {
      reference_child(),
      cpu_child(),
      composite_of({reference_child(), cpu_child()}, constant_policy(1, 1), "first"),
      composite_of({cpu_child(), reference_child()}, mm_prefix_policy(), "second"),
      composite_of({cpu_child(), scribbler}, constant_policy(1, 1), "third"),
      composite_of({composite_of({cpu_child(), scribbler}, mm_prefix_policy(), "inner"), scribbler},
                   constant_policy(1, 1), "outer")};
  for_all<CacheWriteConfig>([&](const CacheWriteConfig& config) {
    const DrawnOperation asked = draw_operation(config);
    const Tensors expected = answer_operation(reference_backend(), asked.operation);
    ImplArguments layer;
    layer.num_heads = layer.num_kv_heads = config.num_heads;
    layer.head_size = config.head_size;
    for (const AttentionBackendPtr& writer : writers) {
      DrawnOperation own = draw_operation(config);
      const auto& op = own.as<CacheWriteOp>();
      writer->make_impl(layer)->do_kv_cache_update(update_of(op));
      expect_same("key_cache", op.cache.key, expected.at("key_cache_after"));
      expect_same("value_cache", op.cache.value, expected.at("value_cache_after"));
      if (!op.cache.k_scale_cache.present()) continue;
      expect_same("k_scale_cache", op.cache.k_scale_cache, expected.at("k_scale_cache_after"));
      expect_same("v_scale_cache", op.cache.v_scale_cache, expected.at("v_scale_cache_after"));
    }
  });
}

}  // namespace
}  // namespace attn::property_tests
