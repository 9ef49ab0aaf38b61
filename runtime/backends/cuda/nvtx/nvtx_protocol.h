// How a program attaches to a profiler by NVTX 3: it loads the library that the profiler names and
// calls its InitializeInjectionNvtx2 with a function that returns tables; the library writes its
// own functions where the tables point. NVTX itself is only headers that do this. These
// declarations are our own; a test compares them with the headers if installed.
#ifndef HVD_RUNTIME_BACKENDS_CUDA_NVTX_NVTX_PROTOCOL_H_
#define HVD_RUNTIME_BACKENDS_CUDA_NVTX_NVTX_PROTOCOL_H_

#include <cstddef>
#include <cstdint>

namespace hvd::nvtx {

inline constexpr char kInjectionVariable[] = "NVTX_INJECTION64_PATH";
inline constexpr char kInjectionEntry[] = "InitializeInjectionNvtx2";
inline constexpr uint16_t kVersion = 3;

using Function = void (*)();
// `slots` pointers to functions; number 0 is unused.
using FunctionTable = Function**;

// Tables that the library may ask for.
inline constexpr uint32_t kCallbacksTable = 1, kVersionTable = 3;
// Modules of functions. Only those of kCore2 are ever called; the others are just returned.
enum Module : int { kCore = 1, kCuda = 2, kOpenCl = 3, kCudaRuntime = 4, kCore2 = 5, kSync = 6 };
inline constexpr int kModules = 7;
inline constexpr unsigned kSlots[kModules] = {0, 16, 9, 15, 7, 16, 7};
// Functions of kCore2.
inline constexpr unsigned kDomainRangeStartEx = 2, kDomainRangeEnd = 3, kDomainCreateA = 12;

struct CallbacksTable {
  size_t struct_size;
  int (*get_module_function_table)(int module, FunctionTable* table, unsigned* slots);
};
struct VersionTable {
  size_t struct_size;
  uint32_t version;
  uint32_t reserved;
  void (*set_injection_version)(uint32_t version);
};
using GetExportTable = const void* (*)(uint32_t table);
using InitializeInjection = int (*)(GetExportTable get_export_table);  // 0: it failed

using Domain = struct DomainObject*;
using RangeId = uint64_t;

struct EventAttributes {
  uint16_t version = kVersion;
  uint16_t size = 48;
  uint32_t category = 0;
  int32_t color_type = 0;
  uint32_t color = 0;
  int32_t payload_type = 1;  // a whole number of 64 bits
  int32_t reserved = 0;
  uint64_t payload = 0;
  int32_t message_type = 1;  // text of the program
  const char* message = nullptr;
};
static_assert(sizeof(EventAttributes) == 48);

using DomainCreate = Domain (*)(const char* name);
using DomainRangeStart = RangeId (*)(Domain domain, const EventAttributes* attributes);
using DomainRangeEnd = void (*)(Domain domain, RangeId range);

}  // namespace hvd::nvtx

#endif  // HVD_RUNTIME_BACKENDS_CUDA_NVTX_NVTX_PROTOCOL_H_
