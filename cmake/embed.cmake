# gridloom_embed(target NAMESPACE ns FILES file=symbol …): compiles text files into a target as std::string_view constants.
function(gridloom_embed target)
  cmake_parse_arguments(ARG "" "NAMESPACE" "FILES" ${ARGN})
  foreach(pair ${ARG_FILES})
    string(REPLACE "=" ";" pair ${pair})
    list(GET pair 0 file)
    list(GET pair 1 symbol)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} OUTPUT_VARIABLE source)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.cpp)
    add_custom_command(
      OUTPUT ${output} DEPENDS ${source} ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake
      COMMAND ${CMAKE_COMMAND} -DINPUT=${source} -DOUTPUT=${output} -DSYMBOL=${symbol} -DNAMESPACE=${ARG_NAMESPACE}
              -P ${CMAKE_SOURCE_DIR}/cmake/embed_file.cmake)
    target_sources(${target} PRIVATE ${output})
  endforeach()
endfunction()
