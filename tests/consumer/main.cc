// One decode token over two keys with equal scores: the answer is the mean of the two values. Also
// written as a case file, for others to answer.
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "attn/backend.h"
#include "attn/case_writer.h"
#include "attn/problem.h"
#include "attn/reference.h"

int main() {
  const double query[] = {0.0};
  const double key[] = {0.0, 0.0};
  const double value[] = {1.0, 2.0};
  const std::int32_t query_start_loc[] = {0, 1};
  const std::int32_t seq_lens[] = {2};
  const std::int32_t kv_start_loc[] = {0, 2};

  attn::AttentionOp op;
  op.query = attn::contiguous(query, attn::DType::kF64, {1, 1, 1});
  op.query_start_loc = attn::contiguous(query_start_loc, attn::DType::kI32, {2});
  op.seq_lens = attn::contiguous(seq_lens, attn::DType::kI32, {1});
  op.kv.key = attn::contiguous(key, attn::DType::kF64, {2, 1, 1});
  op.kv.value = attn::contiguous(value, attn::DType::kF64, {2, 1, 1});
  op.kv.kv_start_loc = attn::contiguous(kv_start_loc, attn::DType::kI32, {2});
  op.mask.causal = true;
  const attn::AttentionProblem problem(op);

  double out[] = {NAN};
  double lse[] = {NAN};
  attn::Outputs outputs;
  outputs.out = attn::contiguous(out, attn::DType::kF64, {1, 1, 1});
  outputs.lse = attn::contiguous(lse, attn::DType::kF64, {1, 1});
  attn::run_once(*attn::make_reference_backend(), problem, outputs);

  attn::write_case("mean.safetensors", {.id = "mean", .variant = "causal", .name = "mean of two"},
                   op);
  const attn::CaseFile written = attn::CaseFile::read("mean.safetensors");

  std::printf("out %.17g, lse %.17g\n", out[0], lse[0]);
  const bool right = out[0] == 1.5 && std::abs(lse[0] - std::log(2.0)) < 1e-15;
  return right && written.problem().attention()->num_tokens() == 1 ? 0 : 1;
}
