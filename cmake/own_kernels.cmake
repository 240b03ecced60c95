# Kernels of our own: CUDA, compiled to PTX by clang, which needs no toolkit for it.
find_program(GRIDLOOM_CLANG NAMES clang++-19 clang++ REQUIRED)
execute_process(COMMAND ${GRIDLOOM_CLANG} -dumpversion OUTPUT_VARIABLE GRIDLOOM_CLANG_VERSION OUTPUT_STRIP_TRAILING_WHITESPACE)

# gridloom_own_kernels(SOURCE OUTPUT [SM n] [DEPENDS …] [OPTIONS …]): compiles a CUDA file to the PTX file OUTPUT, for devices from SM on.
function(gridloom_own_kernels source output)
  cmake_parse_arguments(ARG "" "SM" "DEPENDS;OPTIONS" ${ARGN})
  add_custom_command(
    OUTPUT ${output} DEPENDS ${source} ${ARG_DEPENDS}
    COMMAND ${GRIDLOOM_CLANG} -x cuda --cuda-device-only -nocudainc -nocudalib -Wno-unknown-cuda-version --cuda-gpu-arch=sm_${ARG_SM}
            --cuda-feature=+ptx64 -std=c++20 -I${CMAKE_SOURCE_DIR} ${ARG_OPTIONS} -S ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${output}
    COMMENT "Compiling the kernels of ${source} to PTX"
    VERBATIM)
endfunction()
