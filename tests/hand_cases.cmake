# Small cases with values worked out by hand, reduced from public reports.
attn_add_test(hand_cases_test
  SOURCES hand_cases_test.cc
  LIBRARIES attn_property_tests attn_reference attn_optimized_cpu
  LABELS unit)
