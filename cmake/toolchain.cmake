# Speed of the build and strictness of the compiler, in one place.

# Who says nothing wants it fast: without optimisation simulations take ten times as long.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Debug, Release or RelWithDebInfo" FORCE)
endif()

find_program(GRIDLOOM_CCACHE ccache)
if(GRIDLOOM_CCACHE)
  set(CMAKE_C_COMPILER_LAUNCHER ${GRIDLOOM_CCACHE})
  # Precompiled headers are the compiler's own check then, which knows what they were made from.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${GRIDLOOM_CCACHE})
endif()

# The fastest linker there is: mold where it is there (g++ finds it by -fuse-ld=mold from version 12.1 on), else the default.
find_program(GRIDLOOM_MOLD mold)
if(GRIDLOOM_MOLD)
  add_link_options(-fuse-ld=mold)
  # mold 1.10 lets the memory that is read-only after relocation begin with zeroed thread-local variables, in front of
  # the page that the rest of it is in. One program in some hundreds, by the size of its code, has them at the very end
  # of a page that nothing maps, and does not start (findings/mold-tbss-relro.sh). Segments that begin pages of their own
  # leave no such page.
  add_link_options(-Wl,-z,separate-loadable-segments)
endif()

# Presets build with clang, which takes four fifths of g++'s time and warns of more; g++ has the preset `gcc`.
add_compile_options(-Wall -Wextra -Wimplicit-fallthrough -Wno-unused-parameter)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Werror)
endif()
# GCC 12 sees overlapping copies in `"text" + std::string` where there are none (GCC bug 105651), and with precompiled headers ones that are far too long.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# libstdc++ 12's std::stable_sort calls std::get_temporary_buffer, which C++17 deprecates; clang sees that where it is inlined.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options(-Wno-deprecated-declarations)
endif()
if(GRIDLOOM_SANITIZE)
  # Instrumented code confuses GCC's flow analysis (std::regex inside Catch2, GCC bug 105562).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-maybe-uninitialized)
  endif()
  add_compile_options(-fsanitize=${GRIDLOOM_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${GRIDLOOM_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC 12 takes instrumented standard containers for uninitialised, and warns that ThreadSanitizer ignores fences.
    add_compile_options(-Wno-maybe-uninitialized -Wno-tsan)
  endif()
endif()
if(GRIDLOOM_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)   # coverage in every library, for the fuzzers to follow
endif()
# Code that runs for moments: most of a compiler's time goes into putting functions of the standard library into one another.
set(GRIDLOOM_SELDOM_OPTIONS -O1)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND GRIDLOOM_SELDOM_OPTIONS "SHELL:-mllvm -inline-threshold=25")
endif()
# Tests are compiled once and run for seconds: what they check is in the libraries, which have their own optimisations.
set(GRIDLOOM_TEST_OPTIONS ${GRIDLOOM_SELDOM_OPTIONS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND GRIDLOOM_TEST_OPTIONS -Wno-maybe-uninitialized)   # which needs more optimisation not to see what is not there
endif()
