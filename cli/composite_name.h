// "COMPOSITE(A,B[,...][,policy=P])": the names of composites.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "attn/problem_composite.h"

namespace attn::cli {

bool is_composite_name(std::string_view name);

// Without an object it cannot be used here, for the reason given.
struct NamedComposite {
  std::shared_ptr<const ProblemComposite> backend;
  std::string reason;
};

// Of a name that is_composite_name. Children are names of `list backends` and composites; policies
// those of composite.h that a word and a number name: mm_prefix (the default), constant(V),
// max_query_len(K), uniform(K), supports, decode_only, max_seq_len(K). Throws Error for any other
// text, an unknown child, one child twice, fewer than two. The object lives as long as the program.
const NamedComposite& composite_named(const std::string& name);

}  // namespace attn::cli
