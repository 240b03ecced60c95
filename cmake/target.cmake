# Several files of a target are compiled as one: two thirds of a file's time are its headers, and a cold build takes half as long.
# Off (preset `dev`) where single files are edited again and again.
option(GRIDLOOM_UNITY "Compile several files of a folder at once" ON)

# gridloom_use_unity(TARGET): names that a file has for itself must then be its own among the files of the target. Files with options of
# their own stay apart.
function(gridloom_use_unity target)
  if(GRIDLOOM_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 12)
    # A class of a .cpp file with a member of a type from its unnamed namespace: to GCC, such a file is a header then.
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
    endif()
  endif()
endfunction()

# gridloom_apart(FILES…): files of this folder that are compiled by themselves: those that tests link others in place of (lists to which
# docs/extending.md adds a row, for one), and those whose names for themselves are alike.
function(gridloom_apart)
  set_source_files_properties(${ARGN} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# gridloom_library(name SOURCES … [DEPENDS …] [OPTIONS …] [APART] [SELDOM]): a static library of one folder; options of the compiler
# besides the usual ones. APART: each file is compiled by itself, as files that are alike, such as parts, have names alike for themselves.
# SELDOM: what is in it runs for moments, so that little optimisation will do; its headers are precompiled with all of it.
function(gridloom_library name)
  cmake_parse_arguments(ARG "APART;SELDOM" "" "SOURCES;DEPENDS;OPTIONS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  if(NOT ARG_APART)
    gridloom_use_unity(${name})
  endif()
  target_link_libraries(${name} PUBLIC ${ARG_DEPENDS})
  if(ARG_SELDOM AND CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${name} PRIVATE ${GRIDLOOM_SELDOM_OPTIONS})
  endif()
  if(ARG_OPTIONS)
    target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
    gridloom_own_precompiled(${name})
  else()
    gridloom_use_precompiled(${name} gl_precompiled)
  endif()
endfunction()
