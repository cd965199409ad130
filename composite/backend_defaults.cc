// What backends, builders and implementations do unless they say otherwise.
#include <fmt/core.h>

#include <string_view>

#include "attn/attention_backend.h"
#include "attn/error.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

[[noreturn]] void throw_unsupported(std::string_view type, const AttentionBackend& backend,
                                    std::string_view method) {
  throw VllmError(std::string(type), fmt::format("{} does not support {}", backend.name(), method));
}

constexpr std::string_view kFusedMethods[] = {"do_qk_norm_rope_kvcache_update",
                                              "do_qk_norm_mrope_kvcache_update",
                                              "do_rope_and_kv_cache_update"};

}  // namespace

MetadataPtr AttentionMetadataBuilder::update_block_table(const AttentionMetadata&,
                                                         const BlockTable&,
                                                         const std::vector<std::int64_t>&) {
  throw_unsupported("NotImplementedError", backend(), "update_block_table");
}

MetadataPtr AttentionMetadataBuilder::update_draft_decode_metadata(const AttentionMetadata&) {
  throw_unsupported("NotImplementedError", backend(), "update_draft_decode_metadata");
}

void AttentionImpl::do_kv_cache_update(const CacheUpdate&) const {
  throw_unsupported("AttributeError", backend(), "do_kv_cache_update");
}

void AttentionImpl::do_fused_update(FusedUpdate which, const CacheUpdate&) const {
  throw_unsupported("NotImplementedError", backend(),
                    kFusedMethods[static_cast<std::size_t>(which)]);
}

const AttentionImpl* find_attention_impl_variant(const AttentionImpl& impl,
                                                 const AttentionBackend& backend) {
  if (impl.backend().full_class_name() == backend.full_class_name()) return &impl;
  for (const AttentionImpl* variant : impl.variants()) {
    if (variant == &impl) continue;
    if (const AttentionImpl* found = find_attention_impl_variant(*variant, backend)) return found;
  }
  return nullptr;
}

std::string to_string(const ClassName& name) {
  return fmt::format("{}.{}", name.module, name.name);
}

void expect_built_by(const AttentionMetadata& metadata, const AttentionBackend& backend) {
  const AttentionBackend& builder = metadata.backend();
  if (&builder == &backend) return;
  if (builder.full_class_name() == backend.full_class_name()) {
    throw Error(fmt::format("metadata was built by another {} than the one it is handed to",
                            backend.name()));
  }
  throw Error(fmt::format("metadata was built by {} ({}), not by {} ({})", builder.name(),
                          to_string(builder.full_class_name()), backend.name(),
                          to_string(backend.full_class_name())));
}

}  // namespace attn
