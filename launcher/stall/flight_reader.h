// FlightReader: reads PyTorch's flight recorders in the workers of a host.
//
// ProcessGroupNCCL listens on a named pipe per process and writes a dump whenever it receives a
// byte (TORCH_NCCL_DEBUG_INFO_PIPE_FILE); other backends cannot be queried from outside. Dumps are
// untrusted files: read with a size limit, by a parser that builds plain values only.
//
// One thread, that of the io_context; never blocks.
#ifndef HVD_LAUNCHER_STALL_FLIGHT_READER_H_
#define HVD_LAUNCHER_STALL_FLIGHT_READER_H_

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class FlightReader {
 public:
  // The number of each worker, and its process.
  using Workers = std::vector<std::pair<uint32_t, pid_t>>;

  FlightReader(asio::io_context& io, const Clock& clock, std::function<void(const ToDriver&)> send)
      : clock_(clock), timer_(io), send_(std::move(send)) {}

  // `folder`: the workers' pipes and dumps are here, unless the user set another path.
  void Open(std::string folder) { folder_ = std::move(folder); }
  // Requests dumps from the workers that have a pipe; sends FlightReply when all have written, or
  // after a few seconds. Cancels an unanswered question.
  void Answer(const AskFlight& question, const Workers& workers);
  // The worker has failed. Sends the dump that it wrote before, if any.
  void NoteFailure(uint32_t worker);
  // Removes the requested dumps. Dumps that PyTorch wrote on its own stay.
  void Close();

 private:
  // Changes with each write.
  struct Stamp {
    int64_t changed_ns = 0;
    uint64_t size = 0, inode = 0;
    bool operator==(const Stamp&) const = default;
  };
  struct Dump {
    uint32_t worker = 0, rank = 0;
    std::string path;
    Stamp before, looked_at;
    bool done = false;
  };

  static Stamp StampOf(const std::string& path);
  std::vector<Dump> DumpsOf(uint32_t worker, pid_t pid) const;
  void LookAgain();
  void Look(Dump& dump);
  void Finish();

  const Clock& clock_;
  asio::steady_timer timer_;
  const std::function<void(const ToDriver&)> send_;
  std::string folder_;  // empty: none
  FlightReply answer_;
  std::vector<Dump> dumps_;
  TimePoint deadline_{};
  std::map<std::string, Stamp> asked_for_;  // by path of the dump
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_FLIGHT_READER_H_
