#include "cli/relation.h"

#include <fmt/core.h>

#include "attn/error.h"
#include "cli/judging.h"

namespace attn::cli {
namespace {

std::string bytes_of(const TensorView& out, const CaseRelation::Rows& rows) {
  if (rows.first_token < 0 || rows.count < 0 || rows.first_token > out.shape[0] - rows.count) {
    throw Error(fmt::format("{}: rows [{}, {}) of out ({}) do not exist", rows.id, rows.first_token,
                            rows.first_token + rows.count, to_string(out)));
  }
  const auto bytes = static_cast<std::size_t>(rows.count * out.stride_bytes[0]);
  return {reinterpret_cast<const char*>(out.at(rows.first_token)), bytes};
}

}  // namespace

Judgement judge_relation(const CaseRelation& relation, const OutOf& out_of) {
  std::string first;
  for (const CaseRelation::Rows& rows : relation.rows) {
    const TensorView out = out_of(rows.id);
    if (!out.present()) {
      return unjudged(Verdict::kSkipped, fmt::format("no answer for {}", rows.id));
    }
    const std::string bytes = bytes_of(out, rows);
    if (&rows == &relation.rows.front()) first = bytes;
    if (bytes != first) {
      return unjudged(Verdict::kFail,
                      fmt::format("{} differs from {}", rows.id, relation.rows[0].id));
    }
  }
  return {};
}

}  // namespace attn::cli
