#include "cli/composite_name.h"

#include <fmt/core.h>

#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "attn/error.h"
#include "attn/routing_policy.h"
#include "cli/backends.h"

namespace attn::cli {
namespace {

constexpr std::string_view kOpening = "COMPOSITE(";
constexpr std::string_view kPolicy = "policy=";
constexpr std::string_view kPlugin = "plugin:";

// A word, and in brackets a number.
struct PolicyName {
  std::string word;
  std::optional<int> number;
};

struct CompositeName {
  std::string text;  // as written
  std::vector<CompositeName> children;
  PolicyName policy{"mm_prefix", std::nullopt};

  bool is_composite() const { return !children.empty(); }
};

// Deeper names are refused: every level is a call.
constexpr int kMostLevels = 8;

class ExpressionParser {
 public:
  explicit ExpressionParser(const std::string& text) : text_(text) {}

  CompositeName parse() {
    CompositeName name = composite(1);
    if (at_ != text_.size()) refuse("the end");
    return name;
  }

 private:
  [[noreturn]] void refuse(std::string_view expected) const {
    throw Error(fmt::format("'{}' names no composite: {} expected after '{}'", text_, expected,
                            text_.substr(0, at_)));
  }

  bool accept(std::string_view piece) {
    if (text_.compare(at_, piece.size(), piece) != 0) return false;
    at_ += piece.size();
    return true;
  }

  template <class IsPart>
  std::string word(std::string_view expected, const IsPart& is_part) {
    const std::size_t first = at_;
    while (at_ < text_.size() && is_part(text_[at_])) ++at_;
    if (at_ == first) refuse(expected);
    return text_.substr(first, at_ - first);
  }

  CompositeName composite(int level) {
    const std::size_t first = at_;
    if (level > kMostLevels) refuse(fmt::format("no level beyond {}", kMostLevels));
    if (!accept(kOpening)) refuse(kOpening);
    CompositeName name;
    name.children.push_back(child(level));
    while (accept(",")) {
      if (accept(kPolicy)) {
        name.policy = policy();
        break;
      }
      name.children.push_back(child(level));
    }
    if (!accept(")")) refuse("')'");
    name.text = text_.substr(first, at_ - first);
    return name;
  }

  CompositeName child(int level) {
    if (text_.compare(at_, kOpening.size(), kOpening) == 0) return composite(level + 1);
    CompositeName name;
    if (text_.compare(at_, kPlugin.size(), kPlugin) == 0) {
      name.text = word("a plug-in", [](char c) { return c != ',' && c != ')'; });
      return name;
    }
    name.text = word("a backend", [](char c) {
      return ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '_';
    });
    return name;
  }

  PolicyName policy() {
    PolicyName name;
    name.word = word("a policy", [](char c) { return ('a' <= c && c <= 'z') || c == '_'; });
    if (!accept("(")) return name;
    const std::string digits = word("a number", [](char c) { return '0' <= c && c <= '9'; });
    int number = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (failure != std::errc{}) refuse("a smaller number");
    name.number = number;
    if (!accept(")")) refuse("')'");
    return name;
  }

  const std::string& text_;
  std::size_t at_ = 0;
};

RoutingPolicyPtr policy_of(const CompositeName& name) {
  const auto& [word, number] = name.policy;
  const int n = number.value_or(0);
  if (number && word == "constant") return constant_policy(n, n);
  if (number && word == "max_query_len") return max_query_len_policy({n, std::nullopt, 1});
  if (number && word == "uniform") return uniform_policy(n);
  if (number && word == "max_seq_len") return max_seq_len_policy(n);
  if (!number && word == "mm_prefix") return mm_prefix_policy();
  if (!number && word == "supports") return supports_policy();
  if (!number && word == "decode_only") return decode_only_policy({});
  throw Error(fmt::format(
      "'{}' names no policy that routes by words: mm_prefix, constant(V), max_query_len(K), "
      "uniform(K), supports, decode_only, max_seq_len(K)",
      number ? fmt::format("{}({})", word, n) : word));
}

// Every name is looked at before any child is found to be missing.
void expect_known(const CompositeName& name) {
  if (!name.is_composite()) return require_known_backend(name.text);
  if (name.children.size() < 2) {
    throw Error(fmt::format("{} has fewer than 2 children", name.text));
  }
  std::set<std::string> seen;
  for (const CompositeName& child : name.children) {
    expect_known(child);
    if (!seen.insert(child.text).second) {
      throw Error(fmt::format("{} has {} twice", name.text, child.text));
    }
  }
  expect_number_of_children(*policy_of(name), name.children.size());
  const int child = name.policy.number.value_or(0);
  if (name.policy.word == "constant" && static_cast<std::size_t>(child) >= name.children.size()) {
    throw Error(
        fmt::format("policy constant({0}) selects child {0} of {1}", child, name.children.size()));
  }
}

// Null, with a reason, when a child cannot be used here.
std::shared_ptr<const Backend> make(const CompositeName& name, std::string& reason);

std::shared_ptr<const ProblemComposite> make_composite(const CompositeName& name,
                                                       std::string& reason) {
  std::vector<std::shared_ptr<const Backend>> children;
  for (const CompositeName& child : name.children) {
    children.push_back(make(child, reason));
    if (!children.back()) return nullptr;
  }
  return make_problem_composite(std::move(children), policy_of(name));
}

std::shared_ptr<const Backend> make(const CompositeName& name, std::string& reason) {
  if (name.is_composite()) return make_composite(name, reason);
  for (const NamedBackend& named : all_backends()) {
    if (named.name != name.text) continue;
    if (!named.backend) reason = fmt::format("{} is {}", named.name, named.reason);
    return named.backend;
  }
  reason = fmt::format("{} is not in this build", name.text);  // a plug-in: all others are known
  return nullptr;
}

}  // namespace

bool is_composite_name(std::string_view name) { return name.starts_with(kOpening); }

const NamedComposite& composite_named(const std::string& name) {
  static std::map<std::string, NamedComposite, std::less<>> known;
  const auto found = known.find(name);
  if (found != known.end()) return found->second;
  const CompositeName parsed = ExpressionParser(name).parse();
  expect_known(parsed);
  NamedComposite named;
  named.backend = make_composite(parsed, named.reason);
  return known.emplace(name, std::move(named)).first->second;
}

}  // namespace attn::cli
