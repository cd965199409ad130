attn_add_test(cpu_backend_test
  SOURCES cpu_backend_test.cc cpu_definition.cc cpu_intervals_test.cc cpu_key_parts_test.cc cpu_latent_test.cc
          cpu_random_problem.cc cpu_reply.cc cpu_specials_test.cc cpu_widen_test.cc
  LIBRARIES attn_optimized_cpu attn_core nlohmann_json::nlohmann_json
  LABELS unit)
