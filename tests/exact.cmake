# Tests of the exact evaluation.
attn_add_test(exact_test
  SOURCES cpu_definition.cc cpu_random_problem.cc exact_answer_test.cc exact_cache_write_test.cc
          exact_conditioning_test.cc exact_operations_test.cc exact_specials_test.cc
          exact_third_party_test.cc
  LIBRARIES attn_exact attn_golden attn_judge fmt::fmt
  LABELS unit)
