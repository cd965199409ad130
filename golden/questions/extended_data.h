// What the cases of pack `extended` are drawn from: families of data, wherever they apply.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "golden/questions/draw.h"
#include "golden/questions/latent_setup.h"
#include "golden/questions/setup.h"

namespace attn::questions {

// Seeds are derived from a counter; every topic counts on its own.
enum class ExtendedTopic : std::uint32_t { kFamilies, kSizes, kOperations };
std::uint64_t extended_seed(ExtendedTopic topic, std::uint32_t number);

const std::vector<Family>& all_families();

std::string_view exposes(Family family);  // the mistake that such data shows

// False where the data would be those of another family: conditions on memory without pages, codes
// of wide types, values of a cache that holds drawn codes whatever the family. And where an output
// that is a short fraction may lie between two codes: no pack says which of them is right.
bool applies(Family family, const AttentionSetup& setup);
bool applies(Family family, const LatentSetup& setup);  // keys are the values, none is a needle
bool applies_to_keys(Family family, DType key_dtype);   // no values, no pages, no needle

// The same question with other data. Families that ask for a scale get it: a power of two, and a
// small one for codes that reach far.
AttentionSetup with_source(AttentionSetup setup, const Source& source);
LatentSetup with_source(LatentSetup setup, const Source& source);

}  // namespace attn::questions
