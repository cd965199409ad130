#include "judge/logits_judge.h"

#include <array>
#include <cmath>

#include "judge/row_judge.h"
#include "judge/row_values.h"

namespace attn::judge {

LogitsJudge::LogitsJudge(const BoundSources& bounds, const TensorPair& logits)
    : bounds_(bounds),
      logits_(logits),
      rows_("logits", largest_finite(answer_format(logits.actual.dtype))),
      figures_(logits.actual.dtype, false, false) {
  for (std::vector<double>* row : {&expected_, &actual_, &own_, &allowed_}) {
    row->resize(static_cast<std::size_t>(logits.expected.shape[1]));
  }
}

void LogitsJudge::run() {
  for (std::int64_t token = 0; token < logits_.expected.shape[0]; ++token) add_row(token);
}

void LogitsJudge::add_row(std::int64_t token) {
  const std::int64_t keys = logits_.expected.shape[1];
  read_row(logits_.expected, 0, keys, expected_.data(), token);
  read_row(logits_.actual, 0, keys, actual_.data(), token);
  const RowError own = bounds_.expectation->logits(token, own_);
  const RowError error = bounds_.answer->logits(token, allowed_);
  const bool out_of_range = own.out_of_range || error.out_of_range;
  bool finite = false;
  bool bounded = !out_of_range;
  for (std::size_t j = 0; j < allowed_.size(); ++j) {
    allowed_[j] = allowed_[j] * kBoundSlack + own_[j];
    if (!std::isfinite(expected_[j])) continue;
    finite = true;
    bounded = bounded && std::isfinite(allowed_[j]);
  }
  if (finite) ++finite_rows_;
  if (finite && !bounded) ++vacuous_rows_;
  const std::array<std::int64_t, 1> at{token};
  ComparedRow row;
  row.at = at;
  row.expected = expected_;
  row.actual = actual_;
  row.allowed = allowed_;
  if (out_of_range) {
    rows_.pass_over(keys);
  } else {
    rows_.add(row);
  }
  figures_.add({expected_, actual_, {}, {}, 0.0});
}

void LogitsJudge::write_to(Judgement& judgement, Gates& gates) const {
  judgement.rows = finite_rows_;
  judgement.vacuous_rows = vacuous_rows_;
  judgement.tensors.push_back(rows_.result());
  rows_.report_to(gates);
  figures_.write_to(judgement);
}

}  // namespace attn::judge
