#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "golden/questions/attention_questions.h"
#include "golden/questions/extended_data.h"
#include "golden/questions/extended_questions.h"

namespace attn::questions {
namespace {

using Entries = std::vector<AttentionEntry>;

struct SplitId {
  std::string variant;
  std::string what;
};

SplitId split(const std::string& id) {
  const std::size_t dash = id.find('-');
  return {id.substr(0, dash), id.substr(dash + 1)};
}

std::string with_family(const std::string& id, Family family) {
  const auto [variant, what] = split(id);
  return extended_id(variant, what, family);
}

// Settings with rows, by variant.
std::map<std::string, Entries> settings() {
  std::map<std::string, Entries> by_variant;
  for (AttentionEntry& entry : attention_entries()) {
    if (entry.setup.requests.empty()) continue;
    by_variant[split(entry.id).variant].push_back(std::move(entry));
  }
  return by_variant;
}

bool is_related(const AttentionEntry& entry) {
  for (const CaseRelation& relation : batch_relations()) {
    for (const CaseRelation::Rows& rows : relation.rows) {
      if (rows.id == entry.id) return true;
    }
  }
  return false;
}

AttentionEntry with_data(AttentionEntry entry, const Source& source) {
  entry.setup = with_source(std::move(entry.setup), source);
  entry.name =
      fmt::format("the setting of {} with data of family {}", entry.id, name(source.family));
  entry.scenario = exposes(source.family);
  std::erase(entry.rulings, "explicit_scale");
  if (entry.setup.scale != 0.0) entry.rulings.emplace_back("explicit_scale");
  entry.id = with_family(entry.id, source.family);
  return entry;
}

}  // namespace

std::vector<AttentionEntry> family_entries() {
  Entries all;
  std::uint32_t first_seed = 0;
  for (const auto& [variant, entries] : settings()) {
    for (const Family family : all_families()) {
      const auto number = static_cast<std::uint32_t>(family);
      const Source source = {family, extended_seed(ExtendedTopic::kFamilies, first_seed + number)};
      Entries usable;
      std::copy_if(entries.begin(), entries.end(), std::back_inserter(usable),
                   [family](const auto& entry) { return applies(family, entry.setup); });
      if (usable.empty()) continue;
      if (is_related(usable.front())) {
        for (AttentionEntry& entry : usable) all.push_back(with_data(std::move(entry), source));
      } else {
        all.push_back(with_data(std::move(usable[number % usable.size()]), source));
      }
    }
    first_seed += 32;
  }
  return all;
}

std::vector<CaseRelation> family_relations() {
  std::vector<CaseRelation> all;
  for (const Family family : all_families()) {
    if (family == Family::kAllCodes) continue;  // wide caches
    for (CaseRelation& relation : batch_relations()) {
      for (CaseRelation::Rows& rows : relation.rows) rows.id = with_family(rows.id, family);
      all.push_back(std::move(relation));
    }
  }
  return all;
}

}  // namespace attn::questions
