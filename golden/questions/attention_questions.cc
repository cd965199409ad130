#include "golden/questions/attention_questions.h"

#include <utility>

namespace attn::questions {

std::vector<AttentionEntry> attention_entries() {
  std::vector<AttentionEntry> all;
  for (auto* entries :
       {base_mask_entries, window_entries, range_entries, score_entries, sink_entries, head_entries,
        quantised_entries, batch_entries, exec_entries}) {
    for (AttentionEntry& entry : entries()) all.push_back(std::move(entry));
  }
  return all;
}

}  // namespace attn::questions
