#include "composite/mm_prefix_policy.h"

#include <fmt/core.h>

#include <algorithm>

#include "attn/error.h"
#include "attn/vllm_error.h"

namespace attn {
namespace {

bool has_unclamped_window(const std::vector<LayerTraits>& model, const std::string& name) {
  const auto layer = std::find_if(model.begin(), model.end(),
                                  [&](const LayerTraits& one) { return one.name == name; });
  if (layer == model.end()) {
    throw VllmError("KeyError", fmt::format("the model has no layer \"{}\"", name));
  }
  return layer->has_unclamped_window();
}

class MmPrefixPolicyClass final : public RoutingPolicyClass {
 public:
  std::string name() const override { return "mm_prefix"; }
  std::optional<int> num_children() const override { return 2; }
  std::unique_ptr<RoutingPolicy> make(const BuilderArguments& arguments,
                                      std::span<const AttentionBackendPtr>) const override {
    return std::make_unique<MmPrefixPolicy>(arguments);
  }
  int capture_child(const BuilderArguments&) const override { return 1; }
  // Behind an unclamped window even a single token may see more of an image than causal attention.
  GraphSupport cudagraph_support(const BuilderArguments& arguments) const override {
    const bool unclamped =
        std::any_of(arguments.model.begin(), arguments.model.end(),
                    [](const LayerTraits& layer) { return layer.has_unclamped_window(); });
    return unclamped ? GraphSupport::kNever : GraphSupport::kUniformSingleTokenDecode;
  }
  bool child_uses_mm_prefix(int child) const override { return child == 0; }
};

std::int64_t checked_query_len(const CommonAttentionMetadata& batch, std::int32_t row) {
  const auto num_rows = static_cast<std::int64_t>(batch.query_start_loc_cpu.size()) - 1;
  if (row < 0 || row >= num_rows) {
    throw VllmError("IndexError", fmt::format("mm_req_doc_ranges has row {}, outside [0, {})", row,
                                              std::max(num_rows, std::int64_t{0})));
  }
  return batch.query_len(row);
}

std::int64_t upper_bound(const std::vector<std::int32_t>& bounds, std::int32_t row) {
  if (static_cast<std::size_t>(row) >= bounds.size()) {
    throw Error(fmt::format("seq_lens_cpu_upper_bound has {} entries, none for row {}",
                            bounds.size(), row));
  }
  return bounds[static_cast<std::size_t>(row)];
}

// Does an image show one of the positions begin..end-1 more than causal attention does? It does
// when one of them is inside it with a later token of it at hand. What lies behind an unclamped
// window is shown by the image alone, so there it is enough that one of them is inside it.
bool shows_more(const ImageRange& image, std::int64_t begin, std::int64_t end, bool unclamped) {
  if (image.start >= image.end) return false;
  if (unclamped && image.start < end && image.end >= begin) return true;
  return image.start < end - 1 && image.end > begin;
}

}  // namespace

MmPrefixPolicy::MmPrefixPolicy(const BuilderArguments& arguments) {
  unclamped_window_ = std::any_of(
      arguments.layer_names.begin(), arguments.layer_names.end(),
      [&](const std::string& name) { return has_unclamped_window(arguments.model, name); });
}

// Why the row needs its images; none = it does not.
std::optional<std::string> MmPrefixPolicy::forcing(const CommonAttentionMetadata& batch,
                                                   const std::vector<std::int32_t>& bounds,
                                                   const RowImages& images) const {
  const std::int64_t query_len = checked_query_len(batch, images.row);
  if (query_len == 0 || (query_len == 1 && !unclamped_window_)) return std::nullopt;
  const std::int64_t end = upper_bound(bounds, images.row);
  const std::int64_t begin = end - query_len;
  for (const ImageRange& image : images.ranges) {
    if (!shows_more(image, begin, end, unclamped_window_)) continue;
    return fmt::format("tokens {}..{} are inside image [{},{}]",
                       std::max<std::int64_t>(begin, image.start),
                       std::min<std::int64_t>(end - 1, image.end), image.start, image.end);
  }
  return std::nullopt;
}

Route MmPrefixPolicy::select(const CommonAttentionMetadata& batch) const {
  if (!batch.mm_req_doc_ranges || batch.mm_req_doc_ranges->empty()) {
    return {1, "no image range", {}};
  }
  if (batch.max_query_len <= 1 && !unclamped_window_) return {1, "single tokens only", {}};
  if (!batch.seq_lens_cpu_upper_bound) {
    throw VllmError("AssertionError", "seq_lens_cpu_upper_bound is missing");
  }
  const std::vector<std::int32_t>& bounds = *batch.seq_lens_cpu_upper_bound;
  std::vector<ForcingRow> forced;
  for (const RowImages& images : *batch.mm_req_doc_ranges) {
    if (std::optional<std::string> reason = forcing(batch, bounds, images)) {
      forced.push_back({images.row, *std::move(reason)});
    }
  }
  if (forced.empty()) return {1, "no image shows a token more than causal attention", {}};
  std::string reason = fmt::format("row {}: {}", forced.front().row, forced.front().reason);
  return {0, std::move(reason), std::move(forced)};
}

RoutingPolicyPtr mm_prefix_policy() {
  static const RoutingPolicyPtr policy = std::make_shared<const MmPrefixPolicyClass>();
  return policy;
}

}  // namespace attn
