// Registries: what the decision tables' script does not show.
#include "attn/backend_registry.h"

#include <gtest/gtest.h>

#include "attn/selector.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

BackendSelector hopper(BackendRegistry registry) {
  return BackendSelector({.platform = Platform::kCuda, .capability = DeviceCapability{9, 0}},
                         std::move(registry));
}

SelectionRequest asks_for(const char* backend) {
  SelectionRequest request;
  request.backend = backend;
  request.config.head_size = 128;
  return request;
}

TEST(BackendRegistry, AnOverrideIsTheClassThatIsValidated) {
  BackendRegistry registry(RegistryKind::kAttention);
  registry.override_path("CUSTOM", registry.path("TRITON_ATTN"));
  SelectionRequest request = asks_for("CUSTOM");
  request.config.dtype = DType::kF32;  // Triton takes it
  const Selection selection = hopper(registry).select(request);
  EXPECT_FALSE(selection.error.has_value());
  EXPECT_EQ(selection.path, "vllm.v1.attention.backends.triton_attn.TritonAttentionBackend");
  EXPECT_EQ(selection.backend, "CUSTOM");
}

TEST(BackendRegistry, AnOverrideThatCannotBeImportedIsRefused) {
  BackendRegistry registry(RegistryKind::kAttention);
  registry.override_path("FLASH_ATTN", "my.mod.Cls");
  const Selection selection = hopper(registry).select(asks_for("FLASH_ATTN"));
  ASSERT_TRUE(selection.error.has_value());
  EXPECT_STREQ(selection.error->what(),
               "Selected backend AttentionBackendEnum.FLASH_ATTN is not valid for this "
               "configuration. Reason: [ModuleNotFoundError: No module named 'my']");
}

TEST(BackendRegistry, UnregisteredCustomRaisesUnwrapped) {
  const Selection selection =
      hopper(BackendRegistry(RegistryKind::kAttention)).select(asks_for("CUSTOM"));
  ASSERT_TRUE(selection.error.has_value());
  EXPECT_STREQ(selection.error->what(),
               "Backend CUSTOM must be registered before use. Use register_backend(Backend.CUSTOM, "
               "'your.module.YourClass')");
}

TEST(BackendRegistry, DigitsDoNotBeginAName) {
  BackendRegistry registry(RegistryKind::kAttention);
  EXPECT_THROW(registry.add("1ST", "a.B"), VllmError);
  EXPECT_THROW(registry.add("", "a.B"), VllmError);
  registry.add("_1ST", "a.B");
  EXPECT_EQ(registry.path("_1ST"), "a.B");
}

}  // namespace
}  // namespace attn
