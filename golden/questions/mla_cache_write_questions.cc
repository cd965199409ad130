// Writes of latent rows.
#include <utility>

#include "golden/questions/latent_write.h"
#include "golden/questions/other_questions.h"

namespace attn::questions {
namespace {

void add_write(std::vector<Question>& to, std::string id, std::string name, std::string scenario,
               std::vector<std::string> rulings, const LatentWrite& write) {
  Question question = drawn_question(std::move(id), std::move(name), std::move(scenario),
                                     std::move(rulings), write.latent.source);
  question.operation = draw_latent_write(write, question.memory);
  to.push_back(std::move(question));
}

}  // namespace

void add_mla_cache_write_questions(std::vector<Question>& to) {
  add_write(
      to, "mla_cache_write-auto", "bf16 rows copied",
      "rope first; the token of slot -1 written into the last slot",
      {"mla_write_layout", "latent_first_rope_last", "slot_minus_one_skipped",
       "slot_mapping_length"},
      {.latent = {
           .source = {Family::kBell, 0x4004}, .dtype = DType::kBF16, .cache_dtype = DType::kBF16}});
  add_write(to, "mla_cache_write-fp8_e4m3", "e4m3 codes with one scale for both parts",
            "a rope part that is not divided by the scale",
            {"mla_write_layout", "kv_scales", "fp8_formats"},
            {.latent = {.source = {Family::kBell, 0x4002},
                        .dtype = DType::kBF16,
                        .cache_dtype = DType::kF8E4M3FN,
                        .k_scale = true}});
  add_write(to, "mla_cache_write-fp8_ds_mla", "rows with the scales of their four groups",
            "one scale for the whole row; a group of zeros divided by its scale of 0",
            {"mla_write_layout", "fp8_ds_mla_layout", "slot_minus_one_skipped"},
            {.latent = {.source = {Family::kChannelOutliers, 0x4005},
                        .latent = kDsMlaLatent,
                        .rope = kDsMlaRope,
                        .dtype = DType::kBF16,
                        .cache_dtype = DType::kBF16,
                        .encoding = KvEncoding::kFp8DsMla},
             .zero_group = true});
}

}  // namespace attn::questions
