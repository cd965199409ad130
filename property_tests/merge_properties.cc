// Relations of merged states. How far two answers may be apart: drift_alarm.h.
#include <cmath>
#include <utility>

#include "core/special_values.h"
#include "property_tests/drift_alarm.h"
#include "property_tests/operation_property.h"
#include "tests/scoped_workers.h"

namespace attn::property_tests {
namespace {

// Parts in F64, in memory of their own, to be changed.
struct Parts {
  HostTensor out;  // [parts, tokens, heads, size]
  HostTensor lse;  // [parts, heads, tokens]

  explicit Parts(const MergeStatesOp& op)
      : out(DType::kF64, {op.out_parts.shape, op.out_parts.shape + 4}),
        lse(DType::kF64, {op.lse_parts.shape, op.lse_parts.shape + 3}) {
    for (std::int64_t p = 0; p < out.shape()[0]; ++p) {
      for (std::int64_t t = 0; t < out.shape()[1]; ++t) {
        for (std::int64_t h = 0; h < out.shape()[2]; ++h) {
          lse.set(value_at(op.lse_parts, p, h, t), p, h, t);
          for (std::int64_t d = 0; d < out.shape()[3]; ++d) {
            out.set(value_at(op.out_parts, p, t, h, d), p, t, h, d);
          }
        }
      }
    }
  }
  Parts(HostTensor outs, HostTensor lses) : out(std::move(outs)), lse(std::move(lses)) {}

  std::int64_t count() const { return out.shape()[0]; }

  Parts some(std::int64_t first, std::int64_t number) const {
    return {sliced(out, 0, first, number), sliced(lse, 0, first, number)};
  }

  // This and, behind it, `last`.
  Parts and_then(const Parts& last) const {
    const auto joined = [](const HostTensor& a, const HostTensor& b) {
      std::vector<std::int64_t> shape = a.shape();
      shape[0] += b.shape()[0];
      HostTensor both(DType::kF64, shape);
      copy_units(a, 0, a.num_units(), both, 0);
      copy_units(b, 0, b.num_units(), both, a.num_units());
      return both;
    };
    return {joined(out, last.out), joined(lse, last.lse)};
  }

  // Nothing, marked by either infinity, with NaN as out.
  Parts empty_part(double mark) const {
    Parts part = some(0, 1);
    part.out.fill(encode(DType::kF64, kNaN, Overflow::kInfinity));
    part.lse.fill(encode(DType::kF64, mark, Overflow::kInfinity));
    return part;
  }

  // Views into this object.
  MergeStatesOp op(bool base_2) const {
    MergeStatesOp merge;
    merge.out_parts = out.view();
    merge.lse_parts = lse.view();
    merge.lse_base_2 = base_2;
    return merge;
  }
};

class Merge : public OperationProperty {
 protected:
  // An answer as one part.
  Parts merged(const Parts& parts, bool base_2) const {
    const Tensors state = answer(parts.op(base_2));
    Parts part = parts.some(0, 1);
    copy_units(state.at("out"), 0, part.out.num_units(), part.out, 0);
    copy_units(state.at("lse"), 0, part.lse.num_units(), part.lse, 0);
    return part;
  }
};

INSTANTIATE_TEST_SUITE_P(, Merge, testing::ValuesIn(reference_names()), reference_name);

TEST_P(Merge, OrderOfPartsChangesNothing) {
  for_all<MergeConfig>([&](const MergeConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const Parts parts(drawn.as<MergeStatesOp>());
    Parts reversed = parts.some(parts.count() - 1, 1);
    for (std::int64_t p = parts.count() - 2; p >= 0; --p) {
      reversed = reversed.and_then(parts.some(p, 1));
    }
    expect_close(drawn.operation, reversed.op(config.base_2));
  });
}

TEST_P(Merge, EmptyPartIsTheIdentityWhateverItsOutHolds) {
  for_all<MergeConfig>([&](const MergeConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const Parts parts(drawn.as<MergeStatesOp>());
    const Tensors expected = answer(drawn.operation);
    for (const double mark : {-kInf, kInf}) {
      const Parts empty = parts.empty_part(mark);
      require_none("an empty part behind",
                   bit_difference(expected, answer(parts.and_then(empty).op(config.base_2))));
      require_none("an empty part in front",
                   bit_difference(expected, answer(empty.and_then(parts).op(config.base_2))));
    }
  });
}

TEST_P(Merge, EmptyPartsAloneAreEmpty) {
  for_all<MergeConfig>([&](const MergeConfig& config) {
    DrawnOperation drawn = draw_operation(config);
    const Parts parts(drawn.as<MergeStatesOp>());
    const Parts empty = parts.empty_part(kInf).and_then(parts.empty_part(-kInf));
    const Tensors state = answer(empty.op(config.base_2));
    for (std::int64_t i = 0; i < state.at("out").num_units(); ++i) {
      require(state.at("out").code(i) == 0, "out is 0");
    }
    for (std::int64_t i = 0; i < state.at("lse").num_units(); ++i) {
      require(decode(DType::kF64, state.at("lse").code(i)) == -kInf, "lse is -inf");
    }
  });
}

TEST_P(Merge, OnePartIsItself) {
  for_all_finite<MergeConfig>([&](MergeConfig config) {
    config.num_parts = 1;
    config.empty_parts = false;
    config.base_2 = false;
    DrawnOperation drawn = draw_operation(config);
    const Parts parts(drawn.as<MergeStatesOp>());
    require_none("a part and its union",
                 bit_difference({{"lse", parts.lse}, {"out", parts.out}}, [&] {
                   const Parts part = merged(parts, false);
                   return Tensors{{"lse", part.lse}, {"out", part.out}};
                 }()));
  });
}

TEST_P(Merge, PartsOfPartsAreParts) {
  for_all<MergeConfig>([&](MergeConfig config) {
    config.num_parts = std::max(config.num_parts, 2);
    config.base_2 = false;
    DrawnOperation drawn = draw_operation(config);
    const Parts parts(drawn.as<MergeStatesOp>());
    const std::int64_t first = 1 + static_cast<std::int64_t>(config.seed % (config.num_parts - 1u));
    const Parts nested = merged(parts.some(0, first), false)
                             .and_then(merged(parts.some(first, parts.count() - first), false));
    expect_close(drawn.operation, nested.op(false));
  });
}

TEST_P(Merge, BaseTwoIsNaturalOverTheLogarithmOfTwo) {
  for_all<MergeConfig>([&](MergeConfig config) {
    config.base_2 = false;
    DrawnOperation drawn = draw_operation(config);
    Parts parts(drawn.as<MergeStatesOp>());
    const Tensors natural = answer(parts.op(false));
    for (std::int64_t i = 0; i < parts.lse.num_units(); ++i) {
      const double lse = decode(DType::kF64, parts.lse.code(i));
      parts.lse.set_code(i, encode(DType::kF64, lse / std::log(2.0), Overflow::kInfinity));
    }
    const Operation base_2 = parts.op(true);
    const DriftAlarm alarm(base_2, answer_operation(reference_backend(), base_2, true));
    require_none("base e and base 2", alarm.difference(natural, answer(base_2), 2.0));
  });
}

TEST_P(Merge, NumberOfWorkersKeepsEveryBit) {
  for_all<MergeConfig>([&](const MergeConfig& config) {
    const DrawnOperation drawn = draw_operation(config);
    const Tensors one = answer(drawn.operation);
    const ScopedWorkers workers(3);
    require_none("one worker and three", bit_difference(one, answer(drawn.operation)));
  });
}

}  // namespace
}  // namespace attn::property_tests
