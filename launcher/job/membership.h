// Membership: the hosts and ranks of an elastic job: which hosts are opened, which slots get a
// worker, which workers are in the next generation, when the ranks are told of a change, what a
// loss means, and when there are too few. One event's worth of work on the state, for the state
// machine (job.h). Pure.
//
// A generation forms when every rank that survived the last one waits in hvd.init() and the minimum
// is met; ranks that still start join at a later commit. All decisions are made in Review, from the
// state alone, so that it does not matter in which order things become known.
#ifndef HVD_LAUNCHER_JOB_MEMBERSHIP_H_
#define HVD_LAUNCHER_JOB_MEMBERSHIP_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "launcher/job/elastic_state.h"
#include "launcher/job/job_state.h"

namespace hvd {

class Membership {
 public:
  // `state.elastic` has a value. The arguments outlive this object.
  Membership(JobState& state, Decision& decision, TimePoint now)
      : state_(state), elastic_(*state.elastic), decision_(decision), now_(now) {}

  void OnListed(const HostsListed& listed);
  void OnAgentReady(uint32_t host, const AgentFacts& facts);
  // Its agent could not be reached, or is gone; `reason` is one sentence without the host's name.
  void OnHostGone(uint32_t host, const std::string& reason);
  void OnNotStarted(uint32_t worker, const std::string& reason);
  void OnJoined(uint32_t worker);
  // It said goodbye to the generation, or was lost.
  void OnLeft(uint32_t worker);
  void OnExited(uint32_t worker);
  // A rank, or hvdrun, ends the generation.
  void OnEnding(const JobFailure& ending);
  void OnStopped(uint32_t worker);
  void OnHeld(const CommitsHeldBy& held);
  // The job is to end after the step that its ranks are in.
  void OnStopAsked(const StopAsked& asked);

  // To be called once after every event and at NextTick. The failure that ends the job, if any.
  std::optional<JobFailure> Review();
  // When Review has something to do by itself.
  static std::optional<TimePoint> NextTick(const JobState& state);

 private:
  // A slot on which a worker could be started.
  struct Seat {
    uint32_t host = 0, seat = 0;
  };

  void Do(auto action) { decision_.actions.emplace_back(std::move(action)); }
  void Because(std::string reason) { decision_.reason = std::move(reason); }
  void Tell(std::string sentence) { Do(NotifyUser{std::move(sentence)}); }
  void FailJob(JobFailure failure);
  void FailJob(std::string reason);
  bool IsAlive(uint32_t worker) const;
  std::vector<uint32_t> AliveWorkers() const;
  std::vector<uint32_t> StayingWorkers() const;  // alive, and not leaving
  std::string WorkerText(uint32_t worker) const;
  Candidate CandidateOf(uint32_t worker) const;

  // Hosts.
  uint32_t AddHost(const HostSlots& listing);
  std::optional<uint32_t> LiveHostOf(const HostSlots& listing) const;
  void OpenListedHosts();
  void DropUnusedHosts();
  bool HostsOnTheirWay() const;

  // Seats and workers.
  std::vector<Seat> FreeSeats() const;
  bool MayAdd() const;
  size_t MostWorkers() const;
  bool HasSlot(uint32_t worker) const;
  size_t CountWithSlot() const;
  void FillSeats();
  void StartOn(const std::vector<Seat>& seats);
  void MarkLeaving();
  void NoteIncomplete();
  void RestartIfIncomplete();

  // Losses.
  FailureKind KindOf(uint32_t worker);
  bool GoesOnWithout(uint32_t worker, FailureKind kind);
  bool GoesOnWithoutAll(const std::vector<uint32_t>& workers);
  bool SpendOn(uint32_t worker, FailureKind kind);
  void RestartAll(const std::string& why);
  void GoOnWithRestart();

  // Generations.
  void SetRunning(bool running);
  std::vector<Candidate> Waiting() const;
  bool SurvivorsWait() const;
  bool LostAreGone() const;
  void FormGeneration();
  void KeepState(std::vector<Candidate>& candidates) const;
  void Begin(std::vector<Candidate> candidates);
  void DismissLeaving();
  void NoticeChange();
  void FinishIfDone();
  void EndUnused(uint32_t worker);
  void KillOverdue();
  void WatchShortage();
  void ReportShortage(size_t have, uint32_t need);
  std::string ShortageText(size_t have, uint32_t need) const;
  uint32_t Needed() const;

  JobState& state_;
  ElasticState& elastic_;
  Decision& decision_;
  const TimePoint now_;
  std::optional<JobFailure> failure_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_MEMBERSHIP_H_
