// get_attn_backend's cache and per-kind requests.
#include "attn/layer_request.h"

#include <gtest/gtest.h>

namespace attn {
namespace {

BackendSelector on(int major) {
  return BackendSelector({.platform = Platform::kCuda, .capability = DeviceCapability{major, 0}},
                         BackendRegistry(RegistryKind::kAttention));
}

TEST(LayerRequest, PerKindBackendComesBeforeTheRuns) {
  RunConfig run;
  run.backend = "FLASH_ATTN";
  run.backend_per_kind = {{CacheGroupKind::kSlidingWindow, "TRITON_ATTN"}};
  LayerArguments layer = {.head_size = 64};
  EXPECT_EQ(build_layer_request(layer, run).request.backend, "FLASH_ATTN");
  layer.has_sliding_window = true;
  EXPECT_EQ(build_layer_request(layer, run).request.backend, "TRITON_ATTN");
  layer.attn_type = AttentionTypeArgument{AttentionType::kEncoderOnly};
  EXPECT_EQ(build_layer_request(layer, run).request.backend, "FLASH_ATTN");
}

TEST(SelectionCache, IgnoresTheDevice) {
  SelectionCache cache;
  const LayerRequest asked = build_layer_request({.head_size = 64}, RunConfig{});
  EXPECT_EQ(cache.select(on(9), asked).backend, "FLASH_ATTN");
  EXPECT_EQ(cache.select(on(10), asked).backend, "FLASH_ATTN");
  cache.clear();
  EXPECT_EQ(cache.select(on(10), asked).backend, "FLASHINFER");
}

TEST(SelectionCache, KeepsOnlySuccesses) {
  SelectionCache cache;
  const LayerRequest asked =
      build_layer_request({.head_size = 64, .use_sparse = true}, RunConfig{});
  EXPECT_TRUE(cache.select(on(9), asked).error.has_value());
  EXPECT_EQ(cache.size(), 0U);
}

TEST(SelectionCache, KeyHoldsTheRunsCacheDType) {
  SelectionCache cache;
  RunConfig run;
  cache.select(on(9), build_layer_request({.head_size = 64}, run));
  run.cache_dtype = "fp8";
  cache.select(on(9), build_layer_request({.head_size = 64}, run));
  cache.select(on(9), build_layer_request({.head_size = 64}, run));
  EXPECT_EQ(cache.size(), 2U);
}

}  // namespace
}  // namespace attn
