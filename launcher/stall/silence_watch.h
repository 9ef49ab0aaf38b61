// SilenceWatch: detects, in an agent, that workers which use another library's collectives (torch,
// NCCL or MPI loaded, no hvd.init()) have fallen silent, and examines them from outside: by /proc,
// and by py-spy at most once per worker and warning time.
//
// Reads nothing while any worker of the host writes output. One thread, that of the io_context;
// never blocks.
#ifndef HVD_LAUNCHER_STALL_SILENCE_WATCH_H_
#define HVD_LAUNCHER_STALL_SILENCE_WATCH_H_

#include <sys/types.h>

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "launcher/process/one_process.h"
#include "launcher/stall/outside_stacks.h"
#include "launcher/stall/script_progress.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

// Ranks that another launcher started below a worker: `hvdrun -np 1 torchrun ...` has one worker,
// torchrun, and the script's ranks are its descendants. Pure: the data of /proc is an argument.
struct GuestRank {
  uint32_t rank = 0;  // as numbered by its launcher
  pid_t pid = 0;      // its topmost process
};

// The processes below `worker` whose environment sets another rank or world than the worker's.
// Their own descendants, such as data loader processes, belong to them. `environment_of`: the text
// of /proc/PID/environ.
std::vector<GuestRank> GuestsBelow(pid_t worker, const std::vector<ProcessInfo>& all,
                                   const std::function<std::string(pid_t)>& environment_of);

class SilenceWatch {
 public:
  // Number and process of each running worker.
  using Workers = std::vector<std::pair<uint32_t, pid_t>>;
  struct Hooks {
    std::function<Workers()> workers;
    std::function<bool()>
        in_world;  // workers are in a world of this runtime (RankExaminer watches it)
    std::function<void(const ToDriver&)> send;
  };

  // `clock` outlives this object.
  SilenceWatch(asio::io_context& io, const Clock& clock, Hooks hooks)
      : clock_(clock), hooks_(std::move(hooks)), look_timer_(io), outside_(io) {}

  // Starts watching; zero: does nothing.
  void Begin(Duration warning);
  // The worker wrote output.
  void NoteOutput(uint32_t worker);

 private:
  // A worker, or a rank started by another launcher that is the worker.
  struct Subject {
    uint32_t worker = 0;
    std::optional<uint32_t> guest;
    auto operator<=>(const Subject&) const = default;
  };
  struct Watched {
    explicit Watched(Duration warning) : progress(warning) {}
    ScriptProgress progress;
    pid_t python = 0;
    bool uses_collectives = false;
  };

  void LookAgain();
  void Look(TimePoint now);
  void Read(const Workers& workers, TimePoint now);
  void ReadStacks(TimePoint now);
  void HandleStacks(const std::vector<Subject>& subjects, const OutsideStacks::Texts& texts,
                    TimePoint asked);
  void Report(TimePoint now);

  const Clock& clock_;
  const Hooks hooks_;
  asio::steady_timer look_timer_;
  OutsideStacks outside_;
  Duration warning_{};
  std::map<uint32_t, TimePoint> output_;  // by worker: time of its last output
  std::map<Subject, Watched> watched_;    // empty: a worker wrote recently
  bool reading_stacks_ = false;
  bool reported_ = false;  // reported that all are silent
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_SILENCE_WATCH_H_
