#include "attn/selector_config.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "attn/error.h"
#include "core/config_switches.h"

namespace attn {
namespace {

constexpr std::array<std::string_view, kNumAttentionTypes> kTypeNames = {
    "decoder", "encoder", "encoder_only", "encoder_decoder"};
constexpr std::array<std::string_view, kNumAttentionTypes> kTypeMembers = {
    "AttentionType.DECODER", "AttentionType.ENCODER", "AttentionType.ENCODER_ONLY",
    "AttentionType.ENCODER_DECODER"};

constexpr std::string_view kOpening = "AttentionSelectorConfig(";

const char* printed(bool value) { return value ? "True" : "False"; }

constexpr std::span kSwitches(kConfigSwitches);
constexpr auto kBeforeType = kSwitches.first<kSwitchesBeforeType>();
constexpr auto kBehindType = kSwitches.subspan<kSwitchesBeforeType>();

// Takes "name=value" fields off a repr, in order.
class Fields {
 public:
  explicit Fields(std::string_view text) : text_(text), rest_(text) {
    if (!rest_.starts_with(kOpening) || !rest_.ends_with(')')) fail("AttentionSelectorConfig(...)");
    rest_.remove_prefix(kOpening.size());
    rest_.remove_suffix(1);
  }

  std::string_view next(std::string_view name) {
    if (!rest_.starts_with(name) || !rest_.substr(name.size()).starts_with('=')) fail(name);
    rest_.remove_prefix(name.size() + 1);
    const std::size_t end = rest_.find(", ");
    const std::string_view value = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 2);
    return value;
  }
  int integer(std::string_view name) { return to_integer(next(name), name); }
  std::optional<int> optional_integer(std::string_view name) {
    const std::string_view word = next(name);
    return word == "None" ? std::nullopt : std::optional(to_integer(word, name));
  }
  bool boolean(std::string_view name) {
    const std::string_view word = next(name);
    if (word != "True" && word != "False") fail(name);
    return word == "True";
  }
  void finish() const {
    if (!rest_.empty()) fail("nothing more");
  }
  [[noreturn]] void fail(std::string_view expected) const {
    throw Error(fmt::format("the repr \"{}\" has no valid {}", text_, expected));
  }

 private:
  int to_integer(std::string_view word, std::string_view name) const {
    int value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) fail(name);
    return value;
  }

  std::string_view text_;
  std::string_view rest_;
};

AttentionTypeArgument type_argument(std::string_view word, const Fields& fields) {
  const auto member = std::find(kTypeMembers.begin(), kTypeMembers.end(), word);
  if (member != kTypeMembers.end()) {
    return {static_cast<AttentionType>(member - kTypeMembers.begin()), false};
  }
  const std::optional<AttentionType> type = attention_type_from_name(word);
  if (!type) fields.fail("attn_type");
  return {*type, true};
}

}  // namespace

std::string_view name(AttentionType type) { return kTypeNames[static_cast<std::size_t>(type)]; }

std::optional<AttentionType> attention_type_from_name(std::string_view name) {
  const auto found = std::find(kTypeNames.begin(), kTypeNames.end(), name);
  if (found == kTypeNames.end()) return std::nullopt;
  return static_cast<AttentionType>(found - kTypeNames.begin());
}

std::string to_string(AttentionTypeArgument argument) {
  const auto index = static_cast<std::size_t>(argument.type);
  return std::string(argument.plain ? kTypeNames[index] : kTypeMembers[index]);
}

std::string_view model_dtype_name(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return "float16";
    case DType::kBF16:
      return "bfloat16";
    case DType::kF32:
      return "float32";
    default:
      throw Error(fmt::format("dtype is {}, expected f16, bf16 or f32", name(dtype)));
  }
}

std::optional<DType> model_dtype_from_name(std::string_view name) {
  for (const DType dtype : {DType::kF16, DType::kBF16, DType::kF32}) {
    if (model_dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

std::string to_string(const AttentionSelectorConfig& config) {
  std::string text = fmt::format("{}head_size={}, dtype=torch.{}, kv_cache_dtype={}, block_size={}",
                                 kOpening, config.head_size, model_dtype_name(config.dtype),
                                 config.kv_cache_dtype ? name(*config.kv_cache_dtype) : "None",
                                 config.block_size ? std::to_string(*config.block_size) : "None");
  for (const ConfigSwitch& one : kBeforeType) {
    text += fmt::format(", {}={}", one.name, printed(config.*one.field));
  }
  text += fmt::format(", attn_type={}", to_string(config.attn_type));
  for (const ConfigSwitch& one : kBehindType) {
    text += fmt::format(", {}={}", one.name, printed(config.*one.field));
  }
  return text + ")";
}

AttentionSelectorConfig selector_config_from_repr(std::string_view text) {
  Fields fields(text);
  AttentionSelectorConfig config;
  config.head_size = fields.integer("head_size");
  const std::string_view dtype = fields.next("dtype");
  const std::optional<DType> model_dtype =
      dtype.starts_with("torch.") ? model_dtype_from_name(dtype.substr(6)) : std::nullopt;
  if (!model_dtype) fields.fail("dtype");
  config.dtype = *model_dtype;
  const std::string_view kv = fields.next("kv_cache_dtype");
  if (kv != "None") config.kv_cache_dtype = cache_dtype_from_name(kv);
  if (kv != "None" && !config.kv_cache_dtype) fields.fail("kv_cache_dtype");
  config.block_size = fields.optional_integer("block_size");
  for (const ConfigSwitch& one : kBeforeType) config.*one.field = fields.boolean(one.name);
  config.attn_type = type_argument(fields.next("attn_type"), fields);
  for (const ConfigSwitch& one : kBehindType) config.*one.field = fields.boolean(one.name);
  fields.finish();
  return config;
}

}  // namespace attn
