#include "golden/case_inputs.h"

#include <fmt/core.h>

#include "attn/error.h"
#include "core/contains.h"

namespace attn::golden {

TensorView CaseInputs::take(const std::string& input, int rank) {
  const TensorView view = take_if_given(input);
  if (!view.present()) {
    throw Error(
        fmt::format("case.inputs.{} is missing, {} needs it", input, operation_text(object_.op)));
  }
  if (view.rank != rank) {
    throw Error(fmt::format("{} is {}, expected {} axes", input, to_string(view), rank));
  }
  return view;
}

TensorView CaseInputs::take_if_given(const std::string& input) {
  taken_.insert(input);
  const auto described = object_.inputs.find(input);
  if (described == object_.inputs.end()) return {};
  return file_.tensors().at(input).view(described->second.dtype);
}

void CaseInputs::expect_attributes(std::initializer_list<std::string_view> known,
                                   std::string_view context) const {
  for (const std::string& attribute : attrs().given) {
    if (!contains(known, attribute)) {
      throw Error(fmt::format("case.attrs.{} does not belong to {}", attribute, context));
    }
  }
}

void CaseInputs::expect_all_taken(std::string_view context) const {
  for (const auto& [input, description] : object_.inputs) {
    if (!taken_.contains(input)) {
      throw Error(fmt::format("case.inputs.{} does not belong to {}", input, context));
    }
  }
}

void CaseInputs::expect_block_size(std::string_view input, std::int64_t size) const {
  const std::optional<std::int64_t>& declared = attrs().block_size;
  if (declared && *declared != size) {
    throw Error(fmt::format("case.attrs.block_size is {}, but the blocks of {} hold {}", *declared,
                            input, size));
  }
}

void CaseInputs::expect_cache_dtype(std::string_view input, const TensorView& view,
                                    DType dtype) const {
  if (view.dtype != dtype) {
    throw Error(fmt::format("case.attrs.kv_cache_dtype is {}, but {} is {}, expected {}",
                            name(attrs().kv_cache_dtype), input, to_string(view),
                            attn::name(dtype)));
  }
}

std::string operation_text(OpKind op) { return fmt::format("operation {}", name(op)); }

}  // namespace attn::golden
