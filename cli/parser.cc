#include "cli/parser.h"

#include <CLI/CLI.hpp>

namespace attn::cli {
namespace {

std::string refuse_empty(const std::string& word) { return word.empty() ? "an empty path" : ""; }

}  // namespace

Option Option::required() const { return Option(option_->required()); }
Option Option::not_empty() const { return Option(option_->check(refuse_empty)); }
Option Option::one_of(const std::vector<std::string>& words) const {
  return Option(option_->check(CLI::IsMember(words)));
}
Option Option::within(int least, int most) const {
  return Option(option_->check(CLI::Range(least, most)));
}
Option Option::needs(Option other) const { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) const { return Option(option_->excludes(other.option_)); }
bool Option::given() const { return option_->count() != 0; }

Parser Parser::command(const std::string& name, const std::string& what) const {
  return Parser(app_->add_subcommand(name, what)->fallthrough());
}
void Parser::require_command() const { app_->require_subcommand(1); }

Option Parser::text(const std::string& name, std::string& value, const std::string& what) const {
  return Option(app_->add_option(name, value, what));
}
Option Parser::text(const std::string& name, std::optional<std::string>& value,
                    const std::string& what) const {
  return Option(app_->add_option(name, value, what));
}
Option Parser::number(const std::string& name, std::optional<double>& value,
                      const std::string& what) const {
  return Option(app_->add_option(name, value, what)->check(CLI::Number));
}
Option Parser::integer(const std::string& name, int& value, const std::string& what) const {
  return Option(app_->add_option(name, value, what));
}
Option Parser::integer(const std::string& name, std::int64_t& value,
                       const std::string& what) const {
  const CLI::TypeValidator<std::int64_t> whole("INT");
  return Option(app_->add_option(name, value, what)->check(whole));
}
Option Parser::integer(const std::string& name, std::optional<std::int64_t>& value,
                       const std::string& what) const {
  const CLI::TypeValidator<std::int64_t> whole("INT");
  return Option(app_->add_option(name, value, what)->check(whole));
}
Option Parser::flag(const std::string& name, bool& value, const std::string& what) const {
  return Option(
      app_->add_flag(name, value, what)->multi_option_policy(CLI::MultiOptionPolicy::Throw));
}
Option Parser::list(const std::string& name, std::vector<std::string>& words,
                    const std::string& what) const {
  return Option(app_->add_option(name, words, what)->allow_extra_args(false));
}

std::vector<Option> Parser::options() const {
  std::vector<Option> all;
  for (CLI::Option* option : app_->get_options()) {
    if (option != app_->get_help_ptr()) all.emplace_back(option);
  }
  return all;
}
bool Parser::given(const std::string& name) const { return app_->count(name) != 0; }
bool Parser::chosen() const { return app_->parsed(); }

}  // namespace attn::cli
