// The attributes and input tensors of a case, as the builders of operations take them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>

#include "attn/view.h"
#include "golden/case_object.h"
#include "golden/safetensors.h"

namespace attn::golden {

// Every input must be taken once: what is left over does not belong to the operation.
class CaseInputs {
 public:
  CaseInputs(const CaseObject& object, const Safetensors& file) : object_(object), file_(file) {}

  const CaseObject& object() const { return object_; }
  const CaseAttributes& attrs() const { return object_.attrs; }

  // Throws Error when the tensor is missing or has another number of axes.
  TensorView take(const std::string& input, int rank);
  TensorView take_if_given(const std::string& input);  // absent when it is not; any axes

  // Throw Error naming the first attribute, or input not taken, that does not belong to `context`
  // ("operation mla").
  void expect_attributes(std::initializer_list<std::string_view> known,
                         std::string_view context) const;
  void expect_all_taken(std::string_view context) const;

  // Throws Error when attribute block_size is given and is not `size`, that of `input`.
  void expect_block_size(std::string_view input, std::int64_t size) const;

  // Throws Error when `view`, an input, is not of type `dtype`, which kv_cache_dtype says.
  void expect_cache_dtype(std::string_view input, const TensorView& view, DType dtype) const;

 private:
  const CaseObject& object_;
  const Safetensors& file_;
  std::set<std::string> taken_;
};

// "operation mla"
std::string operation_text(OpKind op);

}  // namespace attn::golden
