#include "golden/questions/ask.h"

#include <algorithm>
#include <utility>

namespace attn::questions {
namespace {

bool any_request(const AttentionSetup& setup, bool (*holds)(const RequestSetup&)) {
  return std::any_of(setup.requests.begin(), setup.requests.end(), holds);
}

std::vector<std::string> flags_of(const AttentionSetup& setup) {
  std::vector<std::string> flags;
  if (setup.padding_rows > 0) flags.emplace_back("padded_rows");
  const bool poisoned = setup.fill != Fill::kZero || setup.source.family == Family::kPoisoned;
  if (poisoned && setup.cache != CacheForm::kVarlen) flags.emplace_back("poisoned");
  if (any_request(setup,
                  [](const RequestSetup& r) { return r.query_len > r.seq_len && r.seq_len > 0; })) {
    flags.emplace_back("q_len_gt_seq_len");
  }
  if (any_request(setup, [](const RequestSetup& r) { return r.seq_len == 0; })) {
    flags.emplace_back("seq_len_zero");
  }
  return flags;
}

}  // namespace

std::vector<Question> ask(const std::vector<AttentionEntry>& entries) {
  std::vector<Question> questions;
  for (const AttentionEntry& entry : entries) {
    Question question;
    question.id = entry.id;
    question.variant = entry.id.substr(0, entry.id.find('-'));
    question.name = entry.name;
    question.scenario = entry.scenario;
    question.where = where(entry.setup.source);
    question.flags = flags_of(entry.setup);
    question.rulings = entry.rulings;
    DrawnAttention drawn = draw_attention(entry.setup);
    question.operation = drawn.op;
    question.memory = std::move(drawn.memory);
    questions.push_back(std::move(question));
  }
  return questions;
}

}  // namespace attn::questions
