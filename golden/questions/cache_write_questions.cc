// Writes of new keys and values into a paged cache: which slots change, and into which codes.
#include <utility>

#include "core/special_values.h"
#include "golden/questions/other_questions.h"
#include "golden/questions/write_setup.h"

namespace attn::questions {
namespace {

void add_write(std::vector<Question>& to, std::string id, std::string name, std::string scenario,
               std::vector<std::string> rulings, const WriteSetup& setup) {
  to.push_back(drawn_question("cache_write-" + std::move(id), std::move(name), std::move(scenario),
                              std::move(rulings), setup.source));
  to.back().operation = draw_write(setup, to.back().memory);
}

void add_plain(std::vector<Question>& to) {
  add_write(to, "auto", "bf16 into bf16",
            "rows behind the last slot written, or the token of slot -1 written into the last slot",
            {"slot_minus_one_skipped", "slot_mapping_length"},
            {.source = {Family::kBell, 0x3f0c},
             .dtype = DType::kBF16,
             .key_cache_dtype = DType::kBF16,
             .value_cache_dtype = DType::kBF16,
             .first_key = {-0.0, kInf, -kInf, kNaN, 0x1p-133},
             .first_value = {kNaN, -0.0}});
  // Ties of bf16 and f16, normal and subnormal.
  add_write(
      to, "auto-converting", "float32 into bf16 keys and f16 values, heads before slots",
      "a conversion that truncates, or rounds ties away from zero",
      {"cache_dtype_converted_or_rejected", "hnd_layout", "slot_minus_one_skipped"},
      {.source = {Family::kBell, 0x3f02},
       .key_cache_dtype = DType::kBF16,
       .value_cache_dtype = DType::kF16,
       .heads_first = true,
       .first_key = {0x1.01p0, 0x1.03p0, -0x1.01p0, -0x1.03p0, 0x1p-134, 0x3p-134, -0.0, kInf,
                     kNaN},
       .first_value = {0x1.002p0, 0x1.006p0, 2049.0, 0x1p-25, 0x3p-25, 65519.0, -kInf, -0.0}});
}

void add_fp8(std::vector<Question>& to) {
  add_write(to, "fp8_e4m3", "bf16 into e4m3 with one scale",
            "a scale multiplied instead of divided by; an overflow that becomes NaN",
            {"kv_scales", "fp8_formats", "slot_minus_one_skipped"},
            {.source = {Family::kBell, 0x3f0d},
             .dtype = DType::kBF16,
             .key_cache_dtype = DType::kF8E4M3FN,
             .value_cache_dtype = DType::kF8E4M3FN,
             .scales = Scales::kOne,
             .first_key = {kInf, -kInf, kNaN, 0x1p20, -0x1p20, 0x1p-30, -0x1p-30},
             .first_value = {-0x1p14, 0x1p-12, kNaN}});
  add_write(to, "fp8_e5m2-per_head", "float32 into e5m2 with a scale for each head",
            "the scale of another head; infinities kept instead of saturated",
            {"per_head_scales", "fp8_formats", "hnd_layout"},
            {.source = {Family::kBell, 0x3f04},
             .key_cache_dtype = DType::kF8E5M2,
             .value_cache_dtype = DType::kF8E5M2,
             .heads_first = true,
             .scales = Scales::kPerHead,
             .first_key = {kInf, -kInf, kNaN, 0x1p30, 0x1p-20, -0x1p-40},
             .first_value = {-0x1p30, kInf}});
  // Ties of e4m3fnuz; -0 does not exist; 248 lies between the largest value and the next power.
  add_write(to, "fp8_e4m3fnuz", "f16 into e4m3fnuz without a scale",
            "the bias of e4m3fn, or -0 that becomes NaN", {"fp8_formats"},
            {.source = {Family::kBell, 0x3f05},
             .dtype = DType::kF16,
             .key_cache_dtype = DType::kF8E4M3FNUZ,
             .value_cache_dtype = DType::kF8E4M3FNUZ,
             .first_key = {-0.0, 1.0625, 1.1875, -1.0625, 240.0, 248.0, -1000.0, kInf, kNaN,
                           0x1p-10, 0x1p-11, 0x3p-11, -0x1p-14},
             .first_value = {-0.0, 0x1p-24}});
}

void add_per_token_head(std::vector<Question>& to) {
  // The largest magnitude is QMAX, so the scale is 1 and halves are ties; zeros have a scale too.
  add_write(to, "int8_per_token_head", "float32 into int8 with a scale for each token and head",
            "ties rounded to even; a vector of zeros divided by its scale of 0",
            {"per_token_head_scales", "slot_minus_one_skipped"},
            {.source = {Family::kBell, 0x3f10},
             .key_cache_dtype = DType::kI8,
             .value_cache_dtype = DType::kI8,
             .encoding = KvEncoding::kPerTokenHead,
             .first_key = {127.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 126.5, -126.5, 0.25, -0.75, 0.0,
                           100.0, -127.0, 64.5, -64.5},
             .first_value = std::vector<double>(8, 0.0)});
  add_write(to, "fp8_per_token_head", "bf16 into e4m3 with a scale for each token and head",
            "a largest value of another token; scales laid out as the codes are",
            {"per_token_head_scales", "hnd_layout"},
            {.source = {Family::kBell, 0x3f07},
             .dtype = DType::kBF16,
             .key_cache_dtype = DType::kF8E4M3FN,
             .value_cache_dtype = DType::kF8E4M3FN,
             .encoding = KvEncoding::kPerTokenHead,
             .heads_first = true,
             .first_key = {-448.0, 1.0625, 1.1875, -1.0625, 0x1p-10, 0x3p-10, 440.0, -0.0, 0.0,
                           17.0, 19.0, -17.0, 31.0, 0x1p-20, 416.0, -432.0},
             .first_value = std::vector<double>(8, 0.0)});
}

}  // namespace

void add_cache_write_questions(std::vector<Question>& to) {
  add_plain(to);
  add_fp8(to);
  add_per_token_head(to);
}

}  // namespace attn::questions
