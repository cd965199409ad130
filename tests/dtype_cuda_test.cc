// attn/dtype.h against the host side of CUDA's own headers: a second opinion by the vendor. Built
// only where the headers are found; links nothing of CUDA.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp4.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "attn/dtype.h"

namespace attn {
namespace {

double from_half(__half_raw raw) { return __half2float(__half(raw)); }
double from_half(std::uint64_t code) {
  __half_raw raw;
  raw.x = static_cast<unsigned short>(code);
  return from_half(raw);
}
double from_bfloat16(__nv_bfloat16_raw raw) { return __bfloat162float(__nv_bfloat16(raw)); }
double from_bfloat16(std::uint64_t code) {
  __nv_bfloat16_raw raw;
  raw.x = static_cast<unsigned short>(code);
  return from_bfloat16(raw);
}
std::function<double(std::uint64_t)> from_fp8(__nv_fp8_interpretation_t kind) {
  return [kind](std::uint64_t code) {
    return from_half(__nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(code), kind));
  };
}
std::function<std::uint64_t(float)> to_fp8(__nv_fp8_interpretation_t kind,
                                           __nv_saturation_t saturation) {
  return [kind, saturation](float x) { return __nv_cvt_float_to_fp8(x, saturation, kind); };
}

struct Conversion {
  std::string name;
  DType type;
  Overflow overflow;
  std::function<double(std::uint64_t)> decode;
  std::function<std::uint64_t(float)> encode;
};

const Conversion kConversions[] = {
    {"f16", DType::kF16, Overflow::kInfinity, static_cast<double (*)(std::uint64_t)>(from_half),
     [](float x) { return __half_raw(__float2half_rn(x)).x; }},
    {"bf16", DType::kBF16, Overflow::kInfinity,
     static_cast<double (*)(std::uint64_t)>(from_bfloat16),
     [](float x) { return __nv_bfloat16_raw(__float2bfloat16_rn(x)).x; }},
    {"f8_e4m3fn_saturating", DType::kF8E4M3FN, Overflow::kSaturate, from_fp8(__NV_E4M3),
     to_fp8(__NV_E4M3, __NV_SATFINITE)},
    {"f8_e4m3fn", DType::kF8E4M3FN, Overflow::kInfinity, from_fp8(__NV_E4M3),
     to_fp8(__NV_E4M3, __NV_NOSAT)},
    {"f8_e5m2_saturating", DType::kF8E5M2, Overflow::kSaturate, from_fp8(__NV_E5M2),
     to_fp8(__NV_E5M2, __NV_SATFINITE)},
    {"f8_e5m2", DType::kF8E5M2, Overflow::kInfinity, from_fp8(__NV_E5M2),
     to_fp8(__NV_E5M2, __NV_NOSAT)},
    {"f4_e2m1", DType::kF4E2M1, Overflow::kSaturate,
     [](std::uint64_t code) {
       return from_half(__nv_cvt_fp4_to_halfraw(static_cast<__nv_fp4_storage_t>(code), __NV_E2M1));
     },
     [](float x) { return __nv_cvt_float_to_fp4(x, __NV_E2M1, cudaRoundNearest); }},
};

class CudaConversion : public testing::TestWithParam<Conversion> {
 protected:
  const Conversion& cuda = GetParam();

  std::uint64_t num_codes() const { return std::uint64_t{1} << bits(cuda.type); }

  void expect_same_code(float x) const {
    const std::uint64_t ours = encode(cuda.type, x, cuda.overflow);
    const std::uint64_t theirs = cuda.encode(x) % num_codes();
    const bool both_nan =
        std::isnan(decode(cuda.type, ours)) && std::isnan(decode(cuda.type, theirs));
    EXPECT_TRUE(both_nan || ours == theirs) << x << ": " << ours << " and " << theirs;
  }
};

TEST_P(CudaConversion, DecodesEveryCodeAlike) {
  for (std::uint64_t code = 0; code < num_codes(); ++code) {
    const double ours = decode(cuda.type, code);
    const double theirs = cuda.decode(code);
    if (std::isnan(ours) && std::isnan(theirs)) continue;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(ours), std::bit_cast<std::uint64_t>(theirs)) << code;
  }
}

TEST_P(CudaConversion, EncodesEveryValueAndItsNeighboursAlike) {
  for (std::uint64_t code = 0; code < num_codes(); ++code) {
    const double value = decode(cuda.type, code);
    if (std::isnan(value)) continue;
    const auto exact = static_cast<float>(value);
    for (const float x : {exact, std::nextafter(exact, 1e38f), std::nextafter(exact, -1e38f),
                          exact * 1.03125f, exact * 1.0625f, exact * 1.25f}) {
      expect_same_code(x);
    }
  }
}

TEST_P(CudaConversion, EncodesRandomFloatsAlike) {
  std::mt19937 random(7);
  for (int i = 0; i < 100000; ++i) {
    std::uint32_t float_bits = random();
    // Half of them with exponents that an 8-bit type has.
    if (i % 2 == 0) float_bits = (float_bits & 0x807FFFFFu) | ((105 + float_bits % 40) << 23);
    const auto x = std::bit_cast<float>(float_bits);
    if (!std::isnan(x)) expect_same_code(x);
  }
  expect_same_code(std::numeric_limits<float>::infinity());
  expect_same_code(-std::numeric_limits<float>::infinity());
}

INSTANTIATE_TEST_SUITE_P(Headers, CudaConversion, testing::ValuesIn(kConversions),
                         [](const auto& conversion) { return conversion.param.name; });

TEST(CudaHeaders, E8M0DecodesAlike) {
  for (std::uint64_t code = 0; code < 255; ++code) {
    const auto raw = __nv_cvt_e8m0_to_bf16raw(static_cast<__nv_fp8_storage_t>(code));
    EXPECT_EQ(decode(DType::kF8E8M0, code), from_bfloat16(raw)) << code;
  }
  EXPECT_TRUE(std::isnan(from_bfloat16(__nv_cvt_e8m0_to_bf16raw(0xFF))));
}

// CUDA's e8m0 rounds up or towards zero only, so just powers of two have the same code.
TEST(CudaHeaders, E8M0EncodesPowersOfTwoAlike) {
  for (int exponent = -127; exponent <= 127; ++exponent) {
    const float x = std::ldexp(1.0f, exponent);
    EXPECT_EQ(encode(DType::kF8E8M0, x, Overflow::kSaturate),
              __nv_cvt_float_to_e8m0(x, __NV_SATFINITE, cudaRoundPosInf))
        << exponent;
  }
}

// e5m2 has three NaN codes; CUDA writes 0x7F, we the quiet 0x7E.
TEST(CudaHeaders, NaNBecomesNaNInBoth) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(encode(DType::kF8E4M3FN, kNaN, {}), to_fp8(__NV_E4M3, __NV_SATFINITE)(kNaN));
  const std::uint64_t e5m2 = to_fp8(__NV_E5M2, __NV_SATFINITE)(kNaN);
  EXPECT_TRUE(std::isnan(decode(DType::kF8E5M2, e5m2)));
}

}  // namespace
}  // namespace attn
