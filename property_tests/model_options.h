// What a contract leaves open: how one kernel that keeps it computes.
#pragma once

#include <cstdint>
#include <string>

#include "attn/arithmetic.h"
#include "attn/dtype.h"

namespace attn::property_tests {

// Errors that a contract allows beyond roundings: always the largest up or down, or drawn between.
enum class Injection : std::uint8_t { kNone, kUp, kDown, kRandom };

// Order of additions. kChunks: each lane sums neighbours; of dot products only, as nobody knows how
// many keys there will be. kMore: more partial sums than declared, of contracts that declare one.
enum class SumOrder : std::uint8_t { kForward, kBackward, kChunks, kMore };

// How the argument of an exponential is formed, of u and the maximum m.
enum class ExponentForm : std::uint8_t {
  kDifference,   // e^(u - m)
  kDifference2,  // 2^((u - m) c), c = log2 e
  kProducts2,    // 2^(u c - m c), both products rounded
  kFused2,       // 2^(u c - m c), the second product rounded
};

enum class SinkPlace : std::uint8_t {
  kStart,    // the running maximum starts with it
  kEnd,      // added when all keys are summed, the maximum then counts it
  kEndKeys,  // added when all keys are summed, relative to the maximum of the keys
  kPart      // merged as a part with its log-sum-exp
};

enum class MergeOrder : std::uint8_t { kFlat, kFold, kTree };

// Of expanded latent attention.
enum class LatentPath : std::uint8_t { kPrefill, kAbsorbed };

struct ModelOptions {
  std::uint64_t seed = 0;       // of drawn errors and of split places
  DType stored = DType::kF64;   // of the answer
  std::int64_t tile = 0;        // keys of an online step; 0 = two passes
  std::int64_t grid_shift = 0;  // where tiles, blocks and matrix steps begin
  std::int64_t parts = 1;       // of the keys
  bool even_parts = true;       // else cut at drawn places
  MergeOrder merge = MergeOrder::kFlat;
  SumOrder dot_order = SumOrder::kForward;
  SumOrder key_order = SumOrder::kForward;
  ExponentForm exponent = ExponentForm::kDifference;
  bool flush_exp = false;  // below exp_abs it is 0
  double lag = 0.0;        // of the running maximum, natural log
  SinkPlace sink = SinkPlace::kEnd;
  bool reciprocal = true;  // normalised through 1 / sum
  LatentPath latent = LatentPath::kPrefill;
  Injection weight_error = Injection::kNone;   // of exponentials of keys
  Injection rescale_error = Injection::kNone;  // of exponentials that rescale or merge
  Injection scalar_error = Injection::kNone;   // of tanh, biases, logarithms and the roundings of
                                               // a contract that the model has no operation for
  bool operator==(const ModelOptions&) const = default;
};

// The plainest kernel of a contract: no injected errors, everything in declared order and sizes.
ModelOptions plain_model_options(const Arithmetic& arithmetic, DType stored);

// One drawn from those that `arithmetic` admits, answers stored as `stored`.
ModelOptions draw_model_options(std::uint64_t seed, const Arithmetic& arithmetic,
                                DType stored = DType::kF64);

std::string to_string(const ModelOptions& options);  // one line

}  // namespace attn::property_tests
