# Tests of the variants that no case can express.
attn_add_test(variant_units_test
  SOURCES variant_answer_forms_test.cc variant_batch_test.cc variant_codes_test.cc variant_latent_test.cc
          variant_table_test.cc
  LIBRARIES attn_judge attn_reference
  LABELS unit)
# A declared form with one field named leaves the others to their defaults.
target_compile_options(variant_units_test PRIVATE -Wno-missing-field-initializers)
