# Writes OUTPUT, a source file with a name for what libhvd.so and its plug-ins have to agree about: a hash over the headers
# that both sides include, in SOURCE_DIR, and over COMPILER. Runs while building.
cmake_minimum_required(VERSION 3.25)
set(HEADERS runtime/backends/inter_host_loader.h runtime/backends/mpi/mpi_plugin.h runtime/backends/cuda/cuda_plugin.h)  # and what they include
set(text "${COMPILER}")
set(seen "")
while(HEADERS)
  list(POP_FRONT HEADERS header)
  if(NOT header IN_LIST seen)
    list(APPEND seen ${header})
    file(SHA256 ${SOURCE_DIR}/${header} hash)
    string(APPEND text " ${header} ${hash}")
    file(STRINGS ${SOURCE_DIR}/${header} lines REGEX "^#include \"(runtime|timeline)/")
    list(TRANSFORM lines REPLACE "^#include \"([^\"]+)\".*" "\\1")
    list(APPEND HEADERS ${lines})
  endif()
endwhile()
string(SHA256 name "${text}")
string(SUBSTRING ${name} 0 32 name)
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "// Made by plugin_interface.cmake.
#include \"runtime/backends/plugin_interface.h\"

namespace hvd {

const char* PluginInterface() { return \"@name@\"; }

}  // namespace hvd
")
