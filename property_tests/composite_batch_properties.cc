// Batches derived from batches: every token that is still there sees the keys that it saw.
#include <fmt/core.h>

#include <algorithm>
#include <functional>
#include <iostream>
#include <optional>
#include <set>

#include "attn/derived_batches.h"
#include "attn/error.h"
#include "attn/executable_backend.h"
#include "attn/local_batches.h"
#include "attn/random.h"
#include "attn/reference.h"
#include "attn/ubatch.h"
#include "core/contains.h"
#include "property_tests/drawn_batch.h"
#include "property_tests/property.h"

namespace attn::property_tests {
namespace {

using Batch = CommonAttentionMetadata;
using Slots = std::set<std::int64_t>;

BatchProblem problem_of(const Batch& batch, const DrawnBatch& drawn, const ImplArguments& layer) {
  ForwardArguments forward;
  forward.query = drawn.data.op().query;
  forward.kv_cache = drawn.data.op().kv;
  forward.output.dtype = DType::kF32;
  return attention_problem(batch, layer, forward);
}

// The slots that each query token sees, in the order of tokens. Blocks are physical, so that the
// sets of a derived batch compare with those of its origin whatever it calls rows and positions.
std::vector<Slots> seen(const Batch& batch, const DrawnBatch& drawn, std::int64_t chunk = 0) {
  const BatchProblem made = problem_of(batch, drawn, drawn.layer);
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

// A query token, the positions of itself and of a key.
struct SeenKey {
  std::int32_t token = 0;
  std::int64_t position = 0;
  std::int64_t key = 0;
};

// Is there a token that sees such a key, on a layer without a window? A batch serves layers with
// any, so what it refuses must not depend on one.
bool some_token_sees(const Batch& batch, const DrawnBatch& drawn,
                     const std::function<bool(const SeenKey&)>& such, std::int64_t chunk = 0) {
  ImplArguments layer = drawn.layer;
  layer.sliding_window.reset();
  const BatchProblem made = problem_of(batch, drawn, layer);
  AttentionOp op = *made.problem.attention();
  op.mask.attention_chunk_size = chunk;
  for (std::int64_t r = 0; r < op.num_reqs(); ++r) {
    const std::int32_t first = batch.query_start_loc[static_cast<std::size_t>(r)];
    for (std::int64_t row = 0; row < op.query_len(r); ++row) {
      SeenKey one{first + static_cast<std::int32_t>(row), op.context_len(r) + row, 0};
      for (const KeyRange& range : visible_ranges(op, r, 0, row)) {
        for (one.key = range.begin; one.key < range.end; ++one.key) {
          if (such(one)) return true;
        }
      }
    }
  }
  return false;
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

// The derived batch; none when its derivation refused, which must be when and only when that was
// predicted.
template <class Derive>
auto derived(bool refused, const Derive& derive) -> std::optional<decltype(derive())> {
  std::optional<decltype(derive())> result;
  try {
    result = derive();
  } catch (const Error& error) {
    expect_that(refused, fmt::format("a batch that can be derived was refused: {}", error.what()));
    return std::nullopt;
  }
  expect_that(!refused, "a batch was derived that shows its tokens other keys");
  return result;
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

  // `compared` says of a config whether its batches were derived and compared, not refused.
  void for_all_derived(
      const std::function<bool(const ProblemConfig&, Derivation)>& compared) const {
    for (const Derivation derivation : {Derivation::kVllm, Derivation::kFaithful}) {
      int drawn = 0;
      int refused = 0;
      for_all(space(derivation), [&](const ProblemConfig& config) {
        ++drawn;
        if (!compared(config, derivation)) ++refused;
      });
      if (drawn < 100) {
        std::cout << "the share of refused batches is not checked below 100 batches\n";
        continue;
      }
      EXPECT_LT(2 * refused, drawn) << "most batches are refused";
      EXPECT_TRUE(derivation == Derivation::kVllm || refused > 0) << "no batch is refused";
    }
  }
};
INSTANTIATE_TEST_SUITE_P(, DerivedBatch, testing::Values("all"), backend_name);

// The first rows with all of their tokens and some of the padding, or with one token less.
TEST_P(DerivedBatch, UnpaddedShowsEveryTokenItsKeys) {
  for_all_derived([](const ProblemConfig& config, Derivation derivation) {
    const DrawnBatch drawn = draw_batch(config);
    const std::int32_t rows = drawn.batch.num_reqs - draw(config.seed, 1, 3) / 2;
    const std::int32_t theirs = drawn.batch.query_start_loc[static_cast<std::size_t>(rows)];
    const std::int32_t rest = drawn.batch.num_actual_tokens - theirs;
    const bool cuts =
        derivation == Derivation::kFaithful && theirs > 0 && draw(config.seed, 2, 4) == 0;
    const std::int32_t tokens = cuts ? theirs - 1 : theirs + draw(config.seed, 3, rest + 1);
    const auto cut = derived(cuts, [&] { return unpadded(drawn.batch, tokens, rows, derivation); });
    if (!cut) return false;
    expect_same("unpadded", seen(*cut, drawn), seen(drawn.batch, drawn), tokens_between(0, theirs));
    return true;
  });
}

TEST_P(DerivedBatch, OfAMicroBatchShowsEveryTokenItsKeys) {
  for_all_derived([](const ProblemConfig& config, Derivation derivation) {
    const DrawnBatch drawn = draw_batch(config);
    const Batch& batch = drawn.batch;
    std::vector<std::int32_t> lens;
    lens.reserve(batch.seq_lens.size());
    for (std::int32_t row = 0; row < batch.num_reqs; ++row) lens.push_back(batch.query_len(row));
    const std::int32_t tokens = batch.query_start_loc.back();
    const std::int32_t count = 2 + draw(config.seed, 1, 2);
    if (tokens < count) return true;
    const std::vector<Slots> origin = seen(batch, drawn);
    bool all = true;
    for (const UBatchSlice& slice :
         create_ubatch_slices(lens, tokens, batch.num_reqs, count, std::nullopt).slices) {
      if (slice.first_token == slice.past_token || slice.first_row == slice.past_row) continue;
      // Keys of the last row from here on are not in the part.
      const auto last = static_cast<std::size_t>(slice.past_row) - 1;
      const std::int32_t end =
          batch.seq_lens[last] - std::max(batch.query_start_loc[last + 1] - slice.past_token, 0);
      const bool refused = some_token_sees(batch, drawn, [&](const SeenKey& one) {
        return one.token >= std::max(slice.first_token, batch.query_start_loc[last]) &&
               one.token < slice.past_token && one.key >= end;
      });
      const auto part = derived(refused, [&] { return split_batch(slice, batch, derivation); });
      all = all && part;
      if (!part) continue;
      expect_same("micro-batch", seen(*part, drawn), origin,
                  tokens_between(slice.first_token, slice.past_token));
    }
    return all;
  });
}

// The last tokens of each row, how many is drawn. Else also with one left out, or backwards.
std::vector<std::int32_t> wanted_tokens(const Batch& batch, std::uint64_t seed, bool only_last) {
  std::vector<std::int32_t> wanted;
  for (std::int32_t row = 0; row < batch.num_reqs; ++row) {
    const auto entry = static_cast<std::uint64_t>(row);
    const std::int32_t count = draw(seed, 10 + entry, batch.query_len(row) + 1);
    const std::int32_t past = batch.query_start_loc[static_cast<std::size_t>(row) + 1];
    const std::int32_t left_out =
        !only_last && draw(seed, 20 + entry, 4) == 0 ? past - 1 - draw(seed, 30 + entry, 2) : -1;
    for (std::int32_t t = past - count; t < past; ++t) {
      if (t != left_out) wanted.push_back(t);
    }
  }
  if (!only_last && draw(seed, 40, 8) == 0) std::reverse(wanted.begin(), wanted.end());
  return wanted;
}

TEST_P(DerivedBatch, OfFastPrefillShowsEveryTokenItsKeys) {
  for_all_derived([](const ProblemConfig& config, Derivation derivation) {
    DrawnBatch drawn = draw_batch(config);
    Batch& batch = drawn.batch;
    const std::vector<std::int32_t> wanted =
        wanted_tokens(batch, config.seed, derivation == Derivation::kVllm);
    batch.logits_indices_padded = wanted;
    batch.num_logits_indices = static_cast<std::int32_t>(wanted.size());
    batch.max_logits_per_req = batch.max_query_len;
    // A wanted token whose successor in its row is not wanted is not among the row's last ones.
    const std::set<std::int32_t> set(wanted.begin(), wanted.end());
    const auto is_start = [&](std::int32_t token) {
      return contains(batch.query_start_loc, token);
    };
    const bool gaps = std::any_of(wanted.begin(), wanted.end(), [&](std::int32_t token) {
      return !is_start(token + 1) && !set.contains(token + 1);
    });
    const bool ordered = std::is_sorted(wanted.begin(), wanted.end());
    const auto fast = derived((gaps || !ordered) && batch.max_query_len != 1,
                              [&] { return fast_prefill(batch, derivation); });
    if (!fast) return false;
    expect_that(fast->has_value() == (batch.max_query_len != 1), "single tokens serve as they are");
    if (!fast->has_value()) return true;
    expect_same("fast prefill", seen(**fast, drawn), seen(batch, drawn),
                {wanted.begin(), wanted.end()});
    return true;
  });
}

// Every block of the cache becomes another one; what lies behind a row's keys is left as it is.
void reverse_blocks(BlockTable& table, std::int64_t num_blocks) {
  for (std::int32_t& block : table.entries) {
    if (block >= 0 && block < num_blocks) block = static_cast<std::int32_t>(num_blocks) - 1 - block;
  }
}

TEST_P(DerivedBatch, OfLocalChunksShowsEveryTokenItsChunk) {
  for_all_derived([](const ProblemConfig& config, Derivation derivation) {
    const DrawnBatch drawn = draw_batch(config);
    Batch batch = drawn.batch;
    // Padding rows have no keys.
    if (draw(config.seed, 4, 8) != 0) {
      batch = unpadded(batch, batch.query_start_loc.back(), config.num_reqs, derivation);
    }
    const int block_size = drawn.group.spec.block_size;
    const std::int32_t chunk = block_size * (1 + draw(config.seed, 3, 3));
    const bool refused =
        contains(batch.seq_lens, 0) || batch.rswa_prefix_lens ||
        some_token_sees(
            batch, drawn,
            [&](const SeenKey& one) { return one.key / chunk != one.position / chunk; }, chunk);
    auto local =
        derived(refused, [&] { return make_local_batch(batch, chunk, block_size, derivation); });
    if (!local) return false;
    const auto tokens = tokens_between(0, batch.query_start_loc.back());
    expect_same("local chunks", seen(local->batch, drawn), seen(drawn.batch, drawn, chunk), tokens);
    // Another table of the same requests, as the next step or another cache group has.
    reverse_blocks(batch.block_table, drawn.data.op().kv.key.shape[0]);
    local->batch.block_table = local->blocks.remap(batch.block_table);
    expect_same("local chunks of another table", seen(local->batch, drawn),
                seen(batch, drawn, chunk), tokens);
    return true;
  });
}

}  // namespace
}  // namespace attn::property_tests
