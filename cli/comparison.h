// The plain verdict: compares an answer with a recomputed expectation, tensor by tensor, within
// absolute and relative tolerances.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "attn/case_file.h"
#include "attn/verdict.h"
#include "cli/answer.h"

namespace attn::cli {

struct Comparison {
  std::vector<TensorComparison> tensors;

  Verdict verdict() const;
  double ratio() const;  // largest of all tensors
  // Of the first tensor that fails: "out[3,1,7] is 0.5, expected 0.25 within 0.01".
  std::string reason() const;
};

// What may differ, by tensor name and storage type of the actual tensor.
using ToleranceOf = std::function<Tolerance(const std::string& name, DType actual)>;

// Compares every output that the case asks for and `expected` holds; caches after a write bit for
// bit. A missing tensor, or one of a wrong shape or type, is an Error naming `where`.
Comparison compare_answer(const CaseFile& file, const TensorOf& expected, const TensorOf& actual,
                          const ToleranceOf& tolerance, const std::string& where);

// What a program's own arithmetic may add to a source's tolerance, by the type it stores: `out`
// relative to the largest |value| of the case and to the element, lse relative to 1 + |element|,
// what a cache write leaves nothing.
Tolerance arithmetic_allowance(const std::string& tensor, DType stored, double vmax);

}  // namespace attn::cli
