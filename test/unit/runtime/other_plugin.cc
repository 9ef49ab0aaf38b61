// Stands for a plug-in of another build: it has all functions, and none may be called.
#include <cstdlib>

#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT const char* hvd_plugin_interface() { return "another one"; }
EXPORT void* hvd_inter_host_create() { std::abort(); }
