// Real numbers as case files spell them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace attn {

// The double that `text` denotes: [+-]? then "inf", "nan" or 0x<d>[.<d...>]p[+-]<decimal>, hex
// digits in lower case. Empty when the text has another form or its value is not exactly a double.
// Independent of the locale.
std::optional<double> parse_hex_float(std::string_view text);

// As Python's float.hex writes it: "0x1.8000000000000p+1", "-0x0.0p+0", subnormals as
// "0x0.0000000000001p-1022", "inf", "-inf"; every NaN is "nan".
std::string to_hex_float(double value);

}  // namespace attn
