// Where policies send batches: soundly, by the batch alone, and as their graph level promises.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "attn/executable_backend.h"
#include "attn/random.h"
#include "attn/reference.h"
#include "composite/idle_ranges.h"
#include "property_tests/composite_parts.h"
#include "property_tests/drawn_batch.h"
#include "property_tests/property.h"

namespace attn::property_tests {
namespace {

std::vector<AttentionBackendPtr> two_children() { return {reference_child(), cpu_child()}; }

Route selected(const NamedPolicy& policy, const BuilderArguments& group,
               const CommonAttentionMetadata& batch) {
  return policy.policy->make(group, two_children())->select(batch);
}

// Requests of which a row sees other keys with the images than without, by the reference.
std::vector<std::int64_t> requests_with_masks(const AttentionOp& op) {
  AttentionOp plain = op;
  plain.mask.mm_prefix_ranges = {};
  std::vector<std::int64_t> requests;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    bool differs = false;
    for (std::int64_t row = 0; row < op.query_len(r) && !differs; ++row) {
      differs = visible_ranges(op, r, 0, row) != visible_ranges(plain, r, 0, row);
    }
    if (differs) requests.push_back(r);
  }
  return requests;
}

class Routing : public PropertyTest {
 protected:
  static const NamedPolicy& mm_prefix() { return policies_of_two().front(); }

  static ConfigSpace images() {
    ConfigSpace space = batch_space();
    space.masks = {MaskKind::kRanges, MaskKind::kRangesWindow, MaskKind::kRangesClamped};
    return space;
  }
};
INSTANTIATE_TEST_SUITE_P(, Routing, testing::Values("mm_prefix"), backend_name);

TEST_P(Routing, ToTheCausalChildIsSound) {
  for_all(images(), [&](const ProblemConfig& config) {
    const DrawnBatch drawn = draw_batch(config);
    const std::vector<std::int64_t> masked = requests_with_masks(drawn.data.op());
    const Route route = selected(mm_prefix(), drawn.group, drawn.batch);
    RC_CLASSIFY(route.child == 1 && drawn.batch.mm_req_doc_ranges->empty(), "no image");
    RC_CLASSIFY(route.child == 1, "causal child");
    expect_that(route.child == 0 || masked.empty(),
                fmt::format("requests {} need an image mask", fmt::join(masked, ",")));
    for (const ForcingRow& forcing : route.forced_by) {
      expect_that(drawn.batch.query_len(forcing.row) > 0, "a padding row forces nothing");
    }
  });
}

// On layers with a clamped window, or with none, the rule is exact; the rows that forced it are the
// requests with image masks.
TEST_P(Routing, ToTheGeneralChildIsNeededUnlessAWindowIsUnclamped) {
  ConfigSpace space = images();
  space.masks = {MaskKind::kRanges, MaskKind::kRangesClamped};
  for_all(space, [&](const ProblemConfig& config) {
    const DrawnBatch drawn = draw_batch(config);
    const std::vector<std::int64_t> masked = requests_with_masks(drawn.data.op());
    const Route route = selected(mm_prefix(), drawn.group, drawn.batch);
    std::vector<std::int64_t> forced;
    for (const ForcingRow& forcing : route.forced_by) forced.push_back(forcing.row);
    std::sort(forced.begin(), forced.end());
    expect_that(route.child == (masked.empty() ? 1 : 0) && forced == masked,
                fmt::format("child {} forced by {}, requests {} need an image mask", route.child,
                            fmt::join(forced, ","), fmt::join(masked, ",")));
  });
}

// Rows of the batch in another order; every field that has rows.
CommonAttentionMetadata shuffled(const CommonAttentionMetadata& batch, std::uint64_t seed) {
  const std::vector<std::int32_t> order =
      random_permutation(seed, batch.num_reqs, RandomTensor::kBlockTable, 2);
  CommonAttentionMetadata result = batch;
  result.block_table.entries.clear();
  if (batch.mm_req_doc_ranges) result.mm_req_doc_ranges->clear();
  for (std::int32_t to = 0; to < batch.num_reqs; ++to) {
    const std::int32_t from = order[static_cast<std::size_t>(to)];
    const auto t = static_cast<std::size_t>(to);
    const auto f = static_cast<std::size_t>(from);
    result.query_start_loc[t + 1] = result.query_start_loc[t] + batch.query_len(from);
    result.seq_lens[t] = batch.seq_lens[f];
    const auto row = batch.block_table.row(from);
    result.block_table.entries.insert(result.block_table.entries.end(), row.begin(), row.end());
    (*result.is_prefilling)[t] = (*batch.is_prefilling)[f];
    if (batch.causal_per_req) (*result.causal_per_req)[t] = (*batch.causal_per_req)[f];
    if (batch.rswa_prefix_lens) (*result.rswa_prefix_lens)[t] = (*batch.rswa_prefix_lens)[f];
    if (!batch.mm_req_doc_ranges) continue;
    for (const RowImages& images : *batch.mm_req_doc_ranges) {
      if (images.row == from) result.mm_req_doc_ranges->push_back({to, images.ranges});
    }
  }
  result.query_start_loc_cpu = result.query_start_loc;
  result.seq_lens_cpu_upper_bound = result.seq_lens;
  return result;
}

TEST_P(Routing, DependsOnTheBatchAloneAndNotOnTheOrderOfItsRows) {
  for_all(batch_space(), [&](const ProblemConfig& config) {
    const DrawnBatch drawn = draw_batch(config);
    const CommonAttentionMetadata other = shuffled(drawn.batch, config.seed);
    for (const NamedPolicy& policy : policies_of_two()) {
      const auto made = policy.policy->make(drawn.group, two_children());
      const int child = made->select(drawn.batch).child;
      expect_that(0 <= child && child < 2, policy.name);
      made->select(other);
      expect_that(made->select(drawn.batch).child == child, policy.name + " forgets");
      expect_that(selected(policy, drawn.group, other).child == child,
                  policy.name + " looks at the order of rows");
    }
  });
}

// What uniform batches of more than one token a row hold.
enum class Uniform : std::uint8_t { kDecodes, kPrefillsToo };

// The nearest batch that a graph of this level may replay; none for NEVER.
std::optional<CommonAttentionMetadata> replayable(const CommonAttentionMetadata& batch,
                                                  GraphSupport level, std::int32_t length,
                                                  Uniform holds) {
  if (level == GraphSupport::kNever) return std::nullopt;
  if (level == GraphSupport::kAlways) return batch;
  const std::int32_t query_len = level == GraphSupport::kUniformSingleTokenDecode ? 1 : length;
  CommonAttentionMetadata uniform = batch;
  uniform.max_query_len = uniform.max_seq_len = 0;
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    const auto r = static_cast<std::size_t>(row);
    const std::int32_t own = batch.query_len(row) == 0 ? 0 : query_len;
    uniform.query_start_loc[r + 1] = uniform.query_start_loc[r] + own;
    if (own != 0) uniform.seq_lens[r] = std::max(uniform.seq_lens[r], own);
    const bool may_prefill = holds == Uniform::kPrefillsToo && own > 1;
    (*uniform.is_prefilling)[r] = may_prefill && (*batch.is_prefilling)[r];
    uniform.max_query_len = std::max(uniform.max_query_len, own);
    uniform.max_seq_len = std::max(uniform.max_seq_len, uniform.seq_lens[r]);
  }
  uniform.query_start_loc_cpu = uniform.query_start_loc;
  uniform.seq_lens_cpu_upper_bound = uniform.seq_lens;
  uniform.num_actual_tokens = uniform.query_start_loc.back();
  uniform.slot_mapping.assign(static_cast<std::size_t>(uniform.num_actual_tokens), -1);
  return uniform;
}

