// FlightReader: what PyTorch's flight recorders have recorded in the workers of a host.
//
// ProcessGroupNCCL reads a named pipe for each process and writes a dump when something comes from
// it (TORCH_NCCL_DEBUG_INFO_PIPE_FILE); other backends cannot be asked from outside. The dumps are
// files of other processes: read with a limit, by a parser that builds plain values only.
//
// One thread, that of the io_context; nothing waits.
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

  // `folder`: where the workers have their pipes and dumps, unless the user has said otherwise.
  void Open(std::string folder) { folder_ = std::move(folder); }
  // Asks those of the workers that can be asked; answered by FlightReply when all have written, or
  // after a few seconds. A question that has no answer yet is forgotten.
  void Answer(const AskFlight& question, const Workers& workers);
  // The worker has failed. A dump that it has written before is sent.
  void NoteFailure(uint32_t worker);
  // Removes all that was asked for. What PyTorch has written by itself stays.
  void Close();

 private:
  // Changes with each writing.
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
  std::string folder_;  // empty: there is none
  FlightReply answer_;
  std::vector<Dump> dumps_;
  TimePoint deadline_{};
  std::map<std::string, Stamp> asked_for_;  // dumps, by path
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_FLIGHT_READER_H_
