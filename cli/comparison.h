// Judges an answer against a recomputed expectation, tensor by tensor, within plain tolerances.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "attn/case_file.h"
#include "attn/verdict.h"
#include "cli/answer.h"
#include "cli/document.h"

namespace attn::cli {

struct JudgedTensor {
  TensorComparison comparison;
  Tolerance tolerance;
};

struct Comparison {
  std::vector<JudgedTensor> tensors;

  Verdict verdict() const;
  double ratio() const;  // largest of all tensors
  std::string reason()
      const;  // of the first tensor that fails: "out[3,1,7] is 0.5, expected 0.25 within 0.01"
  Json tensors_json() const;
};

// Gives the view of a tensor of an answer; absent when it has none.
using TensorOf = std::function<TensorView(const std::string& name)>;

// What may differ, by tensor name and storage type of the actual tensor.
using ToleranceOf = std::function<Tolerance(const std::string& name, DType actual)>;

// Compares every output that the case asks for and `expected` holds; caches after a write bit for
// bit. A missing tensor, or one of a wrong shape or type, is an Error naming `where`.
Comparison compare_answer(const CaseFile& file, const TensorOf& expected, const TensorOf& actual,
                          const ToleranceOf& tolerance, const std::string& where);
Comparison compare_answer(const CaseFile& file, const Answer& expected, const TensorOf& actual,
                          const ToleranceOf& tolerance, const std::string& where);

// What a program's own arithmetic may add to a source's tolerance, by the type it stores: `out`
// relative to the largest |value| of the case and to the element, lse relative to 1 + |element|,
// what a cache write leaves nothing.
Tolerance arithmetic_allowance(const std::string& tensor, DType stored, double vmax);

}  // namespace attn::cli
