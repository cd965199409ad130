// Pack `extended`: the operations beside `attention`.
#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "golden/questions/differential_setup.h"
#include "golden/questions/extended_data.h"
#include "golden/questions/extended_questions.h"
#include "golden/questions/indexer_setup.h"
#include "golden/questions/latent_write.h"
#include "golden/questions/merge_setup.h"
#include "golden/questions/other_questions.h"
#include "golden/questions/topk_lists.h"
#include "golden/questions/write_setup.h"

namespace attn::questions {
namespace {

class Operations {
 public:
  Source next(Family family) {
    return {family, extended_seed(ExtendedTopic::kOperations, number_++)};
  }

  Question& add(std::string_view variant, std::string_view what, std::string name,
                std::vector<std::string> rulings, const Source& source) {
    questions_.push_back(drawn_question(extended_id(variant, what, source.family), std::move(name),
                                        std::string(exposes(source.family)), std::move(rulings),
                                        source));
    return questions_.back();
  }

  void add(Question question) { questions_.push_back(std::move(question)); }

  std::vector<Question> take() && { return std::move(questions_); }

 private:
  std::uint32_t number_ = 0;
  std::vector<Question> questions_;
};

std::size_t turn(Family family, std::size_t size) {
  return static_cast<std::size_t>(family) % size;
}

void add_differentials(Operations& to) {
  const AttentionSetup setups[] = {
      {.requests = {{3, 20}, {2, 33}}, .num_heads = 4, .num_kv_heads = 2, .head_size = 16},
      {.requests = {{2, 17}, {5, 5}},
       .num_heads = 4,
       .num_kv_heads = 4,
       .head_size = 64,
       .query_dtype = DType::kBF16,
       .kv_dtype = DType::kBF16}};
  for (const Family family : all_families()) {
    const bool norm = turn(family, 2) == 1;
    const AttentionSetup setup = with_source(setups[norm ? 1 : 0], to.next(family));
    if (!applies(family, setup)) continue;
    const std::string what = norm ? "norm" : "plain";
    Question question = differential_question(
        extended_id("differential", what, family),
        "pairs of heads, " + (norm ? std::string("with") : "without") + " norm",
        std::string(exposes(family)), setup);
    if (norm) add_norm(question, setup);
    to.add(std::move(question));
  }
}

struct LatentEntry {
  std::string what;
  std::vector<std::string> rulings;
  LatentSetup setup;
};

constexpr BlockOptions kPermuted = {.block_size = 8, .permuted = true, .unused_tail = true};

std::vector<LatentEntry> latent_entries() {
  return {
      {"decode",
       {"mla_absorbed", "mla_scale", "latent_first_rope_last", "block_permutation"},
       {.query_lens = {1, 1, 1},
        .seq_lens = {33, 8, 65},
        .num_heads = 4,
        .dtype = DType::kBF16,
        .cache_dtype = DType::kBF16,
        .blocks = kPermuted}},
      {"prefill",
       {"mla_absorbed", "mla_scale", "bottom_right"},
       {.query_lens = {9, 3}, .seq_lens = {9, 40}, .latent = 64, .blocks = kPermuted}},
      {"non_causal",
       {"mla_absorbed", "noncausal_sees_all"},
       {.query_lens = {5, 2}, .seq_lens = {17, 2}, .blocks = kPermuted, .causal = false}},
      {"kv_chunk",
       {"mla_absorbed", "split_equals_one_pass"},
       {.query_lens = {1, 4}, .seq_lens = {31, 50}, .blocks = kPermuted, .exec = {.kv_chunk = 7}}},
      {"expanded",
       {"mla_expanded", "mla_scale", "latent_first_rope_last"},
       {.query_lens = {6, 2},
        .seq_lens = {6, 29},
        .form = MlaForm::kExpanded,
        .blocks = kPermuted}},
      {"fp8_e4m3",
       {"mla_absorbed", "kv_scales"},
       {.query_lens = {1, 2},
        .seq_lens = {26, 39},
        .dtype = DType::kBF16,
        .cache_dtype = DType::kF8E4M3FN,
        .k_scale = true,
        .blocks = kPermuted}},
      {"fp8_ds_mla",
       {"mla_absorbed", "mla_scale", "fp8_ds_mla_layout"},
       {.query_lens = {1, 2},
        .seq_lens = {11, 20},
        .latent = kDsMlaLatent,
        .rope = kDsMlaRope,
        .nope = 128,
        .dtype = DType::kBF16,
        .cache_dtype = DType::kBF16,
        .encoding = KvEncoding::kFp8DsMla,
        .blocks = kPermuted}}};
}

void add_latent(Operations& to, const LatentEntry& entry, const std::string& what,
                const Source& source) {
  const LatentSetup setup = with_source(entry.setup, source);
  Question& question =
      to.add("mla", what, "latent attention, " + entry.what, entry.rulings, source);
  question.operation = draw_mla(setup, question.memory);
  if (source.family == Family::kPoisoned) question.flags = {"poisoned"};
}

void add_latents(Operations& to) {
  for (const LatentEntry& entry : latent_entries()) {
    for (const Family family : all_families()) {
      const Source source = to.next(family);
      if (applies(family, entry.setup)) add_latent(to, entry, entry.what, source);
    }
  }
  for (const std::int64_t keys : {128, 1024}) {
    LatentEntry entry = latent_entries().front();
    entry.setup.query_lens = {1, 2, 1};
    entry.setup.seq_lens = {keys - 1, keys, keys + 1};
    entry.setup.num_heads = 2;
    add_latent(to, entry, fmt::format("s{}", keys), to.next(Family::kBell));
  }
}

// Lists of positions, and of slots of any request; each with and without lengths and sinks.
void add_sparse(Operations& to) {
  constexpr std::int64_t kLength = 24;
  for (const Family family : all_families()) {
    const Source source = to.next(family);
    const bool of_pages = family == Family::kPoisoned || family == Family::kPermutedBlocks;
    const std::size_t form = of_pages ? 0 : turn(family, 4);
    const bool slots = form >= 2;
    // Every slot of the 48 holds a key.
    LatentSetup base = {.query_lens = {3, 2}, .seq_lens = {32, 16}, .blocks = {.block_size = 8}};
    if (!slots) {
      base.seq_lens = {30, 53};
      base.blocks = kPermuted;
    }
    if (!applies(family, base)) continue;
    const LatentSetup setup = with_source(base, source);
    constexpr std::string_view kForms[] = {"request", "request_lens", "slot", "slot_sinks"};
    Question& question =
        to.add("mla_sparse", kForms[form], slots ? "lists of slots" : "lists of positions",
               {"sparse_minus_one_skipped", "sparse_duplicates_count"}, source);
    MlaSparseOp op;
    op.mla = draw_mla(setup, question.memory);
    op.index_space = slots ? TopkIndexSpace::kSlot : TopkIndexSpace::kRequest;
    op.topk_indices =
        question.memory.keep(slots ? draw_lists(setup, kLength, [](std::int64_t) { return 48U; })
                                   : draw_positions(setup, kLength));
    if (form == 1) op.topk_lens = question.memory.keep(int_tensor({kLength, 1, 0, 17, 8}));
    if (form == 3) {
      op.sinks = question.memory.keep(
          drawn(DType::kF32, {setup.num_heads}, [&](const std::vector<std::int64_t>& at) {
            return 2.0 * bell(words_at(source, RandomTensor::kSinks, {.head = at[0]}));
          }));
    }
    question.operation = op;
    if (family == Family::kPoisoned) question.flags = {"poisoned"};
  }
}

void add_indexers(Operations& to) {
  const IndexerSetup setups[] = {{.k_start = {0, 0, 13, 35, 68, 0},
                                  .k_end = {69, 14, 13, 57, 69, 1},
                                  .num_keys = 69,
                                  .num_heads = 4,
                                  .head_size = 64},
                                 {.k_start = {0, 0, 0, 0},
                                  .k_end = {30, 31, 32, 33},
                                  .num_keys = 33,
                                  .num_heads = 8,
                                  .head_size = 128,
                                  .dtype = DType::kBF16,
                                  .key_dtype = DType::kF8E4M3FN,
                                  .k_scale = true}};
  constexpr std::string_view kWhat[] = {"ranges", "fp8"};
  for (const Family family : all_families()) {
    for (std::size_t i = 0; i < std::size(setups); ++i) {
      IndexerSetup setup = setups[i];
      setup.source = to.next(family);
      if (!applies_to_keys(family, setup.key_dtype)) continue;
      Question& question = to.add("indexer", kWhat[i], "logits of ranges of keys",
                                  {"indexer_k_end_exclusive"}, setup.source);
      question.operation = draw_indexer(setup, question.memory);
    }
  }
}

// No family has a say in partial states.
void add_merges(Operations& to) {
  constexpr DType kTypes[] = {DType::kF32, DType::kBF16, DType::kF16};
  for (const std::int64_t parts : {1, 2, 5, 16}) {
    for (const std::int64_t size : {16, 80, 256}) {
      for (const bool base_2 : {false, true}) {
        MergeSetup setup = {.source = to.next(Family::kBell),
                            .num_parts = parts,
                            .num_tokens = 7,
                            .num_heads = 3,
                            .head_size_v = size,
                            .out_dtype = kTypes[static_cast<std::size_t>(parts + size) % 3],
                            .base_2 = base_2};
        if (parts > 2) setup.state = sometimes_empty;
        Question& question = to.add(
            "merge", fmt::format("p{}_d{}{}", parts, size, base_2 ? "_base2" : ""),
            fmt::format("{} parts of {} dims{}", parts, size, parts > 2 ? ", some empty" : ""),
            {base_2 ? "merge_base2" : "merge_natural"}, setup.source);
        if (parts > 2) {
          question.rulings.insert(question.rulings.end(),
                                  {"merge_empty_side", "dead_out_not_read"});
        }
        question.operation = draw_merge(setup, question.memory);
      }
    }
  }
}

struct WriteEntry {
  std::string what;
  std::vector<std::string> rulings;
  WriteSetup setup;
};

WriteEntry write_entry(std::string what, std::string ruling, DType from, DType to,
                       const WriteSetup& more) {
  WriteEntry entry = {
      std::move(what), {std::move(ruling), "slot_minus_one_skipped", "slot_mapping_length"}, more};
  entry.setup.num_tokens = 19;
  entry.setup.num_rows = 21;
  entry.setup.head_size = 64;
  entry.setup.head_size_v = 48;
  entry.setup.num_blocks = 4;
  entry.setup.block_size = 8;
  entry.setup.dtype = from;
  entry.setup.key_cache_dtype = to;
  entry.setup.value_cache_dtype = to;
  return entry;
}

std::vector<WriteEntry> write_entries() {
  using enum DType;
  const std::string converted = "cache_dtype_converted_or_rejected";
  const std::string per_token = "per_token_head_scales";
  return {write_entry("auto_bf16", converted, kF32, kBF16, {}),
          write_entry("auto_f16", converted, kBF16, kF16, {.heads_first = true}),
          write_entry("fp8_e4m3", "kv_scales", kBF16, kF8E4M3FN, {.scales = Scales::kOne}),
          write_entry("fp8_e5m2", "per_head_scales", kF32, kF8E5M2,
                      {.heads_first = true, .scales = Scales::kPerHead}),
          write_entry("fp8_e4m3fnuz", "fp8_formats", kF16, kF8E4M3FNUZ, {}),
          write_entry("int8_per_token_head", per_token, kF32, kI8,
                      {.encoding = KvEncoding::kPerTokenHead}),
          write_entry("fp8_per_token_head", per_token, kBF16, kF8E4M3FN,
                      {.encoding = KvEncoding::kPerTokenHead, .heads_first = true})};
}

// Rows of keys and values; what the slots held before is drawn in the type of the cache.
bool applies_to_rows(Family family, const WriteSetup& setup) {
  AttentionSetup cache;
  cache.kv_dtype = setup.key_cache_dtype;
  cache.encoding = setup.encoding;
  const bool needle = family == Family::kNeedleVisible || family == Family::kNeedleHidden;
  return !needle && applies(family, cache);
}

void add_writes(Operations& to) {
  const std::vector<WriteEntry> entries = write_entries();
  for (const Family family : all_families()) {
    std::vector<WriteEntry> usable;
    for (const WriteEntry& entry : entries) {
      if (applies_to_rows(family, entry.setup)) usable.push_back(entry);
    }
    // Two of them, so that every form meets several families.
    for (std::size_t i = 0; i < usable.size() && i < 2; ++i) {
      WriteEntry& entry =
          usable[(turn(family, usable.size()) + i * (usable.size() / 2)) % usable.size()];
      entry.setup.source = to.next(family);
      Question& question = to.add("cache_write", entry.what, "tokens written into a paged cache",
                                  entry.rulings, entry.setup.source);
      question.operation = draw_write(entry.setup, question.memory);
    }
  }
}

void add_latent_writes(Operations& to) {
  const LatentSetup setups[] = {
      {.latent = 128, .rope = 32, .dtype = DType::kBF16, .cache_dtype = DType::kBF16},
      {.latent = 128,
       .rope = 32,
       .dtype = DType::kF32,
       .cache_dtype = DType::kF8E4M3FN,
       .k_scale = true},
      {.latent = kDsMlaLatent,
       .rope = kDsMlaRope,
       .dtype = DType::kBF16,
       .cache_dtype = DType::kBF16,
       .encoding = KvEncoding::kFp8DsMla}};
  constexpr std::string_view kWhat[] = {"auto", "fp8_e4m3", "fp8_ds_mla"};
  for (const Family family : all_families()) {
    for (std::size_t i = 0; i < std::size(setups); ++i) {
      LatentWrite write = {.latent = setups[i]};
      write.latent.source = to.next(family);
      if (!applies_to_keys(family, write.latent.cache_dtype)) continue;
      Question& question =
          to.add("mla_cache_write", kWhat[i], "latent rows written",
                 {"mla_write_layout", "slot_minus_one_skipped"}, write.latent.source);
      question.operation = draw_latent_write(write, question.memory);
    }
  }
}

}  // namespace

std::vector<Question> extended_operations() {
  Operations all;
  add_differentials(all);
  add_latents(all);
  add_sparse(all);
  add_indexers(all);
  add_merges(all);
  add_writes(all);
  add_latent_writes(all);
  return std::move(all).take();
}

}  // namespace attn::questions
