// WorkerSet: the workers of an agent, one for each slot: starts them, forwards their output in
// whole lines, records how each ends, and repeats reports after messages were lost. A slot is used
// by one worker only: a replacement gets a new slot.
//
// One thread, that of the io_context. The owner and the process host outlive this object.
#ifndef HVD_LAUNCHER_AGENT_WORKERS_WORKER_SET_H_
#define HVD_LAUNCHER_AGENT_WORKERS_WORKER_SET_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/agent/environment/worker_env.h"
#include "launcher/agent/gpu/gpu_assignment.h"
#include "launcher/agent/gpu/gpu_devices.h"
#include "launcher/agent/workers/binding.h"
#include "launcher/agent/workers/cpu_assignment.h"
#include "launcher/agent/workers/worker_streams.h"
#include "launcher/channels/bundle/install_paths.h"
#include "launcher/external/places/place_server.h"
#include "launcher/process/one_process.h"
#include "launcher/process/process_host.h"
#include "launcher/wire/messages.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

class WorkerSetOwner {
 public:
  virtual ~WorkerSetOwner() = default;
  virtual void Send(const ToDriver& message) = 0;
  // The two pieces follow each other.
  virtual void SendOutput(uint32_t rank, OutputStream stream, std::string_view first,
                          std::string_view second) = 0;
  // Asked before the exit is reported.
  virtual uint64_t CommitsOf(uint32_t slot) const = 0;
  // Before the exit is reported. Returns whether the kernel ended the worker for lack of memory,
  // asked only where `killed`: a SIGKILL ended it that this agent did not send.
  virtual bool OnWorkerExit(uint32_t slot, int pid, bool killed) = 0;
  // A worker or the output of one has ended.
  virtual void OnWorkerOver() = 0;
};

class WorkerSet final : public ProcessObserver {
 public:
  WorkerSet(asio::io_context& io, ProcessHost& host, WorkerSetOwner& owner);

  // Takes the agent's part of the job; `cpus` are shared out among the workers, and `quota`
  // (OwnCpuQuota). Once.
  void Prepare(StartJob start, std::vector<Cpu> cpus, const std::vector<GpuDevice>& gpus,
               std::optional<double> quota = std::nullopt);
  const StartJob& start() const { return start_; }
  // Each worker takes the place of its rank there, which is held.
  void UsePlaces(PlaceServer& places) { places_ = &places; }
  // That the workers of this host share.
  uint32_t host_cores() const { return cpus_.host_cores(); }
  // Starts a worker in every slot. Those that cannot be started are reported. `user_stdin`: rank 0
  // gets it if it is here; without it the driver reads stdin, which comes by FeedStdin.
  void Start(const WorkerLink& link, const InstallPaths& paths, UniqueFd user_stdin = UniqueFd());
  // Adds slots and starts a worker in each; after Start.
  void Add(const AddWorkers& more);
  // Reports that no worker could be started.
  void ReportNotStarted(int error, const std::string& reason);
  void FeedStdin(std::string_view bytes) { feeder_.Feed(bytes); }

  // The number of the worker in the job: in one of fixed size its rank.
  uint32_t NumberOf(uint32_t slot) const {
    return start_.ranks.workers.empty() ? start_.ranks.slots[slot].rank
                                        : start_.ranks.workers[slot];
  }
  // The slot of a worker of this host.
  std::optional<uint32_t> SlotOf(uint32_t worker) const;
  bool AnyRunning() const;
  // The number of each worker that runs, and its process.
  std::vector<std::pair<uint32_t, pid_t>> Running() const;
  // Of the running workers: whether any of them is `dying`, by its pid.
  bool AnyDying(const std::function<bool(pid_t)>& dying) const;
  // The slots whose worker a signal has stopped, by a list of all processes.
  std::vector<uint32_t> StoppedSlots(const std::vector<ProcessInfo>& processes) const;
  // A signal to every worker that still runs, or to one if it does.
  void Signal(int signal);
  void Signal(uint32_t slot, int signal);
  bool running(uint32_t slot) const { return slots_[slot].running; }
  int pid(uint32_t slot) const { return slots_[slot].pid; }
  // From now on a SIGKILL that ends a worker is the agent's own.
  void NoteKilling() { killing_ = true; }
  // By MemoryReply, if the worker runs.
  void Answer(const AskMemory& question);
  // Reports all starts and exits once more.
  void Resend();
  // The same for a driver that takes over.
  void AddTo(HostSnapshot& snapshot) const;

  // ProcessObserver; a worker's number is its slot.
  void OnOutput(uint32_t slot, OutputStream stream, std::string_view bytes) override;
  void OnOutputEnd(uint32_t slot, OutputStream stream) override;
  void OnExit(uint32_t slot, ProcessEnd end, TimePoint noticed) override;

 private:
  struct Slot {
    int pid = 0;
    bool running = false;
    std::optional<WorkerExited> exited;
  };

  void FindInterface();
  void OpenCommits();
  void WarnOfGpus(size_t count);
  void AddSlot();
  void StartWorker(uint32_t slot);
  Place* PlaceOf(uint32_t slot) const;
  bool ReadsInput(uint32_t slot) const;

  ProcessHost& host_;
  WorkerSetOwner& owner_;
  StdinFeeder feeder_;
  OutputLines lines_;
  StartJob start_;
  WorkerLink link_;
  InstallPaths paths_;
  CpuAssignment cpus_;
  GpuAssignment gpus_;  // none where all workers see all
  std::vector<Slot> slots_;
  UniqueFd user_stdin_;
  UniqueFd function_;  // each worker reads it from its beginning
  UniqueFd commits_;   // memory that outlives the workers; none where no commits are kept
  bool killing_ = false;
  PlaceServer* places_ = nullptr;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKERS_WORKER_SET_H_
