// Selection against its second writing (selector_choice.h), and what must hold of any selection.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "attn/selector.h"
#include "property_tests/selector_property.h"
#include "selector/vllm_backends.h"

namespace attn::property_tests {
namespace {

using Config = AttentionSelectorConfig;
using Texts = std::vector<std::string>;

// The reasons of a described backend; none where vLLM raises.
struct Answer {
  std::optional<Reasons> reasons;
  Texts texts;  // what it raises, otherwise
};

Answer validated(const BackendCheck& check, const SelectorFacts& facts, const Config& config) {
  try {
    const Reasons reasons = check.validate(Requirements(config), facts);
    return {reasons, reason_texts(reasons, check, facts, config)};
  } catch (const VllmError& error) {
    return {std::nullopt, {fmt::format("{}: {}", error.type(), error.what())}};
  }
}

Texts written(const BackendClass& backend, const Config& config) {
  try {
    return found_texts(backend, config);
  } catch (const VllmError& error) {
    return {fmt::format("{}: {}", error.type(), error.what())};
  }
}

// A case without what stands between a member and its row.
SelectionCase plain_case(const CaseDraw& draw) {
  SelectionCase one = make_case(draw);
  one.overrides.clear();
  one.facts.environment.import_errors.clear();
  return one;
}

template <class Body>
void for_described_backends(const SelectionCase& one, const Body& body) {
  for (const std::string& member : described_members()) {
    body(member, BackendCheck(find_backend_row(member)->describe(one.facts)));
  }
}

TEST(Validation, GivesTheReasonsOfTheSecondWriting) {
  for_all_cases([](const CaseDraw& draw) {
    const SelectionCase one = plain_case(draw);
    const WrittenSelector expected(one.facts, one.overrides);
    for_described_backends(one, [&](const std::string& member, const BackendCheck& check) {
      const Texts right = written(expected.get_class(member), one.request.config);
      const Texts ours = validated(check, one.facts, one.request.config).texts;
      expect_that(right == ours, fmt::format("{} has [{}], expected [{}]", member,
                                             fmt::join(ours, ", "), fmt::join(right, ", ")));
    });
  });
}

TEST(Validation, ReasonsAreOrderedAndUnique) {
  constexpr std::array kOrder = {"head_size",
                                 "dtype",
                                 "kv_cache_dtype",
                                 "block_size",
                                 "partial multimodal",
                                 "MLA",
                                 "non-MLA",
                                 "attention sink",
                                 "sparse",
                                 "non-sparse",
                                 "per-head",
                                 "compute",
                                 "attention type",
                                 "sliding",
                                 "R-SWA",
                                 "non-causal attention",
                                 "non-causal MLA",
                                 "batch",
                                 "KV connector",
                                 "PCP",
                                 "DCP",
                                 "device-cpu"};
  for_all_cases([&](const CaseDraw& draw) {
    const SelectionCase one = plain_case(draw);
    for_described_backends(one, [&](const std::string& member, const BackendCheck& check) {
      const Answer answer = validated(check, one.facts, one.request.config);
      if (!answer.reasons) return;
      Texts texts = answer.texts;
      if (answer.reasons->has(Reason::kCombination)) texts.pop_back();
      auto place = kOrder.begin();
      for (const std::string& text : texts) {
        const auto found = std::find_if(place, kOrder.end(),
                                        [&](const char* word) { return text.starts_with(word); });
        expect_that(found != kOrder.end(), fmt::format("{}: \"{}\" is late", member, text));
        place = found + 1;
      }
      expect_that(answer.texts.empty() == answer.reasons->empty(), "texts without reasons");
    });
  });
}

TEST(Validation, AnAddedRequirementTakesNoReasonAway) {
  for_all_cases([](const CaseDraw& draw) {
    const SelectionCase one = plain_case(draw);
    const Config& config = one.request.config;
    std::vector<Config> stricter;
    for (const auto wish : kWishes) {
      stricter.push_back(config);
      stricter.back().*wish = true;
    }
    for (const int block_size : {8, 16, 64, 128}) {
      if (config.block_size) continue;
      stricter.push_back(config);
      stricter.back().block_size = block_size;
    }
    for_described_backends(one, [&](const std::string& member, const BackendCheck& check) {
      const auto before = validated(check, one.facts, config).reasons;
      for (const Config& more : stricter) {
        const auto after = validated(check, one.facts, more).reasons;
        if (!after) continue;  // raises: not valid either
        expect_that(before && (before->bits() & ~after->bits()) == 0,
                    fmt::format("{} lost a reason under {}", member, repr(more)));
      }
    });
  });
}

// A wish has a reason of its own (beside a rule that depends on several fields): nothing else
// changes with it, and which reason it is does not depend on the backend.
TEST(Validation, AWishConcernsItsOwnReasonOnly) {
  constexpr std::array<Reason, kWishes.size()> kOwn = {
      Reason::kSink,          Reason::kMmPrefix,  Reason::kPerHeadQuantScales,
      Reason::kSlidingWindow, Reason::kNonCausal, Reason::kBatchInvariance,
      Reason::kKvConnector,   Reason::kPcp,       Reason::kQueryLensMismatch,
      Reason::kDcp,           Reason::kRswa};
  for_all_cases([&](const CaseDraw& draw) {
    const SelectionCase one = plain_case(draw);
    const std::uint32_t several =
        Reasons::bit(Reason::kCombination) | Reasons::bit(Reason::kNonCausalDcp);
    for_described_backends(one, [&](const std::string& member, const BackendCheck& check) {
      for (std::size_t i = 0; i < kWishes.size(); ++i) {
        Config with = one.request.config;
        Config without = with;
        with.*kWishes[i] = true;
        without.*kWishes[i] = false;
        const auto a = validated(check, one.facts, with).reasons;
        const auto b = validated(check, one.facts, without).reasons;
        if (!a || !b) continue;
        const std::uint32_t changed = (a->bits() ^ b->bits()) & ~several;
        expect_that((changed & ~Reasons::bit(kOwn[i])) == 0,
                    fmt::format("{}: wish {} changes other reasons", member, i));
      }
    });
  });
}

TEST(Selection, EqualsTheSecondWriting) {
  for_all_cases([](const CaseDraw& draw) {
    const SelectionCase one = make_case(draw);
    const BackendSelector selector(one.facts, registry_of(one));
    const WrittenSelector expected(one.facts, one.overrides);
    for (const SelectionRequest& request : requests_on_the_way(draw)) {
      expect_none(repr(request.config),
                  difference(expected.select(request), selector.select(request)));
    }
  });
}

TEST(Selection, ChoosesTheFirstValidCandidate) {
  for_all_cases([](const CaseDraw& draw) {
    SelectionCase one = make_case(draw);
    one.request.backend.reset();
    const Selection selection = BackendSelector(one.facts, registry_of(one)).select(one.request);
    if (selection.candidates.empty()) return;  // a platform without validation
    const auto valid = std::find_if(selection.candidates.begin(), selection.candidates.end(),
                                    [](const Candidate& c) { return c.reasons.empty(); });
    const bool raised =
        selection.error && !std::string(selection.error->what()).starts_with("No valid attention");
    if (raised) return;  // by a class that was asked for
    expect_that((valid == selection.candidates.end()) == selection.error.has_value(),
                "no valid candidate, or an error in spite of one");
    if (!selection.error) expect_that(selection.backend == valid->name, "not the first valid one");
  });
}

TEST(Selection, WithoutABackendTheOthersKeepTheirOrder) {
  for_all_cases([](const CaseDraw& draw) {
    SelectionCase one = plain_case(draw);
    one.request.backend.reset();
    const Selection whole = BackendSelector(one.facts, registry_of(one)).select(one.request);
    for (std::size_t gone = 0; gone < whole.candidates.size(); ++gone) {
      // Others are compared with its layouts.
      if (one.facts.platform == Platform::kRocm && whole.candidates[gone].name == "TURBOQUANT")
        continue;
      SelectionCase less = one;
      less.overrides[whole.candidates[gone].name] = "gone.module.Backend";
      const Selection rest = BackendSelector(less.facts, registry_of(less)).select(less.request);
      expect_that(rest.candidates.size() == whole.candidates.size(),
                  "another number of candidates");
      std::optional<std::string> first;
      for (std::size_t i = 0; i < whole.candidates.size(); ++i) {
        const Candidate& now = rest.candidates[i];
        expect_that(now.name == whole.candidates[i].name, "another order");
        expect_that(i == gone ? !now.reasons.empty() : now.reasons == whole.candidates[i].reasons,
                    fmt::format("{} without {} has [{}]", now.name, whole.candidates[gone].name,
                                fmt::join(now.reasons, ", ")));
        if (!first && i != gone && now.reasons.empty()) first = now.name;
      }
      expect_that(rest.backend == first, "not the best of the others");
    }
  });
}

// What a layer does not get, it does not get with one more wish. The list of candidates must not
// depend on the wish.
TEST(Selection, AnAddedRequirementMakesNoErrorAnAnswer) {
  for_all_cases([](const CaseDraw& draw) {
    SelectionCase one = make_case(draw);
    const Platform platform = one.facts.platform;
    if (platform != Platform::kCuda && platform != Platform::kRocm) return;
    const BackendSelector selector(one.facts, registry_of(one));
    if (!selector.select(one.request).error) return;
    for (const auto wish : kWishes) {
      const bool changes_list = !one.request.backend && (wish == &Config::use_mm_prefix ||
                                                         wish == &Config::use_non_causal ||
                                                         wish == &Config::use_kv_connector);
      if (changes_list) continue;
      SelectionRequest more = one.request;
      more.config.*wish = true;
      expect_that(selector.select(more).error.has_value(), repr(more.config));
    }
  });
}

TEST(SelectorConfig, IsReadBackFromItsRepr) {
  for_all_cases([](const CaseDraw& draw) {
    for (const SelectionRequest& request : requests_on_the_way(draw)) {
      const std::string text = to_string(request.config);
      expect_that(text == repr(request.config), text);
      const Config read = selector_config_from_repr(text);
      expect_that(read == request.config, text);
      expect_that(read.attn_type.plain == request.config.attn_type.plain, text);
    }
  });
}

}  // namespace
}  // namespace attn::property_tests
