// Real numbers as case files spell them.
#pragma once

#include <optional>
#include <string_view>

namespace attn::golden {

// The double that `text` denotes: [+-]? then "inf", "nan" or 0x<d>[.<d...>]p[+-]<decimal>, hex
// digits in lower case. Empty when the text has another form or its value is not exactly a double.
// Independent of the locale.
std::optional<double> parse_hex_float(std::string_view text);

}  // namespace attn::golden
