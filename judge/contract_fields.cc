#include "judge/contract_fields.h"

#include <fmt/core.h>

#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "core/hex_float.h"

namespace attn::judge {
namespace {

constexpr std::string_view kModes[] = {"nearest", "truncate"};
constexpr std::string_view kMergeKinds[] = {"acc", "lse"};

constexpr std::size_t kNumFormats = static_cast<std::size_t>(NumberFormat::kStored) + 1;

// In the order of the enumeration, "stored" last.
std::array<std::string_view, kNumFormats> format_names() {
  std::array<std::string_view, kNumFormats> names;
  for (std::size_t i = 0; i < kNumFormats; ++i) names[i] = name(static_cast<NumberFormat>(i));
  return names;
}

enum class Stored : std::uint8_t { kNever, kAllowed };

NumberFormat read_format(const JsonNode& node, Stored stored) {
  const auto names = format_names();
  const std::size_t known = stored == Stored::kAllowed ? kNumFormats : kNumFormats - 1;
  return static_cast<NumberFormat>(node.choice(std::span(names).first(known)));
}

// Fields of a rounding besides its own go to their defaults when it is a bare name.
struct Defaults {
  void flag(std::string_view, bool& value) { value = false; }
  template <class Integer>
  void count(std::string_view, Integer& value) {
    value = 0;
  }
};

struct NoMore {
  template <class Visitor>
  void operator()(Visitor&) const {}
};

template <class Visitor>
void visit_rounding(Visitor& v, Rounding& rounding, Stored stored) {
  v.format("type", rounding.type, stored);
  v.choice("mode", kModes, rounding.mode);
  v.scale("scale", rounding.scale);
  v.flag("flush", rounding.flush);
}

template <class Visitor>
void visit_summation(Visitor& v, Summation& sum) {
  v.format("type", sum.type);
  v.choice("mode", kModes, sum.mode);
  v.count("lanes", sum.lanes, 1);
  v.count("block", sum.block);
  v.count("mma_k", sum.mma_k);
  v.flag("fused", sum.fused);
  v.nullable("inner", sum.inner, [](auto& inner, double& unit) { inner.required("unit", unit); });
}

// The one list of all fields, for reading and for writing.
template <class Visitor>
void visit_contract(Visitor& v, Arithmetic& a) {
  v.format("vector", a.vector);
  v.flag("flush", a.flush);
  v.rounding("query", a.query);
  v.rounding("key", a.key);
  v.rounding("value", a.value);
  v.object("dot", [&](auto& dot) { visit_summation(dot, a.dot); });
  v.count("scale_roundings", a.scale_roundings);
  v.object("cap", [&](auto& cap) {
    cap.real("rel", a.cap_rel);
    cap.real("abs", a.cap_abs);
  });
  v.real("bias_rel", a.bias_rel);
  v.rounding("logit", a.logit);
  v.count("logit_roundings", a.logit_roundings);
  v.object("exp", [&](auto& exp) {
    exp.real("rel", a.exp_rel);
    exp.real("abs", a.exp_abs);
    exp.count("arg_roundings", a.exp_arg_roundings);
    exp.count("shift_roundings", a.exp_shift_roundings);
  });
  v.count("tile", a.tile);
  v.real("max_lag", a.max_lag);
  v.rounding("p", a.p, Stored::kNever, [&](auto& p) {
    p.count("roundings", a.p_roundings);
    p.flag("normalized", a.p_normalized);
  });
  v.object("sum", [&](auto& sum) {
    visit_summation(sum, a.sum);
    sum.flag("rounded_p", a.sum_rounded_p);
  });
  v.object("pv", [&](auto& pv) { visit_summation(pv, a.pv); });
  v.count("splits", a.splits, 1);
  v.object("merge", [&](auto& merge) {
    merge.choice("kind", kMergeKinds, a.merge_kind);
    merge.count("depth", a.merge_depth, 1);
    merge.rounding("part", a.merge_part);
    merge.format("lse", a.merge_lse);
  });
  v.count("normalize_roundings", a.normalize_roundings);
  v.object("log", [&](auto& log) {
    log.real("abs", a.log_abs);
    log.count("roundings", a.log_roundings);
  });
  v.nullable("project", a.project, [](auto& project, Arithmetic::Projection& value) {
    project.object("sum", [&](auto& sum) { visit_summation(sum, value.sum); });
    project.rounding("round", value.round);
  });
  v.rounding("out", a.out, Stored::kAllowed);
  v.rounding("lse", a.lse, Stored::kAllowed);
}

// Replaces values by the members that an object has.
class Reader {
 public:
  explicit Reader(const JsonNode& object) : object_(object) { object.expect_object(); }

  // To be called at the end: no other members.
  void finish() const { object_.expect_only(std::span(known_)); }
  void allow(std::string_view key) { known_.push_back(key); }

