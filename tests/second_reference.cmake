# The second reference, by itself. Third parties' cases and the properties run it too.
attn_add_test(second_reference_test
  SOURCES second_reference_operations_test.cc second_reference_softmax_test.cc second_reference_visible_keys_test.cc
  LIBRARIES attn_second_reference attn_reference
  LABELS unit)
