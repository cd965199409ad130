// Batches derived from batches: every token that is still there sees the keys that it saw.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "attn/derived_batches.h"
#include "attn/error.h"
#include "attn/executable_backend.h"
#include "attn/local_batches.h"
#include "attn/random.h"
#include "attn/reference.h"
#include "attn/ubatch.h"
#include "property_tests/drawn_batch.h"
#include "property_tests/property.h"

namespace attn::property_tests {
namespace {

using Batch = CommonAttentionMetadata;
using Slots = std::set<std::int64_t>;

// The slots that each query token sees, in the order of tokens. Blocks are physical, so that the
// sets of a derived batch compare with those of its origin whatever it calls rows and positions.
std::vector<Slots> seen(const Batch& batch, const DrawnBatch& drawn, std::int64_t chunk = 0) {
  ForwardArguments forward;
  forward.query = drawn.data.op().query;
  forward.kv_cache = drawn.data.op().kv;
  forward.output.dtype = DType::kF32;
  const BatchProblem made = attention_problem(batch, drawn.layer, forward);
  AttentionOp op = *made.problem.attention();
  op.mask.attention_chunk_size = chunk;
  const std::int64_t block_size = op.kv.block_size();
  std::vector<Slots> tokens;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    for (std::int64_t row = 0; row < op.query_len(r); ++row) {
      Slots slots;
      for (const KeyRange& range : visible_ranges(op, r, 0, row)) {
        for (std::int64_t k = range.begin; k < range.end; ++k) {
          slots.insert(int_at(op.kv.block_table, r, k / block_size) * block_size + k % block_size);
        }
      }
      tokens.push_back(std::move(slots));
    }
  }
  return tokens;
}

void expect_same(const char* what, const std::vector<Slots>& derived,
                 const std::vector<Slots>& origin, const std::vector<std::size_t>& tokens) {
  expect_that(derived.size() == tokens.size(),
              fmt::format("{}: {} tokens of {}", what, derived.size(), tokens.size()));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    expect_that(derived[i] == origin[tokens[i]], fmt::format("{}: token {}", what, tokens[i]));
  }
}

std::vector<std::size_t> tokens_between(std::int32_t first, std::int32_t past) {
  std::vector<std::size_t> tokens;
  for (std::int32_t t = first; t < past; ++t) tokens.push_back(static_cast<std::size_t>(t));
  return tokens;
}

std::int32_t draw(std::uint64_t seed, std::uint64_t what, std::int32_t n) {
  return static_cast<std::int32_t>(below(random_words(seed, what, RandomTensor::kConfiguration, 2),
                                         static_cast<std::uint32_t>(n)));
}

// A derivation said that no batch can hold its result.
struct Refused {};

template <class Derive>
auto derived(const Derive& derive) {
  try {
    return derive();
  } catch (const Error&) {
    throw Refused();
  }
}

class DerivedBatch : public PropertyTest {
 protected:
  // Of every mask for the faithful forms; of plain causal ones for vLLM's, which drop the others.
  static ConfigSpace space(Derivation derivation) {
    ConfigSpace space = batch_space();
    space.most_reqs = 4;
    if (derivation == Derivation::kVllm) space.masks = {MaskKind::kCausal, MaskKind::kWindow};
    return space;
  }

