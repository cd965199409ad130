// The operations, each straight from a valid problem into the outputs that are present.
#pragma once

#include "attn/operation.h"
#include "attn/output.h"

namespace attn::second {

void attention(const AttentionOp& op, const Outputs& outputs);
void differential(const DifferentialOp& op, const Outputs& outputs);
void mla(const MlaOp& op, const Outputs& outputs);
void mla_sparse(const MlaSparseOp& op, const Outputs& outputs);
void indexer(const IndexerOp& op, const Outputs& outputs);
void merge_states(const MergeStatesOp& op, const Outputs& outputs);
void cache_write(const CacheWriteOp& op, const Outputs& outputs);
void mla_cache_write(const MlaCacheWriteOp& op, const Outputs& outputs);

}  // namespace attn::second
