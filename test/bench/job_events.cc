// The cost of the decisions about a job: processor time of the state machine for each event of a
// whole job, elastic and of fixed size, with 8 ranks on each host. In the elastic one a host is
// lost and comes back.
//   job_events [RANKS...]     512, 2048 and 8192
#include <time.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "launcher/job/job.h"
#include "launcher/job/report/job_result.h"

namespace hvd {
namespace {

constexpr uint32_t kRanksPerHost = 8;
constexpr Duration kBetweenEvents = std::chrono::microseconds(10);

double ProcessMicroseconds() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "job_events: it is not so that %s\n", what);
  std::exit(1);
}

std::vector<HostSlots> Hosts(uint32_t ranks) {
  std::vector<HostSlots> hosts;
  for (uint32_t h = 0; h < ranks / kRanksPerHost; ++h)
    hosts.push_back({"node" + std::to_string(h), kRanksPerHost});
  return hosts;
}

JobState NewJob(uint32_t ranks, bool elastic) {
  if (!elastic) return JobState(*MakePlan(Hosts(ranks), ranks), {});
  JobPolicy policy = ElasticPolicy(ranks / 2, ranks, ranks);
  policy.elastic_timeout = policy.init_timeout = std::chrono::minutes(10);
  policy.failures = {10, std::nullopt};
  return JobState(Plan{}, {}, {}, policy, 1);
}

class Job {
 public:
  Job(uint32_t ranks, bool elastic)
      : ranks_(ranks), hosts_(ranks / kRanksPerHost), state_(NewJob(ranks, elastic)) {}

  void RunElastic() {
    Step(Begun{});
    Step(HostsListed{Hosts(ranks_), {}});
    for (uint32_t h = 0; h < hosts_; ++h) {
      Step(HostEntered{h, HostStage::kConnect});
      Step(AgentIsReady{h, {}});
    }
    Print("hosts");
    Require(state_.ranks.size() == ranks_, "all workers are started");
    StartAndJoin(0, ranks_);
    Require(state_.generation == 1, "a generation has begun");
    LoseLastHost();
    BringItBack();
    LeaveAndExit();
  }

  void RunFixed() {
    Step(Begun{});
    for (uint32_t h = 0; h < hosts_; ++h) {
      Step(HostEntered{h, HostStage::kConnect});
      Step(AgentIsReady{h, {}});
    }
    Print("hosts");
    StartAndJoin(0, ranks_);
    Require(state_.generation == 1, "the generation has begun");
    LeaveAndExit();
  }

 private:
  void StartAndJoin(uint32_t first, uint32_t end) {
    for (uint32_t w = first; w < end; ++w) Step(WorkerStarted{w, static_cast<int32_t>(1000 + w)});
    Print("start");
    for (uint32_t w = first; w < end; ++w) Step(RankJoined{w});
    Print("join");
  }

  // The others learn of it, leave and join again.
  void LoseLastHost() {
    const uint32_t lost = ranks_ - kRanksPerHost;
    for (uint32_t w = lost; w < ranks_; ++w)
      Step(RankLost{w, static_cast<int32_t>(1000 + w), 1, Stamp(), "its process is gone"});
    Step(AgentLost{hosts_ - 1, "its connection broke"});
    Print("a host is lost");
    Renew(lost);
    Print("leave and join again");
    Require(state_.generation == 2, "the others have formed a generation");
  }

  // After its rest. Its ranks join at a commit.
  void BringItBack() {
    now_ += std::chrono::seconds(5);
    Step(Tick{});
    Step(AgentIsReady{hosts_, {}});
    Require(state_.ranks.size() == ranks_ + kRanksPerHost, "workers are started in its place");
    Print("it is back");
    StartAndJoin(ranks_, ranks_ + kRanksPerHost);
    for (uint32_t h = 0; h < hosts_ + 1; ++h) {
      if (h != hosts_ - 1) Step(CommitsHeldBy{h, {2, 1}});
    }
    Print("hold at a commit");
    Renew(ranks_ - kRanksPerHost);
    Print("leave and join again");
    Require(state_.generation == 3, "all are in a generation");
    Require(state_.elastic.generation.size() == ranks_, "none is missing in it");
  }

  // The workers below `end` leave their generation and join the next.
  void Renew(uint32_t end) {
    for (uint32_t w = 0; w < end; ++w) Step(RankLeft{w, state_.generation, Stamp(), true});
    for (uint32_t w = 0; w < end; ++w) Step(RankJoined{w});
  }

  void LeaveAndExit() {
    std::vector<uint32_t> members;
    for (uint32_t w = 0; w < state_.ranks.size(); ++w) {
      if (state_.ranks[w].in_generation == state_.generation) members.push_back(w);
    }
    for (uint32_t w : members) Step(RankLeft{w, state_.generation, Stamp()});
    Print("leave");
    for (uint32_t w : members)
      Step(WorkerExited{w, static_cast<int32_t>(1000 + w), {false, 0}, Stamp(), "", false, 9});
    Print("exit");
    Require(state_.phase == JobPhase::kFinishing && ExitCode(state_) == 0, "the job has succeeded");
  }

  int64_t Stamp() const { return now_.time_since_epoch().count(); }

  void Step(const JobEvent& event) {
    now_ += kBetweenEvents;
    (void)hvd::Step(state_, event, now_);
    (void)NextTick(state_);
    ++events_;
  }

  void Print(const char* what) {
    const double us = ProcessMicroseconds() - begun_us_;
    std::printf("| %u | %s | %s | %u | %.2f | %.3f |\n", ranks_,
                state_.policy().outlives_losses ? "elastic" : "fixed", what, events_, us / events_,
                us / 1e6);
    std::fflush(stdout);
    begun_us_ = ProcessMicroseconds();
    events_ = 0;
  }

  const uint32_t ranks_, hosts_;
  JobState state_;
  TimePoint now_ = TimePoint(std::chrono::seconds(1000));
  double begun_us_ = ProcessMicroseconds();  // the phase
  uint32_t events_ = 0;                      // of it
};

}  // namespace
}  // namespace hvd

int main(int argc, char** argv) {
  std::vector<uint32_t> sizes;
  for (int at = 1; at < argc; ++at)
    sizes.push_back(static_cast<uint32_t>(std::strtoul(argv[at], nullptr, 10)) /
                    hvd::kRanksPerHost * hvd::kRanksPerHost);
  if (sizes.empty()) sizes = {512, 2048, 8192};
  std::printf("| ranks | job | phase | events | us an event | all, s |\n");
  std::printf("|---|---|---|---|---|---|\n");
  for (const uint32_t ranks : sizes) {
    hvd::Job(ranks, false).RunFixed();
    hvd::Job(ranks, true).RunElastic();
  }
}
