// LocalProcessHost: ProcessHost by vfork and exec on this machine. Reaps all children of this
// process, including adopted orphans. Main thread only (PDEATHSIG of the workers belongs to the
// thread that spawned them).
#ifndef HVD_LAUNCHER_PROCESS_LOCAL_PROCESS_HOST_H_
#define HVD_LAUNCHER_PROCESS_LOCAL_PROCESS_HOST_H_

#include <sys/resource.h>

#include <asio/io_context.hpp>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/process/process_host.h"

namespace hvd {

// Why a process with this limit of open descriptors cannot start this number of workers; empty: it
// can. Pure.
std::string DescriptorShortage(size_t workers, uint64_t limit, const std::string& host);
// The same for workers that join a world, which also need a connection each.
std::string LinkShortage(size_t workers, uint64_t limit, const std::string& host);
// The limit of this process, after raising it as far as permitted.
uint64_t DescriptorLimit();

class LocalProcessHost final : public ProcessHost {
 public:
  // `observer` outlives this object. Workers start in the cgroup `cgroup_fd`; -1: in that of this
  // process.
  LocalProcessHost(asio::io_context& io, ProcessObserver& observer, int cgroup_fd = -1);
  ~LocalProcessHost() override;

  SpawnOutcome Spawn(uint32_t worker, const SpawnRequest& request) override;
  void Signal(uint32_t worker, int signal) override;
  void Kill(uint32_t worker) override;
  void HoldOutput(bool hold) override;
  bool OutputEnded() const override;

  // The descriptor limit of children, if that of this process was raised.
  const std::optional<rlimit>& child_descriptor_limit() const { return worker_descriptor_limit_; }

  // Reaps ended children without waiting for SIGCHLD; true if no child is left.
  bool Reap();
  // Records a child that was reaped elsewhere (KillEverything).
  void NoteReaped(pid_t pid, int wait_status);

 private:
  struct Pipe {
    explicit Pipe(asio::io_context& io) : end(io) {}
    asio::posix::stream_descriptor end;
    bool waiting = false;
  };
  struct Worker {
    explicit Worker(asio::io_context& io) : exit_timer(io) {}
    uint32_t number = 0;
    pid_t pid = 0;
    std::shared_ptr<Pipe> pipes[kOutputStreams];  // by stream; null: ended or absent
    std::optional<ProcessEnd> end;
    TimePoint noticed{};
    bool reported = false;
    asio::steady_timer exit_timer;

    bool output_ended() const { return !pipes[0] && !pipes[1] && !pipes[2]; }
  };

  void WaitForChildren();
  void WaitForOutput(Worker& worker);
  void WaitForOutput(Worker& worker, OutputStream stream);
  void ReadOutput(Worker& worker, OutputStream stream);
  void ReportIfOver(Worker& worker, bool now);

  asio::io_context& io_;
  ProcessObserver& observer_;
  int cgroup_fd_;
  asio::signal_set child_signal_;
  std::map<uint32_t, std::unique_ptr<Worker>> workers_;
  std::map<pid_t, Worker*> by_pid_;
  std::vector<char> buffer_;
  std::optional<rlimit> worker_descriptor_limit_;
  bool held_ = false;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_PROCESS_LOCAL_PROCESS_HOST_H_
