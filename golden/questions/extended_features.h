// What a sweep of pack `extended` switches on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "golden/questions/setup.h"

namespace attn::questions {

struct Feature {
  std::string variant;
  std::string what;  // tells features of one variant apart
  std::vector<std::string> rulings;
  // `length`: of the window, chunk, prefix or part, at least 1. The requests are there already.
  void (*switch_on)(AttentionSetup& setup, std::int64_t length);
};

const std::vector<Feature>& length_features();  // what has a length
const std::vector<Feature>& score_features();   // what changes scores
const std::vector<Feature>& memory_features();  // what changes types and rows of the cache

std::vector<Feature> all_features();

}  // namespace attn::questions
