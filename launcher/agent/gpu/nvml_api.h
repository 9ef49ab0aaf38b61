// The part of NVML's C interface that hvdrun uses ("NVML API Reference Guide"), which is stable.
// Also included by the tests' fake.
#ifndef HVD_LAUNCHER_AGENT_GPU_NVML_API_H_
#define HVD_LAUNCHER_AGENT_GPU_NVML_API_H_

#include <cstdint>

namespace hvd::nvml {

using Return = int;    // nvmlReturn_t
using Device = void*;  // nvmlDevice_t

inline constexpr Return kSuccess = 0, kUnsupported = 3, kUnknown = 999;

struct Memory {  // nvmlMemory_t, bytes
  unsigned long long total, free, used;
};

struct Process {  // nvmlProcessInfo_t since version 2
  unsigned pid;
  unsigned long long memory;
  unsigned gpu_instance, compute_instance;
};

// nvmlMemoryErrorType_t, nvmlEccCounterType_t
inline constexpr int kUncorrected = 1, kSinceLoad = 0;
// nvmlClocksThrottleReasons
inline constexpr unsigned long long kPowerCap = 0x4, kHardware = 0x8, kSoftwareHeat = 0x20,
                                    kHardwareHeat = 0x40, kPowerBrake = 0x80;
// nvmlComputeMode_t
inline constexpr int kProhibited = 2, kExclusiveProcess = 3;
// nvmlGpuP2PCapsIndex_t and nvmlGpuP2PStatus_t
inline constexpr int kNvlink = 2, kLinkOk = 0;
// nvmlGpuTopologyLevel_t: the nearest common ancestor of two GPUs.
inline constexpr int kOneSwitch = 10, kSwitches = 20, kHostBridge = 30, kNumaNode = 40;

}  // namespace hvd::nvml

#endif  // HVD_LAUNCHER_AGENT_GPU_NVML_API_H_
