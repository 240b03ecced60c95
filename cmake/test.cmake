# gridloom_test(name SOURCES … [DEPENDS …] [LABELS …] [ARGS …]): a Catch2 program of one folder, registered with CTest.
# It runs in the source tree, so that tests find tests/data by a relative path.
function(gridloom_test name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;LABELS;ARGS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE gl_test_main ${ARG_DEPENDS})
  target_compile_options(${name} PRIVATE ${GRIDLOOM_TEST_OPTIONS})
  gridloom_use_precompiled(${name} gl_precompiled_test)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name} ${ARG_ARGS} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" SKIP_REGULAR_EXPRESSION "ALL TESTS SKIPPED")
endfunction()
