// WorkerGenerations: the generations of the workers of this host, as the driver orders them: the
// members, their shared page, commits, and entries of the key-value directory. Reports to the
// driver when ranks join, leave and are lost.
//
// One thread, that of the io_context. Everything that is passed in outlives this object.
#ifndef HVD_LAUNCHER_AGENT_WORKER_GENERATIONS_H_
#define HVD_LAUNCHER_AGENT_WORKER_GENERATIONS_H_

#include <asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/agent/trace_collector.h"
#include "launcher/agent/workers/worker_set.h"
#include "launcher/agent/workers/worker_signals.h"
#include "launcher/generation/host_generations.h"
#include "launcher/live/recorder_reader.h"
#include "launcher/overlay/relay/relay_end.h"
#include "launcher/tuning/job_tuner.h"
#include "launcher/wire/messages.h"

namespace hvd {

class WorkerGenerations final : private HostGenerationsObserver {
 public:
  // Parts of the agent that a generation uses.
  struct Parts {
    asio::io_context& io;
    WorkerSet& workers;
    const WorkerSignals& signals;
    RelayEnd& relay;
    TraceCollector& traces;
    RecorderReader& recorders;
    JobTuner& tuner;
  };
  WorkerGenerations(const Parts& parts, std::function<void(const ToDriver&)> send)
      : parts_(parts), send_(std::move(send)) {}

  // Call once, after WorkerSet::Prepare. Before that every message is ignored.
  HostGenerations& Open();
  // Not ok: workers cannot reach this agent, and why.
  Status Listen(const std::string& address);

  void Handle(const BeginGeneration& message);
  void Handle(const BreakGeneration& message);
  void Handle(const AddWorkers& more);
  void Handle(const DismissWorker& message);
  void Handle(const HoldCommits& message);
  void Handle(const ActAtCommit& message);
  void Handle(const KeyValue& message);

  // Adds what a driver that takes over must know about generations; `snapshot` has the workers
  // already. OpenEntries: messages to be sent after it, with the directory entries that ranks here
  // have put and those that they wait for.
  void AddTo(HostSnapshot& snapshot) const;
  std::vector<ToDriver> OpenEntries() const;

  // A worker is in a generation.
  bool in_use() const { return host_ && host_->slots().in_use(); }
  // As HostGenerations; after Open.
  uint64_t CommitsOf(uint32_t slot) const { return host_->CommitsOf(slot); }
  void NoteExit(uint32_t slot, int pid) { host_->NoteExit(slot, pid); }
  // The process of the slot that called hvd.init(); 0: none has.
  int PidOf(uint32_t slot) const { return host_ ? host_->PidOf(slot) : 0; }
  // The workers have ended.
  void DropPage();

 private:
  Status OnHello(const LinkHello&) override { return Status::Ok(); }
  void OnJoined(uint32_t slot) override;
  void OnLeft(uint32_t slot, const LeftRank& left) override;
  void OnLost(uint32_t slot, const LostRank& lost) override;
  void OnLinkClosed(uint32_t) override {}
  void OnLayout(uint32_t, std::vector<RankRun>) override {}  // the driver knows
  void OnPut(const LinkPut& put) override;
  void OnPage(const std::vector<uint32_t>& slots) override;
  void OnWanted(const LinkGet& get) override;

  const StartJob& start() const { return parts_.workers.start(); }
  // Returns the slots of the members.
  std::vector<uint32_t> UseMembers(const BeginGeneration& message);
  std::string KindOfLinks() const;
  void UseTuner(const GenerationPage& page, const std::vector<TracedRank>& ranks);

  const Parts parts_;
  const std::function<void(const ToDriver&)> send_;
  std::optional<HostGenerations> host_;
  uint64_t begun_ = 0;  // the last generation
  // Of it, by slot; and of its directory.
  std::map<uint32_t, RankLeft> left_;
  std::map<uint32_t, RankLost> lost_;
  std::vector<PutKey> puts_;
  std::set<std::string> wanted_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_WORKER_GENERATIONS_H_