// Longest uniform length that the engine of a policy schedules, and the only one.
std::int32_t uniform_length(const NamedPolicy& policy, std::uint64_t seed) {
  if (policy.name == "uniform(1)") return 1;
  if (policy.name == "uniform(3)") return 3;
  if (policy.name == "max_query_len(4)") return 1 + static_cast<std::int32_t>(seed % 4);
  return 1 + static_cast<std::int32_t>(seed % 6);
}

TEST_P(Routing, OfEveryBatchThatAGraphMayReplayIsToTheCapturedChild) {
  for_all(batch_space(), [&](const ProblemConfig& config) {
    const DrawnBatch drawn = draw_batch(config);
    for (const NamedPolicy& policy : policies_of_two()) {
      const GraphSupport level = policy.policy->cudagraph_support(drawn.group);
      // The other policies say that they are for engines with uniform decodes, or do not look.
      const Uniform holds =
          policy.name == "decode_only" ? Uniform::kPrefillsToo : Uniform::kDecodes;
      const auto batch = replayable(drawn.batch, level, uniform_length(policy, config.seed), holds);
      if (!batch) continue;
      const Route route = selected(policy, drawn.group, *batch);
      expect_that(route.child == policy.policy->capture_child(drawn.group),
                  fmt::format("{} of level {} replays child {}: {}", policy.name, name(level),
                              route.child, route.reason));
    }
  });
}

// A row that needs an image mask is answered by a child that sees them: one that the policy
// declares to, or that has no reason against the batch. A child without image masks has one against
// these batches and no others.
TEST_P(Routing, OfImageMasksIsToAChildThatSeesThem) {
  const auto plain = std::make_shared<StandIn>("CPU_WITHOUT_IMAGES", shared_cpu(),
                                               static_cast<std::uint32_t>(Feature::kMmPrefix));
  const std::vector<AttentionBackendPtr> children = {
      reference_child(), make_executable_backend(plain, shared_reference())};
  for_all(batch_space(), [&](const ProblemConfig& config) {
    const DrawnBatch drawn = draw_batch(config);
    const bool masked = !requests_with_masks(drawn.data.op()).empty();
    RC_CLASSIFY(masked, "image masks");
    expect_that(children[1]->reasons_against(drawn.batch, drawn.group).empty() != masked,
                "a child without image masks has a reason against them alone");
    expect_that(without_idle_ranges(plain)->supports(drawn.data.problem()).empty() != masked,
                "and so has the backend against the problem");
    for (const NamedPolicy& policy : policies_of_two()) {
      const int child = policy.policy->make(drawn.group, children)->select(drawn.batch).child;
      const bool declared = policy.policy->child_uses_mm_prefix(child);
      const bool able = children[static_cast<std::size_t>(child)]
                            ->reasons_against(drawn.batch, drawn.group)
                            .empty();
      const bool sees = policy.sees_images_everywhere ? declared : able;
      expect_that(!masked || sees, fmt::format("{} sends images to child {}", policy.name, child));
    }
  });
}

}  // namespace
}  // namespace attn::property_tests
