# cmake -DSCRIPT=a.sh -DOUTPUT=a.inc -P embed_script.cmake: the script as one line in a C++ string literal, without comments.
# A line break becomes "; " where it ends a command and " " where the command goes on.
file(READ ${SCRIPT} text)
set(text "\n${text}")
string(REGEX REPLACE "\n[ \t]*#[^\n]*" "" text "${text}")
string(REGEX REPLACE "[ \t]+#[^\n]*" "" text "${text}")  # behind code; no string has a blank before "#"
string(REGEX REPLACE "\n[ \t\n]*" "\n" text "${text}")
string(REGEX REPLACE "^\n|\n$" "" text "${text}")
string(REGEX REPLACE "([;&|{(])\n" "\\1 " text "${text}")
string(REGEX REPLACE "([ ;\n])(then|do|else|in)\n" "\\1\\2 " text "${text}")
string(REGEX REPLACE "\n" "; " text "${text}")
foreach(forbidden "!" "'" "\\")  # csh and fish read these in quotes
  string(FIND "${text}" "${forbidden}" at)
  if(NOT at EQUAL -1)
    message(FATAL_ERROR "${SCRIPT} has a ${forbidden} in its code, which not every login shell passes on")
  endif()
endforeach()
file(WRITE ${OUTPUT} "R\"sh(${text})sh\"\n")
