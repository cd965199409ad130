#include "cli/contract_choice.h"

#include <fmt/format.h>

#include <filesystem>

#include "attn/arithmetic.h"
#include "attn/error.h"
#include "cli/backends.h"
#include "core/contains.h"
#include "core/text_file.h"

namespace attn::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFile = 1 << 20;  // bytes; a whole contract has some 1,000

std::string contract_text(const std::string& path) {
  std::error_code failure;
  if (fs::file_size(path, failure) > kLargestFile || failure) {
    throw Error(fmt::format("{} is no contract: more than {} bytes", path, kLargestFile));
  }
  return text_of_file(path);
}

PrecisionContract contract_of_storage(DType out) {
  switch (out) {
    case DType::kF64:
      return {"f64"};
    case DType::kF16:
      return {"f16_flash"};
    case DType::kBF16:
      return {"bf16_flash"};
    default:
      return {"fp32"};
  }
}

// That an answer of type `out` was stored in a wider one; a log-sum-exp is never better than f32.
std::string widened(std::string_view out, DType stored) {
  if (stored == DType::kF64) return fmt::format(R"({{"out":"{}","lse":"f32"}})", out);
  if (stored == DType::kF32 && out != "f32") return fmt::format(R"({{"out":"{}"}})", out);
  return "{}";
}

}  // namespace

std::optional<PrecisionContract> contract_of_flag(const std::string& flag) {
  if (flag.empty()) return std::nullopt;
  const std::vector<std::string_view> names = contract_names();
  if (contains(names, flag)) return PrecisionContract{flag};
  std::error_code absent;
  if (!fs::is_regular_file(flag, absent)) {
    throw Error(fmt::format("--contract is '{}', neither a file nor one of {}", flag,
                            fmt::join(names, ", ")));
  }
  return parse_contract(contract_text(flag), flag);
}

PrecisionContract contract_of_answer(const ResultFile& actual, const AttentionProblem& problem) {
  for (const NamedBackend& named : all_backends()) {
    if (named.name == actual.backend() && named.backend &&
        named.backend->supports(problem).empty()) {
      return named.backend->contract(problem);
    }
  }
  for (const char* tensor : {"out", "logits"}) {
    if (const TensorView view = actual.tensor(tensor); view.present()) {
      return contract_of_storage(view.dtype);
    }
  }
  return {"fp32"};
}

std::optional<PrecisionContract> contract_of_source(const CaseIndexRow& row, DType stored) {
  if (row.source == "bug_hand") return std::nullopt;
  const std::string& precision = row.precision;
  if (precision == "f64" || precision == "exact") return PrecisionContract{"f64"};
  if (precision.starts_with("bf16")) {
    // ONNX's reference works operator by operator in the tensors' own type.
    const char* name = row.source == "onnx" ? "bf16_unfused" : "bf16_flash";
    return PrecisionContract{name, widened("bf16", stored)};
  }
  if (precision == "f16") return PrecisionContract{"f16_flash", widened("f16", stored)};
  return PrecisionContract{"fp32", widened("f32", stored)};
}

void add_contract(Json& document, const PrecisionContract& contract) {
  document["contract"] = contract.name;
  if (contract.overrides != "{}") document["overrides"] = Json::parse(contract.overrides);
}

std::string text_of(const PrecisionContract& contract) {
  return contract.overrides == "{}" ? contract.name : contract.name + " with changes";
}

}  // namespace attn::cli
