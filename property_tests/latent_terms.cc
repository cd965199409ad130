// Terms of the projections of expanded latent attention.
#include <cmath>

#include "property_tests/bound_case.h"
#include "property_tests/hand_row.h"
#include "property_tests/number_rounder.h"

namespace attn::property_tests {
namespace {

struct HandLatents {
  std::vector<std::vector<double>> latents;  // of each key
  std::vector<double> query = {1.0};         // [head_size]
  std::vector<std::vector<double>> w_uk;     // [latent][head_size]
  std::vector<double> w_uv;                  // [latent]
  DType type = DType::kF64;                  // of latents
  DType weight_type = DType::kF64;           // of w_uk and w_uv
};

std::vector<double> flat(const std::vector<std::vector<double>>& rows) {
  std::vector<double> all;
  for (const std::vector<double>& row : rows) all.insert(all.end(), row.begin(), row.end());
  return all;
}

DrawnOperation operation_of(const HandLatents& hand) {
  DrawnOperation drawn;
  const auto keep = [&](DType type, std::vector<std::int64_t> shape,
                        const std::vector<double>& values) {
    return drawn.memory.keep(HostTensor(type, std::move(shape), values));
  };
  const auto rank = static_cast<std::int64_t>(hand.w_uv.size());
  const auto keys = static_cast<std::int64_t>(hand.latents.size());
  const auto size = static_cast<std::int64_t>(hand.query.size());
  MlaOp op;
  op.form = MlaForm::kExpanded;
  op.kv_lora_rank = rank;
  op.qk_rope_head_dim = 0;
  op.qk_nope_head_dim = size;
  op.query = keep(DType::kF64, {1, 1, size}, hand.query);
  op.query_start_loc = keep(DType::kI32, {2}, {0.0, 1.0});
  op.seq_lens = keep(DType::kI32, {1}, {static_cast<double>(keys)});
  op.kv_cache = keep(hand.type, {1, keys, rank}, flat(hand.latents));
  op.block_table = keep(DType::kI32, {1, 1}, {0.0});
  op.w_uk = keep(hand.weight_type, {rank, 1, size}, flat(hand.w_uk));
  op.w_uv = keep(hand.weight_type, {rank, 1, 1}, hand.w_uv);
  drawn.operation = op;
  return drawn;
}

std::vector<std::vector<double>> column(const std::vector<double>& elements) {
  std::vector<std::vector<double>> rows;
  for (const double x : elements) rows.push_back({x});
  return rows;
}

void exact_projection(Arithmetic& a) {
  a.project.emplace();
  a.project->sum.type = NumberFormat::kExact;
}

// Latents 1 and tiny ones, summed by w_uk or w_uv of ones.
HandLatents chained() {
  HandLatents hand;
  hand.latents = {chain(64, kUnitF32 * kUp)};
  hand.w_uv = std::vector<double>(64, 1.0);
  hand.w_uk = column(hand.w_uv);
  return hand;
}

// One key whose score, or value, is `latent` times `weight`.
HandLatents one_product(double latent, double weight) {
  HandLatents hand;
  hand.latents = {{latent}};
  hand.w_uk = {{weight}};
  hand.w_uv = {weight};
  return hand;
}

}  // namespace

std::vector<BoundCase> latent_terms() {
  std::vector<BoundCase> cases;
  const auto add = [&](BoundCase one) { cases.push_back(std::move(one)); };
  const auto absorbed = [](ModelOptions& o, int) { o.latent = LatentPath::kAbsorbed; };
  const auto prefill = [](ModelOptions& o, int) { o.latent = LatentPath::kPrefill; };

  add({.term = "DepthOfTheProjectionOfKeys",
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.project->sum.type = NumberFormat::kF32;
           },
       .problem = [](int) { return operation_of(chained()); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.project->sum.lanes = 2; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = prefill});
  add({.term = "DepthOfTheProjectionOfTheQuery",
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.project->sum.type = NumberFormat::kF32;
           },
       .problem =
           [](int) {
             HandLatents hand;
             hand.latents = {{1.0}};
             hand.query = chain(64, kUnitF32 * kUp);
             hand.w_uk = {std::vector<double>(64, 1.0)};
             hand.w_uv = {1.0};
             return operation_of(hand);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.project->sum.lanes = 2; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = absorbed});
  add({.term = "DepthOfTheProjectionOfValues",
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.project->sum.type = NumberFormat::kF32;
           },
       .problem =
           [](int) {
             HandLatents hand = chained();
             hand.query = {0.0};
             return operation_of(hand);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.project->sum.lanes = 2; }},
       .least = 0.9,
       .options = prefill});
  add({.term = "StorageOfProjectedKeys",
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.project->round.type = NumberFormat::kBF16;
           },
       .problem = [](int) { return operation_of(one_product(1.0 + kUnitBF16 * kUp, 1.0)); },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.project->round = {}; }},
       .least = 0.9,
       .answer = BoundedAnswer::kLse,
       .options = prefill});
  add({.term = "StorageOfProjectedValues",  // of the latent output and of the output
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.project->round.type = NumberFormat::kBF16;
           },
       .problem =
           [](int) {
             HandLatents hand = one_product(1.0 + kUnitBF16 * kUp, 0.0);
             hand.w_uv = {1.0 + kUnitBF16 * kUp};
             return operation_of(hand);
           },
       .dropped = {.arithmetic =
                       [](Arithmetic& a) { a.project->round.type = NumberFormat::kTF32; }},
       .least = 0.8,
       .options = absorbed});
  add({.term = "RoundingOfProjectedKeys",  // as operands, after they are stored
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.key.type = NumberFormat::kBF16;
           },
       .problem =
           [](int) {
             HandLatents hand = one_product(1.0 + 5 * 0x1p-7, 1.0 + 13 * 0x1p-7);
             hand.type = hand.weight_type = DType::kBF16;
             return operation_of(hand);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.key = {}; }},
       .least = 0.8,
       .answer = BoundedAnswer::kLse,
       .options = prefill});
  add({.term = "RoundingOfAProjectedQuery",  // and of the query before
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.query.type = NumberFormat::kBF16;
           },
       .problem =
           [](int) {
             HandLatents hand = one_product(1.0, 1.0 + 65 * 0x1p-7);
             hand.query = {1.0 + kUnitBF16 * kUp};
             return operation_of(hand);
           },
       .dropped = {.arithmetic =
                       [](Arithmetic& a) {
                         a.project->round.type = NumberFormat::kBF16;
                         a.project->round.scale = 0x1p+60;
                       },
                   .terms = [](judge::SoftmaxTerms& t) { t.query = DType::kBF16; }},
       .least = 0.75,
       .answer = BoundedAnswer::kLse,
       .options = absorbed,
       .hooks = {.change_row = [](ModelRow& row) {
         row.query[0] = NumberRounder(Rounding{NumberFormat::kBF16})(row.query[0]);
       }}});
  add({.term = "RoundingOfProjectedValues",
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.value.type = NumberFormat::kBF16;
           },
       .problem =
           [](int) {
             HandLatents hand = one_product(1.0 + 5 * 0x1p-7, 1.0 + 13 * 0x1p-7);
             hand.type = hand.weight_type = DType::kBF16;
             return operation_of(hand);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.value = {}; }},
       .least = 0.8,
       .options = prefill});
  // The weight is read as 1 + 1/128, the product with the latent is rounded up once more.
  const auto weights = [](double weight) {
    HandLatents hand = one_product(1.0 + 65 * 0x1p-7, weight);
    hand.type = DType::kBF16;
    return operation_of(hand);
  };
  const auto as_stored = [weights](int) { return weights(1.0 + kUnitBF16 * kUp); };
  const auto as_read = [weights](int) { return weights(1.0 + 2.0 * kUnitBF16); };
  add({.term = "RoundingOfTheWeightsOfKeys",
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.key.type = NumberFormat::kBF16;
           },
       .problem = as_stored,
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.w_uk = DType::kBF16; }},
       .least = 0.75,
       .answer = BoundedAnswer::kLse,
       .options = prefill,
       .read_as = as_read});
  add({.term = "RoundingOfTheWeightsOfValues",
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.value.type = NumberFormat::kBF16;
           },
       .problem = as_stored,
       .dropped = {.terms = [](judge::SoftmaxTerms& t) { t.w_uv = DType::kBF16; }},
       .least = 0.75,
       .options = prefill,
       .read_as = as_read});
  add({.term = "NormalisationBeforeTheProjection",  // differs from latent to latent
       .contract =
           [](Arithmetic& a) {
             exact_projection(a);
             a.vector = NumberFormat::kF32;
             a.normalize_roundings = 8;
           },
       .problem =
           [](int) {
             HandLatents hand;
             hand.latents = {{1.0, -1.0}, {1.0, -1.0}, {1.0, -1.0}};
             hand.w_uk = {{0.0}, {0.0}};
             hand.w_uv = {1.0, 1.0};
             return operation_of(hand);
           },
       .dropped = {.arithmetic = [](Arithmetic& a) { a.normalize_roundings = 4; }},
       .least = 0.7,
       .options =
           [](ModelOptions& o, int) {
             o.latent = LatentPath::kAbsorbed;
             o.scalar_error = Injection::kUp;
           }});
  return cases;
}

}  // namespace attn::property_tests
