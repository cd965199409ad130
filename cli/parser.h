// The words of a command line, declared once and read into variables. Commands see these classes,
// not the library that parses: its header takes longer to compile than most of them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace attn::cli {

// An option or a positional argument of a parser, whose memory it is in.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  Option not_empty() const;  // of a path: an empty one is not "not given"
  Option one_of(const std::vector<std::string>& words) const;
  Option within(int least, int most) const;
  Option needs(Option other) const;
  Option excludes(Option other) const;  // either, not both
  bool given() const;                   // after parsing

 private:
  CLI::Option* option_;
};

// A command; the variables must outlive parsing.
class Parser {
 public:
  explicit Parser(CLI::App* app) : app_(app) {}

  // A command of this one. What it does not know is asked of this one.
  Parser command(const std::string& name, const std::string& what) const;
  void require_command() const;

  // `name` is "--flag", or "word" for a positional argument.
  Option text(const std::string& name, std::string& value, const std::string& what = "") const;
  Option text(const std::string& name, std::optional<std::string>& value,
              const std::string& what) const;
  Option number(const std::string& name, std::optional<double>& value,
                const std::string& what) const;
  Option integer(const std::string& name, int& value, const std::string& what) const;
  Option integer(const std::string& name, std::int64_t& value, const std::string& what) const;
  Option integer(const std::string& name, std::optional<std::int64_t>& value,
                 const std::string& what) const;
  // At most once.
  Option flag(const std::string& name, bool& value, const std::string& what = "") const;
  // Any number of times, a word each.
  Option list(const std::string& name, std::vector<std::string>& words,
              const std::string& what) const;

  std::vector<Option> options() const;        // declared so far
  bool given(const std::string& name) const;  // after parsing
  bool chosen() const;                        // after parsing: this command is

 private:
  CLI::App* app_;
};

}  // namespace attn::cli
