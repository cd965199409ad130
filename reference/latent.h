// Rows of a latent (MLA) cache, decoded.
#pragma once

#include <cstdint>
#include <span>

#include "attn/operation.h"
#include "reference/gather.h"

namespace attn::reference {

// Rows latent ‖ rope of the given slots: [slots, kv_lora_rank + qk_rope_head_dim].
RowMatrix gather_latent(const MlaOp& op, std::span<const KvSlot> slots);

// Where positions of one request lie, by its block table.
std::vector<KvSlot> latent_slots(const MlaOp& op, std::int64_t request,
                                 std::span<const std::int64_t> positions);

// The first `columns` of every row, padded anew.
RowMatrix first_columns(const RowMatrix& rows, std::int64_t columns);

}  // namespace attn::reference
