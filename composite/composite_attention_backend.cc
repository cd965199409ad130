#include "composite/composite_attention_backend.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "attn/error.h"
#include "attn/vllm_error.h"
#include "composite/composite_builder.h"
#include "composite/composite_impl.h"
#include "core/composite_description.h"

namespace attn {
namespace {

void expect_separate_updates(const std::vector<AttentionBackendPtr>& children) {
  std::vector<DescribedBackend> described;
  described.reserve(children.size());
  for (const AttentionBackendPtr& child : children) described.push_back(child->describe({}));
  for (const DescribedBackend& child : described) {
    if (!child.has_impl) {
      throw VllmError("NotImplementedError",
                      fmt::format("{} has no implementation class", child.name));
    }
  }
  for (const DescribedBackend& child : described) {
    if (child.update_in_forward) {
      throw VllmError("ValueError", "Composite backends require separate KV cache updates");
    }
  }
}

void expect_children(const std::vector<AttentionBackendPtr>& children) {
  if (children.size() < 2) {
    throw Error(fmt::format("a composite has {} children, expected at least 2", children.size()));
  }
  for (std::size_t i = 0; i < children.size(); ++i) {
    if (!children[i]) throw Error(fmt::format("children[{}] of a composite is null", i));
  }
}

void expect_options(const CompositeOptions& options) {
  for (std::size_t i = 0; i < options.kernel_block_sizes.size(); ++i) {
    if (options.kernel_block_sizes[i] < 1) {
      throw Error(fmt::format("kernel_block_sizes[{}] is {}, expected at least 1", i,
                              options.kernel_block_sizes[i]));
    }
  }
}

KernelBlocks block_list(BlockSizes sizes) {
  KernelBlocks blocks;
  blocks.sizes = std::move(sizes);
  return blocks;
}

// The first child that an earlier one has the class of; none = all differ.
std::optional<std::size_t> first_twice(const std::vector<AttentionBackendPtr>& children) {
  for (std::size_t i = 0; i < children.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (children[i]->full_class_name() == children[j]->full_class_name()) return i;
    }
  }
  return std::nullopt;
}

// Composites that are alive, so that the same arguments give the same one.
class Composites {
 public:
  std::shared_ptr<const CompositeAttentionBackend> find_or_make(
      std::vector<AttentionBackendPtr> children, RoutingPolicyPtr policy, CompositeOptions options,
      Conduct conduct) {
    const std::lock_guard lock(mutex_);
    std::erase_if(alive_, [](const auto& composite) { return composite.expired(); });
    for (const auto& one : alive_) {
      std::shared_ptr<const CompositeAttentionBackend> composite = one.lock();
      if (composite && composite->children() == children && composite->policy() == policy &&
          composite->options() == options && composite->conduct() == conduct) {
        return composite;
      }
    }
    auto composite = std::make_shared<const CompositeAttentionBackend>(
        std::move(children), std::move(policy), std::move(options), conduct);
    alive_.push_back(composite);
    return composite;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const CompositeAttentionBackend>> alive_;
};

Composites& composites() {
  static Composites all;
  return all;
}

}  // namespace

CompositeAttentionBackend::CompositeAttentionBackend(std::vector<AttentionBackendPtr> children,
                                                     RoutingPolicyPtr policy,
                                                     CompositeOptions options, Conduct conduct)
    : children_(std::move(children)),
      policy_(std::move(policy)),
      options_(std::move(options)),
      conduct_(conduct) {}

DescribedBackend CompositeAttentionBackend::describe(
    const std::optional<DeviceCapability>& capability) const {
  std::vector<DescribedChild> described;
  for (const AttentionBackendPtr& child : children_) {
    const auto index = static_cast<int>(described.size());
    described.push_back({child->describe(capability), policy_->child_uses_mm_prefix(index)});
  }
  return describe_composite(options_, capability, described);
}

BlockSizes CompositeAttentionBackend::kernel_block_sizes(const KvCacheSpec& spec) const {
  std::vector<KernelBlocks> blocks;
  blocks.reserve(children_.size());
  for (const AttentionBackendPtr& child : children_) {
    blocks.push_back(options_.kernel_block_sizes.empty()
                         ? block_list(child->kernel_block_sizes(spec))
                         : child->describe({}).blocks);
  }
  return composite_block_sizes(blocks, options_.kernel_block_sizes);
}

KvCacheSpec CompositeAttentionBackend::customize_spec(const KvCacheSpec& spec) const {
  const KvCacheSpec first = children_.front()->customize_spec(spec);
  for (const AttentionBackendPtr& child : children_) {
    if (child->customize_spec(spec) != first) {
      throw VllmError("ValueError", "Composite backends require the same KV cache spec");
    }
  }
  return first;
}

GraphSupport CompositeAttentionBackend::cudagraph_support(const BuilderArguments& arguments) const {
  GraphSupport weakest = policy_->cudagraph_support(arguments);
  for (const AttentionBackendPtr& child : children_) {
    weakest = std::min(weakest, child->cudagraph_support(arguments));
  }
  return weakest;
}

bool CompositeAttentionBackend::requires_block_table_width() const {
  return std::any_of(children_.begin(), children_.end(), [](const AttentionBackendPtr& child) {
    return child->requires_block_table_width();
  });
}

std::vector<std::string> CompositeAttentionBackend::reasons_against(
    const CommonAttentionMetadata& batch, const BuilderArguments& group) const {
  const Route route = policy_->make(group, children_)->select(batch);
  return children_[selected_child(route.child)]->reasons_against(batch, group);
}

std::unique_ptr<AttentionMetadataBuilder> CompositeAttentionBackend::make_builder(
    const BuilderArguments& arguments) const {
  return std::make_unique<CompositeAttentionBuilder>(shared_from_this(), arguments);
}

std::unique_ptr<AttentionImpl> CompositeAttentionBackend::make_impl(
    const ImplArguments& arguments) const {
  return std::make_unique<CompositeAttentionImpl>(shared_from_this(), arguments);
}

std::size_t CompositeAttentionBackend::selected_child(int child) const {
  if (conduct_ == Conduct::kVllm) return child == 0 ? 0 : 1;
  if (child < 0 || static_cast<std::size_t>(child) >= children_.size()) {
    throw Error(fmt::format("policy {} of {} selects child {}, outside [0, {})", policy_->name(),
                            name(), child, children_.size()));
  }
  return static_cast<std::size_t>(child);
}

std::size_t CompositeAttentionBackend::captured_child(int child) const {
  const auto count = static_cast<int>(children_.size());
  if (conduct_ == Conduct::kVllm) {
    if (child < -count || child >= count) {
      throw VllmError("IndexError", "tuple index out of range");
    }
    return static_cast<std::size_t>(child < 0 ? child + count : child);
  }
  if (child < 0 || child >= count) {
    throw Error(fmt::format("policy {} of {} captures child {}, outside [0, {})", policy_->name(),
                            name(), child, count));
  }
  return static_cast<std::size_t>(child);
}

AttentionBackendPtr compose_as(Conduct conduct, std::vector<AttentionBackendPtr> children,
                               RoutingPolicyPtr policy, CompositeOptions options) {
  expect_children(children);
  if (!policy) throw Error("the policy of a composite is null");
  expect_options(options);
  const std::optional<std::size_t> twice = first_twice(children);
  if (twice && conduct == Conduct::kVllm) return children.front();
  if (twice) {
    throw Error(fmt::format("children[{}] of a composite is {}, as an earlier child is", *twice,
                            to_string(children[*twice]->full_class_name())));
  }
  expect_separate_updates(children);
  expect_number_of_children(*policy, children.size());
  return composites().find_or_make(std::move(children), std::move(policy), std::move(options),
                                   conduct);
}

AttentionBackendPtr compose(std::vector<AttentionBackendPtr> children, RoutingPolicyPtr policy,
                            CompositeOptions options) {
  return compose_as(Conduct::kStrict, std::move(children), std::move(policy), std::move(options));
}

std::vector<AttentionBackendPtr> children_of(const AttentionBackend& backend) {
  const auto* composite = dynamic_cast<const CompositeAttentionBackend*>(&backend);
  return composite == nullptr ? std::vector<AttentionBackendPtr>{} : composite->children();
}

}  // namespace attn
