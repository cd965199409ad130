# Tests of the operations around attention.
attn_add_test(operations_test
  SOURCES cache_write_test.cc conditioning_test.cc differential_test.cc indexer_test.cc
          latent_attention_test.cc merge_states_test.cc
  LIBRARIES attn_reference
  LABELS unit)
