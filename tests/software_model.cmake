# Tests of the simulated kernel that bounds are tested against.
attn_add_test(software_model_test
  SOURCES model_answer_test.cc model_families_test.cc model_native_kernels_test.cc model_options_test.cc
          number_rounder_test.cc
  LIBRARIES attn_property_tests attn_reference
  LABELS unit)
