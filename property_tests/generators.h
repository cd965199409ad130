// What RapidCheck draws: configs, never tensors.
#pragma once

#include <rapidcheck.h>

#include <vector>

#include "property_tests/problem_config.h"

namespace attn::property_tests {

// The configs a property speaks about. The first entry of a list is what shrinking goes to; a list
// that begins with kNone is about an option that is off in most draws.
struct ConfigSpace {
  std::vector<Lengths> lengths = {Lengths::kEqual, Lengths::kRagged, Lengths::kBeyond};
  int most_reqs = 4;
  std::vector<DType> query_dtypes = {DType::kF32, DType::kBF16, DType::kF16, DType::kF8E4M3FN};
  std::vector<KvFormat> kv = {KvFormat::kF32,
                              KvFormat::kBF16,
                              KvFormat::kF16,
                              KvFormat::kF8E4M3FN,
                              KvFormat::kF8E4M3FNUZ,
                              KvFormat::kF8E5M2,
                              KvFormat::kInt8PerTokenHead,
                              KvFormat::kFp8PerTokenHead,
                              KvFormat::kNvfp4};
  std::vector<ScaleShape> scales = {ScaleShape::kNone, ScaleShape::kOne, ScaleShape::kPerHead,
                                    ScaleShape::kPerRequestHead};  // of k and v, and of q
  std::vector<MaskKind> masks = {MaskKind::kCausal,
                                 MaskKind::kNone,
                                 MaskKind::kCausalPerRequest,
                                 MaskKind::kWindow,
                                 MaskKind::kSymmetricWindow,
                                 MaskKind::kLeftWindow,
                                 MaskKind::kRectangle,
                                 MaskKind::kWindowSinkTokens,
                                 MaskKind::kChunked,
                                 MaskKind::kChunkedNonCausal,
                                 MaskKind::kRswa,
                                 MaskKind::kRanges,
                                 MaskKind::kRangesWindow,
                                 MaskKind::kRangesClamped};
  bool attn_mask = true;
  bool soft_cap = true;
  std::vector<AlibiForm> alibi = {AlibiForm::kNone, AlibiForm::kRow, AlibiForm::kContext,
                                  AlibiForm::kZero, AlibiForm::kAbs, AlibiForm::kSqrt};
  std::vector<BiasKind> attn_bias = {BiasKind::kNone, BiasKind::kFinite, BiasKind::kSomeMasked};
  bool tree = true;
  std::vector<SinkKind> sinks = {SinkKind::kNone, SinkKind::kFinite, SinkKind::kSomeMinusInfinity};
  bool output_codes = false;
  bool exec = false;
  bool memory = true;  // layouts, block orders, padding and fills; else the default form
  std::vector<Family> families = {Family::kUniform, Family::kBell};
};

// No soft cap, biases, scales or sinks: masks alone decide.
ConfigSpace masks_only(Family family);

// The option is off in every draw.
template <class Kind>
void turn_off(std::vector<Kind>& option) {
  option = {Kind::kNone};
}

// Normalised configs. Sizes grow with RapidCheck's size (use max_size 100: below it the end of a
// range is never drawn) and shrink to one request with one row and one key; the seed is not shrunk.
rc::Gen<ProblemConfig> problem_configs(const ConfigSpace& space);

// Tags the running RapidCheck case with its mask, lengths and options, for the printed
// distribution.
void classify(const ProblemConfig& config);

}  // namespace attn::property_tests
