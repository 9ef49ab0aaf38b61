// Memory of a device and of the host beside it, for checks.
#ifndef HVD_TEST_GPU_TWO_SIDES_H_
#define HVD_TEST_GPU_TWO_SIDES_H_

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "test/gpu/gpu_checks.h"

namespace hvd::test {

inline Status AwaitAll(Device& device, const GpuCheckOptions& options) {
  const Result<DeviceTicket> ticket = device.Record();
  if (!ticket.ok()) return ticket.status();
  for (;;) {
    const Result<bool> ready = device.Ready(*ticket);
    if (!ready.ok()) return ready.status();
    if (*ready) return Status::Ok();
    options.idle();
  }
}

// Device memory and staging of one size, given back at the end.
class TwoSides {
 public:
  TwoSides(Device& device, size_t bytes) : device_(device), bytes_(bytes) {
    const Result<DeviceAddress> address = device.Allocate(bytes);
    if (!address.ok()) {
      status_ = address.status();
      return;
    }
    address_ = *address;
    const Result<std::byte*> staging = device.BorrowStaging(bytes);
    if (staging.ok()) {
      staging_ = *staging;
    } else {
      status_ = staging.status();
    }
  }
  ~TwoSides() {
    if (staging_ != nullptr) (void)device_.ReturnStaging(staging_);
    if (address_ != 0) (void)device_.Free(address_);
  }
  TwoSides(const TwoSides&) = delete;
  TwoSides& operator=(const TwoSides&) = delete;

  const Status& status() const { return status_; }
  size_t bytes() const { return bytes_; }
  DeviceAddress address() const { return address_; }
  std::byte* staging() const { return staging_; }
  Status CopyIn() { return device_.CopyIn(address_, staging_, bytes_); }
  Status CopyOut() { return device_.CopyOut(staging_, address_, bytes_); }

 private:
  Device& device_;
  const size_t bytes_;
  Status status_;
  DeviceAddress address_ = 0;
  std::byte* staging_ = nullptr;
};

// A copy of the staging as it is now, aligned as the device's memory is: the processor does with it
// what the device is to do.
class HostCopy {
 public:
  explicit HostCopy(const TwoSides& sides) : sides_(sides), storage_(sides.bytes() + 256) {
    std::memcpy(memory(), sides.staging(), sides.bytes());
  }
  std::byte* memory() {
    return storage_.data() + (256 - reinterpret_cast<uintptr_t>(storage_.data()) % 256) % 256;
  }
  // With the staging as the device has left it.
  Status Compare() {
    const std::byte *begin = sides_.staging(), *end = begin + sides_.bytes();
    const auto [found, wanted] = std::mismatch(begin, end, memory());
    if (found == end) return Status::Ok();
    return Mismatch("byte " + std::to_string(found - begin) + " of " +
                    std::to_string(sides_.bytes()) + " is " +
                    std::to_string(static_cast<int>(*found)) + " instead of " +
                    std::to_string(static_cast<int>(*wanted)));
  }

 private:
  const TwoSides& sides_;
  std::vector<std::byte> storage_;
};

// Finite values of any type, so that a NaN, whose bits may differ, does not occur: the highest bit
// of the exponent is cleared, in both halves for types of 16 bits, in each byte for `small` types.
inline void FillFinite(std::byte* memory, size_t bytes, bool small, std::mt19937& random) {
  for (size_t i = 0; i + 4 <= bytes; i += 4) {
    const auto word = static_cast<uint32_t>(random()) & (small ? 0xbfbfbfbfU : 0xbfffbfffU);
    std::memcpy(memory + i, &word, 4);
  }
}

}  // namespace hvd::test

#endif  // HVD_TEST_GPU_TWO_SIDES_H_
