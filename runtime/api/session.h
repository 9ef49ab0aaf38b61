// Session: everything that lives from hvd_init to hvd_shutdown, wired together.
#ifndef HVD_RUNTIME_API_SESSION_H_
#define HVD_RUNTIME_API_SESSION_H_

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/api/backend_list.h"
#include "runtime/api/callback_thread.h"
#include "runtime/api/hosts_session.h"
#include "runtime/api/timeline_session.h"
#include "runtime/api/world_joiner.h"
#include "runtime/backends/cuda/cuda_router.h"
#include "runtime/backends/shm/shm_backend.h"
#include "runtime/backends/shm/shm_peers.h"
#include "runtime/bootstrap/bootstrap.h"
#include "runtime/core/engine.h"
#include "runtime/segment/commit_point.h"

namespace hvd {

class Session {
 public:
  // Joins the world. `bootstrap` and `heap` outlive the session. kInProgress: an elastic world
  // broke before this rank was connected; another one will follow.
  static Result<std::unique_ptr<Session>> Open(Membership member, Bootstrap& bootstrap,
                                               SharedHeap& heap, const EngineOptions& options);

  // Leaves the world and fails what is in flight. No call may be inside engine() any more; see
  // FailPending.
  ~Session();
  Session(const Session&) = delete;

  // Makes every waiting thread return; later submissions are refused.
  void FailPending() { Close("hvd.shutdown() was called on this rank"); }
  // The same, ahead of a later shutdown.
  void GiveUp() { Close("this rank has given up the world"); }

  // Collective, with the same arguments on all ranks; blocks until all ranks have called it. In a
  // new session the ids are 1, 2, ... In an elastic world the sets are reduced by SetsWithin.
  // kInProgress: an elastic world broke meanwhile; another one will follow.
  Status AddProcessSets(const std::vector<std::vector<uint32_t>>& given);

  Engine& engine() { return engine_; }
  CallbackThread& callbacks() { return callbacks_; }
  CommitPoint& commits() { return commits_; }
  const CommitPoint& commits() const { return commits_; }
  const World& world() const { return world_; }
  // Stores on the rank's StallBoard how the agent gets the stacks of this process
  // (hvd_note_stacks).
  void NoteStacks(uint32_t signal, uint32_t fd) const;
  // Facts that determine which backends the world uses.
  BackendFacts backend_facts() const;
  // Why the world broke; "" if it did not, or if others have left it.
  std::string Failure() const;
  SharedMemoryMap& peer_memory() { return peer_memory_; }

  // kUnsupported if the job was not started with HOROVOD_TIMELINE.
  Status StartTimeline(const std::string& path, bool mark_cycles);
  void StopTimeline() { timeline_.Stop(); }

 private:
  Session(Membership member, Bootstrap& bootstrap, SharedHeap& heap, const EngineOptions& options,
          std::unique_ptr<InterHostComm> comm);
  void Close(const std::string& sentence);
  void RunRuntimeThread();
  void PollHosts();
  void PollDevices();
  CudaBackendOptions DeviceOptions(SharedHeap& heap);

  World world_;
  std::unique_ptr<MpiWorld> mpi_;
  const std::optional<MpiFacts> mpi_beside_;  // see Membership
  Bootstrap& bootstrap_;
  SharedMemoryMap peer_memory_;
  CommitPoint commits_;
  ShmPeers peers_;
  ShmBackend backend_;
  std::unique_ptr<HostsSession> hosts_;  // null on one host
  CudaRouter devices_;
  Engine engine_;
  CallbackThread callbacks_;
  const TimelineChoice timeline_choice_ = TimelineChoiceFromEnv();
  TimelineSession timeline_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> agent_gone_{false};
  std::thread runtime_thread_;
};

}  // namespace hvd

#endif  // HVD_RUNTIME_API_SESSION_H_
