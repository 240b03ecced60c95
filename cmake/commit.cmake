# cmake -DSOURCE=… -DOUTPUT=… -P commit.cmake: writes a header that has the commit of a checkout, where it has changed. Without git, or
# outside of a checkout, the commit is empty.
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty=+ --abbrev=12 "--exclude=*"
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(commit "")
endif()
set(text "#pragma once\n\n#define GRIDLOOM_COMMIT \"${commit}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
  file(WRITE ${OUTPUT} "${text}")
endif()
