// Device: non-host memory and operations on it. All work is enqueued on one queue of the device's
// own and runs in that order; no call waits for the device unless it says so.
//
// One thread at a time. A stream is the caller's native handle (a CUstream; null: the default
// stream).
#ifndef HVD_RUNTIME_DEVICE_DEVICE_H_
#define HVD_RUNTIME_DEVICE_DEVICE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>

#include "runtime/base/status.h"
#include "runtime/device/dtype.h"

namespace hvd {

// An address in device memory; 0: none.
using DeviceAddress = uint64_t;

// A position in the queue; it represents the work enqueued before it.
struct DeviceTicket {
  uint64_t number = 0;
};

// Marks the work enqueued on a stream of the caller at some time; 0: none.
struct DeviceMark {
  uint64_t handle = 0;
};

// Elements to move to another place on the device.
struct BatchItem {
  DeviceAddress from = 0;
  DeviceAddress to = 0;
  uint64_t elements = 0;
};

// The conversion and scaling of moved elements.
struct BatchSpec {
  DType from = DType::kFloat32;
  DType to = DType::kFloat32;
  double scale = 1.0;
};

// Vectors of one type and length; each begins `stride` bytes after the previous one.
struct DeviceVectors {
  DType dtype = DType::kFloat32;
  DeviceAddress first = 0;
  uint64_t stride = 0;
  uint32_t count = 0;
  uint64_t elements = 0;
};

// The parts of Adasum (adasum.h, host_reduce.h) in device memory; products and weights are float64.
// With the same vectors every device stores the same bits.

// Stores the dot products of all pairs, in the order of AddDotProducts.
struct AdasumDots {
  DeviceVectors vectors;
  DeviceAddress scratch = 0;  // AdasumScratchBytes
  DeviceAddress products = 0;
};
// Adds up the dot products of the parts of `vectors` vectors, in order, and stores the resulting
// weights, each times `scale`.
struct AdasumWeighing {
  DeviceAddress parts = 0;   // the first part
  uint64_t part_stride = 0;  // bytes from one to the next
  uint32_t part_count = 0;
  uint32_t vectors = 0;
  double scale = 1.0;
  DeviceAddress products = 0;  // their sums; may be the first part
  DeviceAddress weights = 0;
};
// Stores the weighted sum, rounded once to the type. No vector overlaps the output.
struct AdasumSum {
  DeviceVectors vectors;
  DeviceAddress weights = 0;
  DeviceAddress output = 0;
};
using AdasumStep = std::variant<AdasumDots, AdasumWeighing, AdasumSum>;

class Device {
 public:
  virtual ~Device() = default;

  // "CUDA device 1 (NVIDIA H200, sm_90)"
  virtual const std::string& name() const = 0;

  // Work enqueued from now on begins after everything enqueued on `stream` so far.
  virtual Status BeginAfter(void* stream) = 0;
  // The same in two steps, for the work enqueued on `stream` when it is marked. A mark can be used
  // by every Device object of the same device and must be dropped by the one that created it.
  virtual Result<DeviceMark> Mark(void* stream) = 0;
  virtual Status BeginAfterMark(DeviceMark mark) = 0;
  virtual void DropMark(DeviceMark mark) = 0;
  // Work enqueued on `stream` from now on begins after everything enqueued on the queue so far.
  virtual Status LetFollow(void* stream) = 0;
  virtual Result<DeviceTicket> Record() = 0;
  // True once everything before the ticket is done.
  virtual Result<bool> Ready(DeviceTicket ticket) = 0;

  virtual Result<DeviceAddress> Allocate(size_t bytes) = 0;
  // Waits for all work of the device.
  virtual Status Free(DeviceAddress address) = 0;
  // Pinned host memory that the device accesses without the CPU. Returned memory is reused once
  // everything enqueued until then is done.
  virtual Result<std::byte*> BorrowStaging(size_t bytes) = 0;
  virtual Status ReturnStaging(std::byte* staging) = 0;

  // The host range must lie in borrowed staging memory.
  virtual Status CopyIn(DeviceAddress to, const std::byte* staging, size_t bytes) = 0;
  virtual Status CopyOut(std::byte* staging, DeviceAddress from, size_t bytes) = 0;
  // Packs, unpacks, scales and converts many pieces at once. Pieces must not overlap, but each may
  // be moved onto itself if both types have the same size.
  virtual Status Move(const BatchSpec& spec, std::span<const BatchItem> items) = 0;
  // For the types of CanAdasum.
  virtual Status Adasum(const AdasumStep& step) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_DEVICE_H_
