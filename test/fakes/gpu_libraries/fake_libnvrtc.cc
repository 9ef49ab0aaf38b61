// A libnvrtc.so.13 that compiles nothing: the code it gives is a word that the played driver takes.
// See README.md.
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/device/cuda/nvrtc/nvrtc_api.h"

namespace hvd {

struct NvrtcProgramObject {
  std::string source, log, code;
};

}  // namespace hvd

using hvd::NvrtcProgram;
using hvd::NvrtcResult;

#define FAKE_NVRTC extern "C" __attribute__((visibility("default"))) NvrtcResult

extern "C" __attribute__((visibility("default"))) const char* nvrtcGetErrorString(
    NvrtcResult result) {
  return result == hvd::kNvrtcCompilation ? "NVRTC_ERROR_COMPILATION" : "NVRTC_ERROR_OF_THE_FAKE";
}
FAKE_NVRTC nvrtcVersion(int* major, int* minor) {
  *major = 13;
  *minor = 0;
  return hvd::kNvrtcSuccess;
}
FAKE_NVRTC nvrtcCreateProgram(NvrtcProgram* program, const char* source, const char*, int headers,
                              const char* const* texts, const char* const* names) {
  *program = new hvd::NvrtcProgramObject{source, "", ""};
  // As the compiler would: each header that is included has to be there.
  for (int i = 0; i < headers; ++i) (*program)->source += std::string(names[i]) + texts[i];
  return hvd::kNvrtcSuccess;
}
FAKE_NVRTC nvrtcDestroyProgram(NvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return hvd::kNvrtcSuccess;
}
FAKE_NVRTC nvrtcCompileProgram(NvrtcProgram program, int options, const char* const* texts) {
  const bool fails = std::getenv("FAKE_NVRTC_FAILS") != nullptr;
  if (fails || program->source.find("hvd_batch_large") == std::string::npos) {
    program->log = "kernels.cu(7): error: the fake\n   compiles nothing\n\n";
    return hvd::kNvrtcCompilation;
  }
  program->code = "FAKE CUBIN";
  for (int i = 0; i < options; ++i) program->code += std::string(" ") + texts[i];
  return hvd::kNvrtcSuccess;
}
FAKE_NVRTC nvrtcGetProgramLogSize(NvrtcProgram program, size_t* bytes) {
  *bytes = program->log.size() + 1;
  return hvd::kNvrtcSuccess;
}
FAKE_NVRTC nvrtcGetProgramLog(NvrtcProgram program, char* log) {
  std::memcpy(log, program->log.c_str(), program->log.size() + 1);
  return hvd::kNvrtcSuccess;
}
FAKE_NVRTC nvrtcGetCUBINSize(NvrtcProgram program, size_t* bytes) {
  *bytes = program->code.size() + 1;
  return hvd::kNvrtcSuccess;
}
FAKE_NVRTC nvrtcGetCUBIN(NvrtcProgram program, char* code) {
  std::memcpy(code, program->code.c_str(), program->code.size() + 1);
  return hvd::kNvrtcSuccess;
}
