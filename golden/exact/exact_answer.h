// The values of golden packs: every output of an operation, correctly rounded.
//
// Evaluated from the definition with MPFR, one row and head at a time: decode exactly, gather the
// keys the row sees, then maximum, sums, exp, tanh, log, sqrt and one division. No code is shared
// with any reference or backend.
#pragma once

#include "attn/output.h"
#include "attn/problem.h"

namespace attn::exact {

// Fills every present view of `outputs`; an exec changes nothing.
//
//   out, lse, logits, cond_o   F64, nearest, ties to even; zero is +0, NaN 0x7ff8000000000000
//   out_codes, caches          their codes, bit for bit (rules that say float32 are computed in it)
//   cond_*                     rounded toward +inf; of cond_row the fields kRowMax, kRowLse and
//                              kRowKeysMax to nearest, kRowMass toward -inf
//
// Each row is evaluated with 200 bits and again with 400; where the bytes differ the bits are
// doubled until two evaluations in a row agree. Returns the most bits any row was checked with (400
// or more), 0 when nothing had to be rounded (cache writes, no rows). The bytes do not depend on
// the number of threads.
//
// Throws Error, naming the output element, when 6400 bits do not decide, or when a quotient out /
// output_scale lies within 2^-40 (relative) of a place where out_codes changes; for caches of i4,
// which no case can hold; and when a view is not what output_specs and conditioning_specs say or
// lse_form is not the default one.
int answer_exactly(const AttentionProblem& problem, const Outputs& outputs);

}  // namespace attn::exact
