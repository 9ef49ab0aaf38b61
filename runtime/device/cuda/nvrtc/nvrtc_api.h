// The part of NVRTC (CUDA's run-time compiler) used here, as a table of entry points. The
// declarations are our own; a test compares them with nvrtc.h if it is installed.
#ifndef HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_API_H_
#define HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_API_H_

#include <cstddef>
#include <string>

#include "runtime/base/loading/entry_point.h"

namespace hvd {

using NvrtcResult = int;
using NvrtcProgram = struct NvrtcProgramObject*;

inline constexpr NvrtcResult kNvrtcSuccess = 0;
inline constexpr NvrtcResult kNvrtcInvalidOption = 5;
inline constexpr NvrtcResult kNvrtcCompilation = 6;

// CALL(field, symbol, arguments)
#define HVD_NVRTC_CALLS(CALL)                                                                  \
  CALL(version, "nvrtcVersion", (int* major, int* minor))                                      \
  CALL(create_program, "nvrtcCreateProgram",                                                   \
       (NvrtcProgram * program, const char* source, const char* name, int headers,             \
        const char* const* header_sources, const char* const* include_names))                  \
  CALL(destroy_program, "nvrtcDestroyProgram", (NvrtcProgram * program))                       \
  CALL(compile_program, "nvrtcCompileProgram",                                                 \
       (NvrtcProgram program, int options, const char* const* option_texts))                   \
  CALL(get_program_log_size, "nvrtcGetProgramLogSize", (NvrtcProgram program, size_t * bytes)) \
  CALL(get_program_log, "nvrtcGetProgramLog", (NvrtcProgram program, char* log))               \
  CALL(get_cubin_size, "nvrtcGetCUBINSize", (NvrtcProgram program, size_t * bytes))            \
  CALL(get_cubin, "nvrtcGetCUBIN", (NvrtcProgram program, char* cubin))

struct NvrtcApi {
#define HVD_ENTRY(field, symbol, arguments) EntryPoint<NvrtcResult arguments> field{symbol};
  HVD_NVRTC_CALLS(HVD_ENTRY)
#undef HVD_ENTRY
  EntryPoint<const char*(NvrtcResult result)> get_error_string{"nvrtcGetErrorString"};
};

template <typename Visitor>
void ForEachEntry(NvrtcApi& api, Visitor&& visit) {
#define HVD_VISIT(field, symbol, arguments) visit(api.field);
  HVD_NVRTC_CALLS(HVD_VISIT)
#undef HVD_VISIT
  visit(api.get_error_string);
}

struct NvrtcLibrary {
  NvrtcApi api;
  std::string path;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_CUDA_NVRTC_NVRTC_API_H_
