# Writes FILE, a header with the commit of the working tree ROOT and its date; nothing of a tree without git.
execute_process(COMMAND git -C ${ROOT} describe --always --dirty --abbrev=8 --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
execute_process(COMMAND git -C ${ROOT} log -1 --format=%cs
                OUTPUT_VARIABLE date OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(failed)
  set(text "")
else()
  set(text "${commit} ${date}")
endif()
set(header "#define HVD_COMMIT \"${text}\"\n")
if(EXISTS ${FILE})
  file(READ ${FILE} old)
endif()
if(NOT "${old}" STREQUAL "${header}")
  file(WRITE ${FILE} "${header}")
endif()
