# Headers outside the project that most files read are parsed once. A cold build of the whole tree takes half as long by it.
# clang-tidy and clangd of another version than the compiler's cannot read them: OFF for these (.clang-tidy says how).
# No header with templates that each file which reads it must instantiate: nlohmann/json.hpp costs a file 0.8 s with g++ 12 whether
# the file uses it or not, three times what all of these cost.
option(GRIDLOOM_PRECOMPILED "Parse common headers once" ON)
if(GRIDLOOM_PRECOMPILED AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")   # ccache tells by their contents whether they are the same
endif()

# Libraries are compiled with -fPIC, programs with -fPIE, so that each of the two kinds needs its own.
file(WRITE ${CMAKE_BINARY_DIR}/precompiled/library.cpp "")
file(WRITE ${CMAKE_BINARY_DIR}/precompiled/program.cpp "int main() {}\n")
set(GRIDLOOM_COMMON_HEADERS <algorithm> <array> <atomic> <bit> <charconv> <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <filesystem>
    <fstream> <functional> <map> <memory> <mutex> <numeric> <optional> <random> <set> <span> <sstream> <string> <string_view> <thread>
    <unordered_map> <unordered_set> <utility> <variant> <vector>)
if(GRIDLOOM_PRECOMPILED)
  add_library(gl_precompiled STATIC ${CMAKE_BINARY_DIR}/precompiled/library.cpp)
  target_precompile_headers(gl_precompiled PRIVATE ${GRIDLOOM_COMMON_HEADERS})
  add_executable(gl_precompiled_test ${CMAKE_BINARY_DIR}/precompiled/program.cpp)
  target_compile_options(gl_precompiled_test PRIVATE ${GRIDLOOM_TEST_OPTIONS})
  set_target_properties(gl_precompiled_test PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/precompiled)
  target_precompile_headers(gl_precompiled_test PRIVATE ${GRIDLOOM_COMMON_HEADERS} <catch2/catch.hpp>)
endif()

# gridloom_use_precompiled(TARGET FROM): FROM is gl_precompiled or gl_precompiled_test.
function(gridloom_use_precompiled target from)
  if(GRIDLOOM_PRECOMPILED)
    target_precompile_headers(${target} REUSE_FROM ${from})
  endif()
endfunction()

# gridloom_own_precompiled(TARGET): its own ones, where it is compiled with other options. Single files with other options skip them.
function(gridloom_own_precompiled target)
  if(GRIDLOOM_PRECOMPILED)
    target_precompile_headers(${target} PRIVATE ${GRIDLOOM_COMMON_HEADERS})
  endif()
endfunction()
