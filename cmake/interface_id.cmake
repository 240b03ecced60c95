# gridloom_interface_id(target SYMBOL symbol NAMESPACE ns FILES …): an interface library whose header, TARGET.h, has one constant:
# a hash of what the files say. Two libraries that were built from other versions of the files have other constants.
function(gridloom_interface_id target)
  cmake_parse_arguments(ARG "" "NAMESPACE;SYMBOL" "FILES" ${ARGN})
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${target})
  set(output ${directory}/${target}.h)
  add_custom_command(
    OUTPUT ${output} DEPENDS ${ARG_FILES} ${CMAKE_SOURCE_DIR}/cmake/hash_files.cmake
    COMMAND ${CMAKE_COMMAND} "-DFILES=${ARG_FILES}" -DOUTPUT=${output} -DSYMBOL=${ARG_SYMBOL} -DNAMESPACE=${ARG_NAMESPACE}
            -P ${CMAKE_SOURCE_DIR}/cmake/hash_files.cmake
    VERBATIM)
  add_custom_target(${target}_header DEPENDS ${output})
  add_library(${target} INTERFACE)
  add_dependencies(${target} ${target}_header)
  target_include_directories(${target} INTERFACE ${directory})
endfunction()