  void format(std::string_view key, NumberFormat& value, Stored stored = Stored::kNever) {
    if (has(key)) value = read_format(object_.at(key), stored);
  }
  template <class Enum>
  void choice(std::string_view key, std::span<const std::string_view> names, Enum& value) {
    if (has(key)) value = static_cast<Enum>(object_.at(key).choice(names));
  }
  void flag(std::string_view key, bool& value) {
    if (has(key)) value = object_.at(key).boolean();
  }
  template <class Integer>
  void count(std::string_view key, Integer& value, std::int64_t min = 0) {
    if (!has(key)) return;
    const JsonNode node = object_.at(key);
    const std::int64_t count = node.integer(min);
    if (count > kMaxCount) node.fail(fmt::format("an integer <= {}", kMaxCount));
    value = static_cast<Integer>(count);
  }
  void real(std::string_view key, double& value) {
    if (has(key)) required(key, value);
  }
  void required(std::string_view key, double& value) {
    allow(key);
    const JsonNode node = object_.at(key);
    value = node.real();
    if (!(std::isfinite(value) && value >= 0.0)) node.fail("a finite real >= 0");
  }
  void scale(std::string_view key, double& value) {
    if (!has(key)) return;
    const JsonNode node = object_.at(key);
    value = node.real();
    if (!(std::isfinite(value) && value > 0.0)) node.fail("a finite real > 0");
  }

  template <class Fields>
  void object(std::string_view key, Fields fields) {
    if (!has(key)) return;
    Reader reader(object_.at(key));
    fields(reader);
    reader.finish();
  }
  template <class More = NoMore>
  void rounding(std::string_view key, Rounding& value, Stored stored = Stored::kNever,
                More more = {}) {
    if (!has(key)) return;
    if (object_.at(key).is_string()) {
      value = {read_format(object_.at(key), stored)};
      Defaults defaults;
      more(defaults);
      return;
    }
    object(key, [&](Reader& reader) {
      visit_rounding(reader, value, stored);
      more(reader);
    });
  }
  // null, or an object over what there is.
  template <class T, class Fields>
  void nullable(std::string_view key, std::optional<T>& value, Fields fields) {
    if (!has(key)) return;
    if (object_.at(key).is_null()) return value.reset();
    T filled = value.value_or(T{});
    object(key, [&](Reader& reader) { fields(reader, filled); });
    value = filled;
  }

 private:
  bool has(std::string_view key) {
    allow(key);
    return object_.has(key);
  }

  JsonNode object_;
  std::vector<std::string_view> known_;
};

// to_hex_float without the zeros that end the fraction.
std::string short_hex_float(double value) {
  std::string text = to_hex_float(value);
  const std::size_t p = text.find('p');
  std::size_t end = text.find_last_not_of('0', p - 1) + 1;
  if (text[end - 1] == '.') --end;
  return text.erase(end, p - end);
}

// The same members, written.
class Writer {
 public:
  const nlohmann::ordered_json& written() const { return object_; }

  void format(std::string_view key, NumberFormat value, Stored = Stored::kNever) {
    at(key) = name(value);
  }
  template <class Enum>
  void choice(std::string_view key, std::span<const std::string_view> names, Enum value) {
    at(key) = names[static_cast<std::size_t>(value)];
  }
  void flag(std::string_view key, bool value) { at(key) = value; }
  void count(std::string_view key, std::int64_t value, std::int64_t = 0) { at(key) = value; }
  void real(std::string_view key, double value) { at(key) = short_hex_float(value); }
  void required(std::string_view key, double value) { real(key, value); }
  void scale(std::string_view key, double value) { real(key, value); }

  template <class Fields>
  void object(std::string_view key, Fields fields) {
    Writer writer;
    fields(writer);
    at(key) = writer.object_;
  }
  // A bare name where that says everything.
  void rounding(std::string_view key, Rounding& value, Stored stored = Stored::kNever) {
    if (value == Rounding{value.type}) return format(key, value.type);
    rounding(key, value, stored, NoMore());
  }
  template <class More>
  void rounding(std::string_view key, Rounding& value, Stored stored, More more) {
    object(key, [&](Writer& writer) {
      visit_rounding(writer, value, stored);
      more(writer);
    });
  }
  template <class T, class Fields>
  void nullable(std::string_view key, std::optional<T>& value, Fields fields) {
    if (!value) {
      at(key) = nullptr;
    } else {
      object(key, [&](Writer& writer) { fields(writer, *value); });
    }
  }

 private:
  nlohmann::ordered_json& at(std::string_view key) { return object_[std::string(key)]; }

  nlohmann::ordered_json object_ = nlohmann::ordered_json::object();
};

}  // namespace

void apply_fields(const JsonNode& fields, Extends extends, Arithmetic& arithmetic) {
  Reader reader(fields);
  if (extends == Extends::kAllowed) reader.allow("extends");
  visit_contract(reader, arithmetic);
  reader.finish();
}

}  // namespace attn::judge

namespace attn {

std::string to_json(const Arithmetic& arithmetic) {
  Arithmetic fields = arithmetic;
  judge::Writer writer;
  judge::visit_contract(writer, fields);
  return writer.written().dump();
}

}  // namespace attn
