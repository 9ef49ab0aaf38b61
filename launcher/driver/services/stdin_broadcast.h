// StdinBroadcast: flow control of what hvdrun reads on its stdin and sends to the hosts whose ranks
// read it. The host with the slowest readers limits how much more is read. Pure.
#ifndef HVD_LAUNCHER_DRIVER_SERVICES_STDIN_BROADCAST_H_
#define HVD_LAUNCHER_DRIVER_SERVICES_STDIN_BROADCAST_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "launcher/wire/messages.h"
#include "launcher/wire/plan.h"
#include "runtime/base/status.h"

namespace hvd {

// The hosts with a rank that reads stdin, in order.
std::vector<uint32_t> HostsThatReadStdin(const Plan& plan, StdinTo to);

class StdinBroadcast {
 public:
  // Maximum number of bytes in flight to the workers.
  static constexpr uint64_t kWindow = 256 * 1024;

  explicit StdinBroadcast(const std::vector<uint32_t>& readers) {
    for (uint32_t host : readers) read_[host] = 0;
  }

  std::vector<uint32_t> readers() const;
  // `bytes` more bytes were sent to every reader.
  void NoteSent(size_t bytes) { sent_ += bytes; }
  // The workers of `host` have read `bytes` more bytes. Returns how many more hvdrun may read now;
  // kInvalidArgument: the workers read more than they were sent.
  Result<uint64_t> NoteRead(uint32_t host, uint64_t bytes);

 private:
  std::map<uint32_t, uint64_t> read_;  // by host
  uint64_t allowed_ = kWindow;
  uint64_t sent_ = 0;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_SERVICES_STDIN_BROADCAST_H_
