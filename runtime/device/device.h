// Device: memory that is not the host's, and the work that is done in it. Everything is given to
// one queue of the device's own and done in that order; no call waits for the device unless it says
// so.
//
// One thread at a time. A stream is the native handle of the caller's (a CUstream; null: the
// default one).
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

// In the memory of a device; 0 is none.
using DeviceAddress = uint64_t;

// A place in the queue: it stands for the work given before it.
struct DeviceTicket {
  uint64_t number = 0;
};

// A mark of the work that a stream of the caller's had been given at some time; 0 is none.
struct DeviceMark {
  uint64_t handle = 0;
};

// Elements that are moved to another place of the device.
struct BatchItem {
  DeviceAddress from = 0;
  DeviceAddress to = 0;
  uint64_t elements = 0;
};

// The changes to the elements on their way.
struct BatchSpec {
  DType from = DType::kFloat32;
  DType to = DType::kFloat32;
  double scale = 1.0;
};

// Vectors of one type and length: number i begins `stride` bytes after number i - 1.
struct DeviceVectors {
  DType dtype = DType::kFloat32;
  DeviceAddress first = 0;
  uint64_t stride = 0;
  uint32_t count = 0;
  uint64_t elements = 0;
};

// The parts of Adasum (adasum.h, host_reduce.h) in the memory of a device, in float64; numbers are
// doubles there. With the same vectors every device stores the same bits.

// Stores the dot products of all pairs, in the order of AddDotProducts.
struct AdasumDots {
  DeviceVectors vectors;
  DeviceAddress scratch = 0;  // AdasumScratchBytes
  DeviceAddress products = 0;
};
// Adds up the dot products of parts of `vectors` vectors, in their order, and stores the weights
// that follow from the sums, each times `scale`.
struct AdasumWeighing {
  DeviceAddress parts = 0;   // the first
  uint64_t part_stride = 0;  // bytes from one to the next
  uint32_t part_count = 0;
  uint32_t vectors = 0;
  double scale = 1.0;
  DeviceAddress products = 0;  // their sums; may be the first part
  DeviceAddress weights = 0;
};
// Stores the weighted sum, rounded to the type at the end. No vector overlaps the output.
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

  // Work given from now on begins after everything that `stream` has been given so far.
  virtual Status BeginAfter(void* stream) = 0;
  // The same in two steps, for the work that `stream` has been given when it is marked. A mark
  // serves every device object of the same device, and is dropped by the one that made it.
  virtual Result<DeviceMark> Mark(void* stream) = 0;
  virtual Status BeginAfterMark(DeviceMark mark) = 0;
  virtual void DropMark(DeviceMark mark) = 0;
  // Work that `stream` is given from now on begins after everything that the queue has been given
  // so far.
  virtual Status LetFollow(void* stream) = 0;
  virtual Result<DeviceTicket> Record() = 0;
  // True once everything before the ticket is done.
  virtual Result<bool> Ready(DeviceTicket ticket) = 0;

  virtual Result<DeviceAddress> Allocate(size_t bytes) = 0;
  // Waits until the device is done with all it has.
  virtual Status Free(DeviceAddress address) = 0;
  // Memory of the host that the device reaches without the processor's help. After its return it is
  // lent again once everything that the queue has been given until then is done.
  virtual Result<std::byte*> BorrowStaging(size_t bytes) = 0;
  virtual Status ReturnStaging(std::byte* staging) = 0;

  // The range of the host must lie in staging that is borrowed.
  virtual Status CopyIn(DeviceAddress to, const std::byte* staging, size_t bytes) = 0;
  virtual Status CopyOut(std::byte* staging, DeviceAddress from, size_t bytes) = 0;
  // Many pieces at once: packs, unpacks, scales, converts. No piece overlaps another one, but each
  // may be moved onto itself when the types have one size.
  virtual Status Move(const BatchSpec& spec, std::span<const BatchItem> items) = 0;
  // For the types of CanAdasum.
  virtual Status Adasum(const AdasumStep& step) = 0;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_DEVICE_DEVICE_H_
