// A question of the operation `attention` before anything is drawn: sizes, what is on, family and
// seed. Everything has a default, so a question states only what it is about.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "attn/kv_cache.h"
#include "attn/mask.h"
#include "attn/operation.h"
#include "golden/questions/block_plan.h"
#include "golden/questions/draw.h"
#include "golden/questions/fill.h"

namespace attn::questions {

struct RequestSetup {
  std::int64_t query_len = 0;
  std::int64_t seq_len = 0;
  std::int64_t drawn_as = -1;  // request of its coordinates; -1: its place in the batch
};

enum class CacheForm : std::uint8_t { kVarlen, kPagedNhd, kPagedHnd, kPackedNhd, kPackedHnd };

// How many scales a tensor of scales has.
enum class Scales : std::uint8_t { kNone, kOne, kPerHead, kPerRequestHead };

// A tensor over scores: [num_reqs|1, num_heads|1, max query_len|1, max seq_len|1].
struct ScoreAxes {
  bool per_request = true;
  bool per_head = true;
  bool per_row = true;
  bool per_key = true;
  std::int64_t unused_columns = 0;  // beyond the longest sequence, hidden (bias: NaN)
};

struct MaskTensor {
  ScoreAxes axes = {};
  // Visible when it says so; absent: the map `mask bit`.
  std::function<bool(std::int64_t request, std::int64_t head, std::int64_t row, std::int64_t k)>
      given = {};
};

struct BiasTensor {
  ScoreAxes axes = {};
  DType dtype = DType::kF32;
  bool hides = false;  // -inf where the mask bit at the same place says hidden
};

// A draft tree over the first rows of a request. parents[0] is -1; a node follows its parent.
struct Tree {
  std::vector<int> parents = {};
  bool finite_bias = false;  // N for the nodes a row sees, else 0
};

struct MaskSetup {
  bool causal = true;
  std::vector<int> causal_per_req = {};
  std::int64_t window_left = MaskSpec::kUnbounded;
  std::int64_t window_right = MaskSpec::kUnbounded;
  std::int64_t sink_token_length = 0;
  std::int64_t chunk_size = 0;
  std::int64_t chunk_lookback = 0;
  std::int64_t rswa_window = 0;
  std::vector<std::int64_t> rswa_prefix_lens = {};
  std::vector<std::vector<std::pair<int, int>>> mm_ranges = {};  // of each request; padded by (0,0)
  bool mm_clamp = false;
  std::optional<MaskTensor> attn_mask = {};
};

struct AttentionSetup {
  Source source = {};
  std::vector<RequestSetup> requests = {};
  std::int64_t num_heads = 2;
  std::int64_t num_kv_heads = 1;
  std::int64_t head_size = 8;
  std::int64_t head_size_v = 0;  // 0: head_size
  double scale = 0.0;            // 0: head_size^-1/2 rounded to binary32
  double soft_cap = 0.0;
  DType query_dtype = DType::kF32;
  DType kv_dtype = DType::kF32;
  KvEncoding encoding = KvEncoding::kPlain;
  Scales kv_scales = Scales::kNone;
  Scales q_scale = Scales::kNone;
  bool output_scale = false;

  CacheForm cache = CacheForm::kVarlen;
  BlockOptions blocks = {};
  Fill fill = Fill::kZero;        // of slots that no request addresses; paged
  bool fill_hidden = false;       // keys that no row sees are filled too
  std::int64_t padding_rows = 0;  // rows of the query beyond the last token, NaN

  MaskSetup mask = {};
  AlibiForm alibi = AlibiForm::kNone;
  std::optional<BiasTensor> attn_bias = {};
  Tree tree = {};
  std::vector<double> sinks = {};
  bool drawn_sinks = false;  // 2 * N
  DType sinks_dtype = DType::kF32;
  bool lse_includes_sink = true;
  ExecSpec exec = {};
};

std::vector<std::int64_t> query_lens(const AttentionSetup& setup);
std::vector<std::int64_t> seq_lens(const AttentionSetup& setup);

// The operation a setup describes; views look into `memory`.
struct DrawnAttention {
  AttentionOp op;
  TensorStore memory;
};

DrawnAttention draw_attention(const AttentionSetup& setup);

}  // namespace attn::questions
