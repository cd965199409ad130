#include "golden/exact/store_state.h"

#include "attn/conditioning.h"

namespace attn::exact {
namespace {

// put(j, store) calls `store` with the index of element j of this row.
template <class At>
void store_sums_at(RoundedRow& to, const Outputs& outputs, const RowState& state, const At& put) {
  const auto upward = [&](const char* name, const MutableTensorView& view,
                          const std::vector<Real>& sums) {
    for (std::size_t j = 0; j < sums.size(); ++j) {
      put(static_cast<std::int64_t>(j),
          [&](RoundedRow::Index at) { to.upward(name, view, at, sums[j]); });
    }
  };
  upward("cond_pv", outputs.cond_pv, state.out.size);
  upward("cond_pav", outputs.cond_pav, state.cond_pav);
  upward("cond_puv", outputs.cond_puv, state.cond_puv);
  upward("cond_v", outputs.cond_v, state.cond_v);
  const MutableTensorView& row = outputs.cond_row;
  for (int f = 0; f < kNumRowFields; ++f) {
    const Real& x = state.row[static_cast<std::size_t>(f)];
    put(f, [&](RoundedRow::Index at) {
      if (f == kRowLse) {
        to.nearest("cond_row", row, at, x, state.lse_size);
      } else if (f == kRowMax || f == kRowKeysMax) {
        to.nearest("cond_row", row, at, x, abs(x));
      } else if (f == kRowMass) {
        to.downward("cond_row", row, at, x);
      } else {
        to.upward("cond_row", row, at, x);
      }
    });
  }
}

}  // namespace

void store_out(RoundedRow& to, const Outputs& outputs, std::int64_t token, std::int64_t head,
               const RowState& state) {
  for (std::size_t j = 0; j < state.out.value.size(); ++j) {
    to.nearest("out", outputs.out, {token, head, static_cast<std::int64_t>(j)}, state.out.value[j],
               state.out.size[j]);
  }
}

void store_lse(RoundedRow& to, const Outputs& outputs, std::int64_t token, std::int64_t head,
               const RowState& state, bool includes_sink) {
  if (includes_sink) {
    to.nearest("lse", outputs.lse, {head, token}, state.lse, state.lse_size);
  } else {
    to.nearest("lse", outputs.lse, {head, token}, state.lse_keys, state.lse_keys_size);
  }
}

void store_sums(RoundedRow& to, const Outputs& outputs, std::int64_t token, std::int64_t head,
                const RowState& state) {
  store_sums_at(to, outputs, state, [&](std::int64_t last, const auto& store) {
    store({token, head, last});
  });
}

void store_sums_of_pair(RoundedRow& to, const Outputs& outputs, int which, std::int64_t token,
                        std::int64_t pair, const RowState& state) {
  store_sums_at(to, outputs, state, [&](std::int64_t last, const auto& store) {
    store({which, token, pair, last});
  });
}

}  // namespace attn::exact
