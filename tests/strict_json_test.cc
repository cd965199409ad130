#include "core/strict_json.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <locale>
#include <random>

#include "core/hex_float.h"
#include "tests/damaged_file.h"
#include "tests/error_text.h"

namespace attn {
namespace {

std::string parse_error(std::string_view text) {
  return error_of([&] { JsonDocument(text, "doc"); });
}

std::string nested(int depth, const std::string& open, const std::string& inside,
                   const std::string& close) {
  std::string text;
  for (int i = 0; i < depth; ++i) text += open;
  text += inside;
  for (int i = 0; i < depth; ++i) text += close;
  return text;
}

// What reading the member "x" of {"x": ...} says.
std::string read_error(const std::string& value, const std::function<void(const JsonNode&)>& read) {
  const JsonDocument document("{\"x\":" + value + "}", "doc");
  return error_of([&] { read(document.root().at("x")); });
}

TEST(StrictJson, TakesWhatJsonAllows) {
  for (const char* text : {"{}", "[]", " {\"a\" : [1, -2.5e3, true, null]}\n", "\"\\u00e9\"", "0",
                           "{\"a\":{\"k\":1},\"b\":{\"k\":1}}"}) {
    EXPECT_EQ(parse_error(text), "") << text;
  }
}

TEST(StrictJson, RejectsDuplicateKeys) {
  EXPECT_EQ(parse_error(R"({"a":1,"b":2,"a":3})"), "doc has the key \"a\" twice in one object");
  EXPECT_EQ(parse_error(R"([{"a":{"k":1,"k":1}}])"), "doc has the key \"k\" twice in one object");
  EXPECT_EQ(parse_error(R"({"a":1,"\u0061":3})"), "doc has the key \"a\" twice in one object");
}

TEST(StrictJson, RejectsDeepNesting) {
  EXPECT_EQ(parse_error(nested(kMaxJsonDepth, "[", "1", "]")), "");
  EXPECT_EQ(parse_error(nested(kMaxJsonDepth + 1, "[", "1", "]")),
            "doc is nested deeper than 16 levels");
  EXPECT_EQ(parse_error(nested(kMaxJsonDepth + 1, "{\"a\":", "1", "}")),
            "doc is nested deeper than 16 levels");
  EXPECT_EQ(parse_error(nested(1000000, "[", "", "")), "doc is nested deeper than 16 levels");
}

TEST(StrictJson, RejectsWhatIsNoJson) {
  const std::string_view texts[] = {"",
                                    " ",
                                    "{",
                                    "{\"a\":1} x",
                                    "{}{}",
                                    "{\"a\":1,}",
                                    "[1,]",
                                    "{a:1}",
                                    "{'a':1}",
                                    "[01]",
                                    "[+1]",
                                    "[.5]",
                                    "[1.]",
                                    "[NaN]",
                                    "[inf]",
                                    "// c\n{}",
                                    "[/**/1]",
                                    "\"a\nb\"",
                                    "\"\\ud800\"",
                                    "\"\\x41\"",
                                    "tru",
                                    "\"\x80\"",
                                    "\"\xC3\"",
                                    "\"\xC0\x80\"",
                                    "\"\xED\xA0\x80\"",
                                    "\"\xF5\x80\x80\x80\"",
                                    "\xFF"};
  for (const std::string_view text : texts) {
    EXPECT_TRUE(parse_error(text).starts_with("doc is not JSON: at byte ")) << text;
  }
  EXPECT_EQ(parse_error("{\"a\":1} x"), "doc is not JSON: at byte 8");
  EXPECT_EQ(parse_error("\xEF\xBB\xBF{}"), "doc is not JSON: at byte 0");
  EXPECT_EQ(parse_error(std::string_view("{}\0{", 4)), "doc is not JSON: NUL at byte 2");
  EXPECT_EQ(parse_error("[1e999]"), "doc is not JSON: a number is out of range");
}

TEST(StrictJson, KnowsItsKeys) {
  const JsonDocument document(R"({"a":{"b":1,"odd key\n":2}})", "doc");
  const JsonNode a = document.root().at("a");
  EXPECT_TRUE(a.has("b"));
  EXPECT_FALSE(a.has("c"));
  EXPECT_EQ(error_of([&] { a.at("c"); }), "doc.a.c is missing");
  EXPECT_EQ(error_of([&] { a.expect_only({"b"}); }), "doc.a has the unknown key \"odd key\\x0a\"");
  EXPECT_EQ(error_of([&] { a.at("b").members(); }), "doc.a.b is 1, expected an object");
  EXPECT_EQ(error_of([&] { a.at("odd key\n").string(); }),
            "doc.a[\"odd key\\x0a\"] is 2, expected a string");
}

TEST(StrictJson, IntegersAreWhole) {
  const auto read = [](std::int64_t min) {
    return [min](const JsonNode& node) { node.integer(min); };
  };
  EXPECT_EQ(read_error("9007199254740992", read(0)), "");
  EXPECT_EQ(read_error("0", read(0)), "");
  EXPECT_EQ(read_error("-3", read(0)), "doc.x is -3, expected an integer >= 0");
  EXPECT_EQ(read_error("0", read(1)), "doc.x is 0, expected an integer >= 1");
  EXPECT_EQ(read_error("1.0", read(0)), "doc.x is 1.0, expected an integer >= 0");
  EXPECT_EQ(read_error("1e2", read(0)), "doc.x is 100.0, expected an integer >= 0");
  EXPECT_EQ(read_error("\"1\"", read(0)), "doc.x is \"1\", expected an integer >= 0");
  EXPECT_EQ(read_error("true", read(0)), "doc.x is true, expected an integer >= 0");
  EXPECT_EQ(read_error("null", read(0)), "doc.x is null, expected an integer >= 0");
  EXPECT_EQ(read_error("9007199254740993", read(0)),
            "doc.x is 9007199254740993, expected an integer <= 2^53");
  EXPECT_EQ(read_error("18446744073709551615", read(0)),
            "doc.x is 18446744073709551615, expected an integer <= 2^53");
  EXPECT_NE(read_error("18446744073709551616", read(0)), "");
  EXPECT_NE(read_error("-9223372036854775809", read(0)), "");
}

TEST(StrictJson, ScalarsHaveTheirType) {
  EXPECT_EQ(read_error("1", [](const JsonNode& n) { n.boolean(); }),
            "doc.x is 1, expected true or false");
  EXPECT_EQ(read_error("[]", [](const JsonNode& n) { n.string(); }),
            "doc.x is an array, expected a string");
  EXPECT_EQ(read_error("{}", [](const JsonNode& n) { n.elements(); }),
            "doc.x is an object, expected an array");
  EXPECT_EQ(read_error("\"1\"", [](const JsonNode& n) { n.number(); }),
            "doc.x is \"1\", expected a number");
  EXPECT_EQ(read_error("0.5", [](const JsonNode& n) { n.real(); }),
            "doc.x is 0.5, expected a double as hex float string, e.g. \"0x1.8p+1\" or \"inf\"");
  EXPECT_EQ(read_error("\"c\"",
                       [](const JsonNode& n) {
                         n.choice({"a", "b"});
                       }),
            "doc.x is \"c\", expected one of a, b");
  EXPECT_EQ(read_error("\"b\"",
                       [](const JsonNode& n) {
                         EXPECT_EQ(n.choice({"a", "b"}), 1u);
                       }),
            "");
}

TEST(StrictJson, MessagesAreOneShortLine) {
  const std::string long_text(1000, 'x');
  EXPECT_EQ(in_quotes(long_text), "\"" + long_text.substr(0, 64) + "...\"");
  EXPECT_EQ(in_quotes("a\"\\\t\x7F\xC3"), R"("a\"\\\x09\x7f\xc3")");
}

TEST(HexFloat, IsWhatTheCompilerReads) {
  EXPECT_EQ(parse_hex_float("0x1.8p+1"), 0x1.8p+1);
  EXPECT_EQ(parse_hex_float("0x1.0000000000000p+0"), 1.0);
  EXPECT_EQ(parse_hex_float("-0x1.5c28f60000000p-3"), -0x1.5c28f6p-3);
  EXPECT_EQ(parse_hex_float("+0xfp0"), 15.0);
  EXPECT_EQ(parse_hex_float("0x0.8p+0"), 0.5);
  EXPECT_EQ(parse_hex_float("0x0.0000000000001p-1022"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(parse_hex_float("0x1p-1074"), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(parse_hex_float("0x1.fffffffffffffp+1023"), std::numeric_limits<double>::max());
  EXPECT_EQ(parse_hex_float("0x1.80000000000000000000000000000p+0"), 1.5);
  EXPECT_EQ(parse_hex_float("0x0p+99999999999999999999"), 0.0);
  EXPECT_EQ(parse_hex_float("inf"), std::numeric_limits<double>::infinity());
  EXPECT_EQ(parse_hex_float("-inf"), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(parse_hex_float("nan").value()));
  EXPECT_TRUE(std::signbit(parse_hex_float("-0x0p+0").value()));
}

TEST(HexFloat, RejectsOtherFormsAndInexactValues) {
  for (const char* text : {"",
                           "1.0",
                           "1",
                           "0x",
                           "0x1",
                           "0x1p",
                           "0x1p+",
                           "0x1.p+0",
                           "0x12p+0",
                           "0x1.8.8p+0",
                           "0X1p+0",
                           "0x1.Ap+0",
                           "0x1.8P+0",
                           " 0x1p+0",
                           "0x1p+0 ",
                           "0x.8p+0",
                           "infinity",
                           "Inf",
                           "NaN",
                           "--0x1p+0",
                           "+-inf",
                           "0x1p0x0",
                           "0x1p1.0",
                           "0x1,8p+1",
                           "0xfp+1023",
                           "0x1.8p+1024",
                           "0x1p+1024",
                           "0x1p-1075",
                           "0x1.00000000000008p+0",
                           "0x0.00000000000008p-1022",
                           "0x1.00000000000000000000000000001p+0"}) {
    EXPECT_FALSE(parse_hex_float(text).has_value()) << text;
  }
}

TEST(HexFloat, ReadsEveryDoubleThatPrintfWrites) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100000; ++i) {
    const double value = std::bit_cast<double>(random());
    char text[64];
    std::snprintf(text, sizeof text, "%a", value);
    const std::optional<double> read = parse_hex_float(text);
    ASSERT_TRUE(read.has_value()) << text;
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(*read));
    } else {
      EXPECT_EQ(std::bit_cast<std::uint64_t>(*read), std::bit_cast<std::uint64_t>(value)) << text;
    }
  }
}

}  // namespace
}  // namespace attn
