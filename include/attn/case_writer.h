// Any operation as an attn-case/1 file: the inverse of CaseFile.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "attn/case_file.h"
#include "attn/operation.h"

namespace attn {

// What a case file says beside the operation.
struct CaseLabels {
  std::string id;                  // [A-Za-z0-9][A-Za-z0-9_.-]*
  std::string variant;             // for grouping
  std::string name;                // what is asked, in a few words
  std::string scenario;            // which mistake the answer shows
  std::vector<std::string> flags;  // poisoned, padded_rows, q_len_gt_seq_len, seq_len_zero
  CaseResult result = CaseResult::kValid;
};

// The bytes of a case file; the same for any strides of the views. Inputs are copied densely in
// the axis order of files: layout HND where the heads lie further apart than the slots. Attributes
// that are off are left out.
//
// `outputs` have names, types and shapes as output_specs() lists them, `conditioning` as
// conditioning_specs() does; both may have any strides. Without outputs the file is a question:
// what a valid operation answers is described, in F64; an invalid case asks for nothing.
//
// The operation is not judged: a case labelled invalid may break any precondition that a case file
// can express. Throws Error for what it cannot: a field the schema forbids, a missing input, an
// unnamed combination of encoding and type, tensors on a device; and for an invalid operation under
// the label valid.
std::vector<std::byte> to_case_file(const CaseLabels& labels, const Operation& operation,
                                    const std::vector<NamedTensor>& outputs = {},
                                    const std::vector<NamedTensor>& conditioning = {});

// Writes it atomically.
void write_case(const std::filesystem::path& path, const CaseLabels& labels,
                const Operation& operation, const std::vector<NamedTensor>& outputs = {},
                const std::vector<NamedTensor>& conditioning = {});

}  // namespace attn
