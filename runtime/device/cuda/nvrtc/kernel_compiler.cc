#include "runtime/device/cuda/nvrtc/kernel_compiler.h"

#include <algorithm>
#include <array>
#include <map>

#include "runtime/base/mutex.h"
#include "runtime/base/text/format.h"
#include "runtime/device/cuda/nvrtc/nvrtc_loader.h"

namespace hvd {
namespace {

// Of the compiler's log, in a message.
constexpr size_t kMostLogBytes = 600;

// Line ends become spaces, and a long text is cut.
std::string InOneLine(std::string log) {
  std::string line;
  for (const char letter : log) {
    const bool blank = static_cast<unsigned char>(letter) <= ' ';
    if (!blank) line += letter;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() > kMostLogBytes) line = line.substr(0, kMostLogBytes) + " ...";
  return line;
}

// A program of NVRTC, destroyed at the end.
class Program {
 public:
  explicit Program(const NvrtcLibrary& nvrtc) : nvrtc_(nvrtc) {}
  ~Program() {
    if (program_ != nullptr) nvrtc_.api.destroy_program(&program_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Status Create(const KernelsSource& source) {
    std::vector<const char*> texts, names;
    for (const KernelsHeader& header : source.headers) {
      texts.push_back(header.text.c_str());
      names.push_back(header.name.c_str());
    }
    return Checked(
        nvrtc_.api.create_program,
        nvrtc_.api.create_program(&program_, source.text.c_str(), source.name.c_str(),
                                  static_cast<int>(texts.size()), texts.data(), names.data()));
  }
  // The options of nvcc in CMakeLists.txt.
  Status Compile(int compute_capability) {
    const std::string architecture = Format("--gpu-architecture=sm_{}", compute_capability);
    const std::array<const char*, 3> options = {architecture.c_str(), "--std=c++17",
                                                "--fmad=false"};
    return Checked(
        nvrtc_.api.compile_program,
        nvrtc_.api.compile_program(program_, static_cast<int>(options.size()), options.data()));
  }
  Result<std::vector<char>> Code() {
    size_t bytes = 0;
    HVD_RETURN_IF_ERROR(
        Checked(nvrtc_.api.get_cubin_size, nvrtc_.api.get_cubin_size(program_, &bytes)));
    std::vector<char> code(bytes);
    HVD_RETURN_IF_ERROR(Checked(nvrtc_.api.get_cubin, nvrtc_.api.get_cubin(program_, code.data())));
    return code;
  }

 private:
  template <typename Entry>
  Status Checked(const Entry& entry, NvrtcResult result) {
    if (result == kNvrtcSuccess) return Status::Ok();
    std::string text =
        Format("NVRTC {} cannot compile the kernels for it: {} answered {} ({})", nvrtc_.path,
               entry.symbol, nvrtc_.api.get_error_string(result), result);
    if (const std::string log = InOneLine(Log()); !log.empty()) text += ": " + log;
    return Unsupported(std::move(text));
  }
  // The compiler's log; "" if it is empty.
  std::string Log() {
    size_t bytes = 0;
    if (program_ == nullptr) return "";
    if (nvrtc_.api.get_program_log_size(program_, &bytes) != kNvrtcSuccess) return "";
    std::string log(bytes, '\0');
    if (nvrtc_.api.get_program_log(program_, log.data()) != kNvrtcSuccess) return "";
    return log.substr(0, log.find('\0'));
  }

  const NvrtcLibrary& nvrtc_;
  NvrtcProgram program_ = nullptr;
};

// Code that was compiled, by compute capability.
class CompiledKernels {
 public:
  const Result<std::vector<char>>& For(int compute_capability) {
    MutexLock lock(mutex_);
    const auto found = made_.find(compute_capability);
    if (found != made_.end()) return found->second;
    return made_.emplace(compute_capability, Make(compute_capability)).first->second;
  }

 private:
  static Result<std::vector<char>> Make(int compute_capability) {
    const Result<NvrtcLibrary> nvrtc = LoadNvrtc();
    if (!nvrtc.ok()) return nvrtc.status();
    return CompileKernels(*nvrtc, SourceOfKernels(), compute_capability);
  }

  Mutex mutex_;
  std::map<int, Result<std::vector<char>>> made_ HVD_GUARDED_BY(mutex_);
};

}  // namespace

Result<std::vector<char>> CompileKernels(const NvrtcLibrary& nvrtc, const KernelsSource& source,
                                         int compute_capability) {
  Program program(nvrtc);
  HVD_RETURN_IF_ERROR(program.Create(source));
  HVD_RETURN_IF_ERROR(program.Compile(compute_capability));
  return program.Code();
}

Result<const void*> KernelsForCapability(int compute_capability) {
  static auto* compiled = new CompiledKernels;  // threads may outlive static objects
  const Result<std::vector<char>>& kernels = compiled->For(compute_capability);
  if (!kernels.ok()) return kernels.status();
  return static_cast<const void*>(kernels->data());
}

}  // namespace hvd
