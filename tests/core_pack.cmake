# The committed core pack, seen from C++, the command line and numpy.
set(core_pack ${PROJECT_SOURCE_DIR}/golden/packs/core-1.0.0)
if(TARGET attn_cli)
  attn_add_test(core_pack_test
    SOURCES command_runner.cc core_pack_test.cc
    LIBRARIES attn attn_questions attn_exact attn_property_runner fmt::fmt nlohmann_json::nlohmann_json
    LABELS unit)
  target_compile_definitions(core_pack_test PRIVATE ATTN_CLI="$<TARGET_FILE:attn_cli>" ATTN_VERSION="${PROJECT_VERSION}"
                                                    ATTN_CORE_PACK="${core_pack}")
  add_dependencies(core_pack_test attn_cli)
  attn_add_script_test(pack.numpy_judges_answers schema scripts/check_judging.py ${core_pack} $<TARGET_FILE:attn_cli>)
endif()
attn_add_script_test(pack.numpy_recomputes_it schema scripts/read_pack.py ${core_pack})
attn_add_script_test(pack.numpy_recomputes_hand_made_cases schema scripts/read_pack.py tests/data/third_party/hand_made)
attn_add_script_test(judge.numpy_has_the_same_row_bounds schema scripts/make_row_bounds.py tests/data/row_bounds.json --check)