  // A faithful form may refuse; the most must come through.
  void for_all_derived(const std::function<void(const ProblemConfig&, Derivation)>& holds) {
    for (const Derivation derivation : {Derivation::kVllm, Derivation::kFaithful}) {
      int refused = 0;
      int drawn = 0;
      for_all(space(derivation), [&](const ProblemConfig& config) {
        ++drawn;
        try {
          holds(config, derivation);
        } catch (const Refused&) {
          expect_that(derivation == Derivation::kFaithful, "vLLM's forms refuse nothing here");
          ++refused;
        }
      });
      EXPECT_LE(2 * refused, drawn) << "faithful forms refuse most batches";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, DerivedBatch, testing::Values("all"), backend_name);

TEST_P(DerivedBatch, UnpaddedShowsEveryTokenItsKeys) {
  for_all_derived([](const ProblemConfig& config, Derivation derivation) {
    const DrawnBatch drawn = draw_batch(config);
    const auto tokens = static_cast<std::int32_t>(drawn.num_tokens());
    const Batch cut =
        derived([&] { return unpadded(drawn.batch, tokens, config.num_reqs, derivation); });
    expect_same("unpadded", seen(cut, drawn), seen(drawn.batch, drawn), tokens_between(0, tokens));
  });
}

TEST_P(DerivedBatch, OfAMicroBatchShowsEveryTokenItsKeys) {
  for_all_derived([](const ProblemConfig& config, Derivation derivation) {
    const DrawnBatch drawn = draw_batch(config);
    std::vector<std::int32_t> lens;
    for (std::int32_t row = 0; row < drawn.batch.num_reqs; ++row) {
      lens.push_back(drawn.batch.query_len(row));
    }
    const std::int32_t tokens = drawn.batch.query_start_loc.back();
    const std::int32_t count = 2 + draw(config.seed, 1, 2);
    if (tokens < count) return;
    const std::vector<Slots> origin = seen(drawn.batch, drawn);
    const UBatchSlices slices =
        create_ubatch_slices(lens, tokens, drawn.batch.num_reqs, count, std::nullopt);
    for (const UBatchSlice& slice : slices.slices) {
      if (slice.first_token == slice.past_token || slice.first_row == slice.past_row) continue;
      const Batch part = derived([&] { return split_batch(slice, drawn.batch, derivation); });
      expect_same("micro-batch", seen(part, drawn), origin,
                  tokens_between(slice.first_token, slice.past_token));
    }
  });
}

TEST_P(DerivedBatch, OfFastPrefillShowsEveryTokenItsKeys) {
  for_all_derived([](const ProblemConfig& config, Derivation derivation) {
    DrawnBatch drawn = draw_batch(config);
    Batch& batch = drawn.batch;
    std::vector<std::size_t> wanted;
    batch.logits_indices_padded.emplace();
    batch.max_logits_per_req = 0;
    for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
      const std::int32_t count =
          draw(config.seed, 10 + static_cast<std::uint64_t>(row), batch.query_len(row) + 1);
      const std::int32_t past = batch.query_start_loc[static_cast<std::size_t>(row) + 1];
      for (std::int32_t t = past - count; t < past; ++t) {
        batch.logits_indices_padded->push_back(t);
        wanted.push_back(static_cast<std::size_t>(t));
      }
      batch.max_logits_per_req = std::max(*batch.max_logits_per_req, count);
    }
    batch.num_logits_indices = static_cast<std::int32_t>(wanted.size());
    const std::optional<Batch> fast = derived([&] { return fast_prefill(batch, derivation); });
    if (!fast) return;
    expect_same("fast prefill", seen(*fast, drawn), seen(batch, drawn), wanted);
  });
}

TEST_P(DerivedBatch, OfLocalChunksShowsEveryTokenItsChunk) {
  for_all_derived([](const ProblemConfig& asked, Derivation derivation) {
    ProblemConfig config = asked;
    if (config.mask == MaskKind::kRswa) config.mask = MaskKind::kCausal;
    DrawnBatch drawn = draw_batch(config);
    const int block_size = drawn.group.spec.block_size;
    // Precondition of chunks: every row has keys.
    for (std::int32_t row = 0; row < drawn.batch.num_reqs; ++row) {
      if (drawn.batch.seq_lens[static_cast<std::size_t>(row)] == 0) return;
    }
    const std::int32_t chunk = block_size * (1 + draw(config.seed, 3, 3));
    const LocalBatch local =
        derived([&] { return make_local_batch(drawn.batch, chunk, block_size, derivation); });
    const auto tokens = static_cast<std::int32_t>(drawn.num_tokens());
    expect_same("local chunks", seen(local.batch, drawn), seen(drawn.batch, drawn, chunk),
                tokens_between(0, tokens));
    expect_that(local.blocks.remap(drawn.batch.block_table) == local.batch.block_table,
                "the table of the batch, mapped again");
  });
}

}  // namespace
}  // namespace attn::property_tests
