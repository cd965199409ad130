// Composite backends: several children, one cache, and a policy that says for every batch which
// child answers it. After vLLM's create_composite_attention_backend, for any number of children and
// with a typed route.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "attn/attention_backend.h"
#include "attn/routing_policy.h"

namespace attn {

struct CompositeOptions {
  std::string class_name = "CompositeBackend";
  std::string backend_name = "COMPOSITE";
  std::string module = "composite.module";
  std::vector<int> head_sizes;          // empty = what the children support
  std::vector<int> kernel_block_sizes;  // empty = what the children have in common
  std::optional<int> device_major;      // the only major capability it runs on
  // KV connectors and attention types: what all children take. vLLM: every connector, decoder only.
  bool connector_and_types_of_children = false;

  bool operator==(const CompositeOptions&) const = default;
};

// Two or more children; child 0 is the general one, which alone writes the cache. The same
// arguments give the same object while one is alive. Throws VllmError where vLLM raises; Error for
// less than two children, a null one, one child twice, or without a policy. Its builders throw
// Error, naming the value, when the policy names a child that there is not; its implementations
// when they are handed another backend's metadata.
AttentionBackendPtr compose(std::vector<AttentionBackendPtr> children, RoutingPolicyPtr policy,
                            CompositeOptions options);

// The children of a composite; empty for another backend.
std::vector<AttentionBackendPtr> children_of(const AttentionBackend& backend);

// Where a metadata object goes: the route of the outermost composite, then of the composite that it
// names, and so on. Empty for metadata that no composite built.
struct RouteStep {
  const AttentionBackend* composite = nullptr;
  Route route;
};
std::vector<RouteStep> route_of(const AttentionMetadata& metadata);

// The metadata of the backend that answers in the end.
const AttentionMetadata& leaf_of(const AttentionMetadata& metadata);

}  // namespace attn
