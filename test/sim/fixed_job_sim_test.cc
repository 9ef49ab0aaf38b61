// Jobs of fixed size under seeded faults: ranks that die, fail, leave with and without a goodbye
// and begin again, hosts that are lost, signals. The state machine of the job is the real one; a
// model of hosts and workers answers its actions. Each job ends, with a reason, and its exit code
// is that of the rank that failed first.
//
// HVD_SIM_SEED=... runs one seed; HVD_SOAK=1 runs 100,000.
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "launcher/job/job.h"
#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"
#include "test/sim/recounted.h"
#include "test/sim/sim_events.h"

namespace hvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kBound = seconds(600);

class World {
 public:
  explicit World(uint64_t seed) : random_(seed), state_(MakeState()), workers_(state_.plan.size()) {
    for (uint32_t host = 0; host < state_.plan.hosts.size(); ++host)
      state_.clocks[host] = HostClock::Ours();
  }

  void Run() {
    Happens(Begun{});
    for (uint32_t h = 0; h < hosts_.size(); ++h)
      Later(Within(10, 3000), [this, h] { AgentConnects(h); });
    if (Below(5) == 0) Later(Within(10, 30'000), [this] { LosesHost(Below(Count(hosts_))); });
    if (Below(6) == 0)
      Later(Within(10, 30'000), [this] { Interrupts(Below(2) == 0 ? SIGINT : SIGTERM); });
    if (Below(4) == 0) Later(Within(10, 30'000), [this] { Happens(StopAsked{SIGUSR1, {}}); });
    while (trouble_.empty() && state_.phase != JobPhase::kDone) OneMore();
    if (trouble_.empty()) CheckEnd();
  }

  const std::string& trouble() const { return trouble_; }
  std::string schedule() const { return schedule_.str(); }
  int exit_code() const { return ExitCode(state_); }
  uint64_t generations() const { return state_.generation; }

 private:
  struct Worker {
    bool there = false, waits = false;
    uint64_t generation = 0;  // 0: in none
    std::optional<int> end;   // its exit code, or that of a shell for its signal
  };
  struct Host {
    bool over = false, ending = false;
  };

  JobState MakeState() {
    const uint32_t hosts = 1 + Below(3), slots = 1 + Below(3);
    std::vector<HostSlots> list;
    for (uint32_t h = 0; h < hosts; ++h) list.push_back({"h" + std::to_string(h), slots});
    hosts_.resize(hosts);
    return JobState(*MakePlan(list, hosts * slots), {});
  }

  // ---- chance and time

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  Duration Within(uint32_t least_ms, uint32_t most_ms) {
    return milliseconds(least_ms + Below(most_ms - least_ms + 1));
  }
  static uint32_t Count(const auto& all) { return static_cast<uint32_t>(all.size()); }
  void Later(Duration delay, std::function<void()> happens) {
    events_.Later(delay, std::move(happens));
  }
  uint32_t HostOf(uint32_t w) const { return state_.plan.ranks[w].host; }
  int64_t Stamp() const { return events_.now().time_since_epoch().count() + 1; }

  void OneMore() {
    const std::string rule = events_.RunNext(state_, [this] { Happens(Tick{}); });
    if (!rule.empty()) Trouble(rule);
  }

  void Trouble(const std::string& rule) {
    if (trouble_.empty()) trouble_ = rule;
    schedule_ << rule << "\n";
  }

  template <typename T>
  void Happens(const T& event) {
    if (state_.phase == JobPhase::kDone) return;
    schedule_ << std::chrono::duration<double>(events_.now().time_since_epoch()).count() << "  "
              << typeid(T).name();
    if constexpr (requires { event.rank; }) schedule_ << " " << event.rank;
    const Decision decision = Step(state_, event, events_.now());
    schedule_ << "  " << decision.reason << "\n";
    if (const std::string wrong = WrongCount(state_); !wrong.empty()) Trouble(wrong);
    for (const JobAction& action : decision.actions)
      std::visit([this](const auto& a) { Do(a); }, action);
  }

  // ---- what is done about it

  template <typename Action>
  void Do(const Action& action) {
    Trouble(std::string("not an action of a job of fixed size: ") + typeid(action).name());
  }
  void Do(const NotifyUser& notice) { schedule_ << "    " << notice.sentence << "\n"; }
  void Do(const EndRun&) {}
  void Do(const StartMembers& start) {
    if (start.members.size() != workers_.size()) Trouble("not all workers are started");
    for (const Member& member : start.members)
      Later(Within(5, 300), [this, w = member.worker] { Starts(w); });
  }
  void Do(const BeginWorld& begin) {
    if (begin.number != ++generation_) Trouble("the generations are not numbered on");
    if (begin.generation.members.size() != workers_.size()) Trouble("a rank is left out");
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      if (begin.generation.members[w].worker != w) Trouble("a worker has another rank");
      Worker& worker = workers_[w];
      if (worker.there && !worker.waits) Trouble("a member did not wait");
      worker.waits = false;
      if (worker.there) worker.generation = begin.number;
      Later(Within(100, 20'000), [this, w, g = begin.number] { WorksNoMore(w, g); });
    }
  }
  void Do(const BreakGeneration& broken) {
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      const bool waits = broken.generation == 0 && workers_[w].waits;
      if (waits) workers_[w].waits = false;
      if (waits || (broken.generation != 0 && workers_[w].generation == broken.generation))
        Later(Within(5, 300), [this, w, g = workers_[w].generation] { LearnsOfBreak(w, g); });
    }
  }
  void Do(const HoldCommits& hold) {
    for (uint32_t h = 0; h < hosts_.size(); ++h) {
      Later(Within(1, 60), [this, h, g = hold.generation] {
        if (!hosts_[h].over) Happens(CommitsHeldBy{h, {g, Below(50)}});
      });
    }
  }
  void Do(const ActAtCommit& act) {
    if (Below(2) == 0) return;  // a script that never asks
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      Later(Within(10, 1500), [this, w, g = act.generation] {
        if (workers_[w].generation == g) Leaves(w, kStoppedExitCode);
      });
    }
  }
  void Do(const SignalWorkers& signal) {
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      if (signal.signal != SIGKILL && Below(10) == 0) continue;  // it is deaf
      Later(Within(1, 30), [this, w, s = signal.signal] { Exits(w, {true, s}); });
    }
  }
  void Do(const FinishJob&) {
    for (uint32_t h = 0; h < hosts_.size(); ++h) {
      if (std::exchange(hosts_[h].ending, true)) continue;
      Later(Within(5, 500), [this, h] {
        if (!std::exchange(hosts_[h].over, true)) Happens(AgentFinished{h});
      });
    }
  }
  void Do(const CutHost& cut) {
    Later(Within(1, 50), [this, h = cut.host] { LosesHost(h); });
  }
  void Do(const CutChannels&) {
    for (uint32_t h = 0; h < hosts_.size(); ++h) Later(Within(1, 50), [this, h] { LosesHost(h); });
  }

  // ---- hosts and signals

  void AgentConnects(uint32_t host) {
    if (!hosts_[host].over && !hosts_[host].ending) Happens(AgentIsReady{host, {}});
  }
  void LosesHost(uint32_t host) {
    if (std::exchange(hosts_[host].over, true)) return;
    if (state_.phase <= JobPhase::kStopping) foreign_cause_ = true;
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      if (HostOf(w) == host) workers_[w] = {.end = workers_[w].end};
    }
    Happens(AgentLost{host, "its connection broke"});
  }
  void Interrupts(int signal) {
    foreign_cause_ = true;
    Happens(Interrupted{signal});
  }

  // ---- workers

  void Starts(uint32_t w) {
    if (hosts_[HostOf(w)].over || hosts_[HostOf(w)].ending) return;
    workers_[w].there = true;
    Happens(WorkerStarted{w, static_cast<int32_t>(1000 + w)});
    const uint32_t luck = Below(40);
    if (luck == 0) return Later(Within(10, 2000), [this, w] { Exits(w, {true, SIGSEGV}); });
    if (luck == 1) return Later(Within(10, 2000), [this, w] { Exits(w, {false, 2}); });
    Later(luck == 2 ? Within(11'000, 40'000) : Within(50, 4000), [this, w] { Joins(w); });
  }
  void Joins(uint32_t w) {
    Worker& worker = workers_[w];
    if (!worker.there || worker.waits || worker.generation != 0) return;
    worker.waits = true;
    Happens(RankJoined{w});
  }
  // Most end with 0 after a goodbye, or all begin again.
  void WorksNoMore(uint32_t w, uint64_t generation) {
    if (workers_[w].generation != generation || !workers_[w].there) return;
    const uint32_t luck = Below(30);
    if (luck == 0) return Exits(w, {true, SIGKILL});
    if (luck == 1) return Exits(w, {false, 3});
    if (luck == 2) return Leaves(w, 4);
    if (generation % 3 == 1) {
      workers_[w].generation = 0;
      Happens(RankLeft{w, generation, Stamp()});
      return Later(Within(5, 500), [this, w] { Joins(w); });
    }
    luck < 10 ? Exits(w, {false, 0}) : Leaves(w, 0);
  }
  void LearnsOfBreak(uint32_t w, uint64_t generation) {
    Worker& worker = workers_[w];
    if (worker.generation != generation || !worker.there) return;
    const uint32_t luck = Below(10);
    if (luck == 0)  // it works on by itself
      return Later(Within(1000, 30'000), [this, w] { Exits(w, {false, 0}); });
    if (generation != 0) {
      worker.generation = 0;
      Happens(RankLeft{w, generation, Stamp(), true});
    }
    if (luck == 1) return Later(Within(5, 500), [this, w] { Joins(w); });
    consequences_.insert(w);
    Later(Within(5, 500), [this, w] { Exits(w, {false, 1}); });
  }
  void Leaves(uint32_t w, int code) {
    const uint64_t generation = std::exchange(workers_[w].generation, 0);
    if (!workers_[w].there || generation == 0) return;
    NoteFailure(w, code);
    Happens(RankLeft{w, generation, Stamp()});
    Later(Within(1, 400), [this, w, code] { Exits(w, {false, code}); });
  }
  // As its agent reports it: a member without a goodbye is lost first.
  void Exits(uint32_t w, ProcessEnd end) {
    Worker& worker = workers_[w];
    if (!worker.there) return;
    worker.there = worker.waits = false;
    worker.end = end.exit_code();
    const uint64_t generation = std::exchange(worker.generation, 0);
    const auto pid = static_cast<int32_t>(1000 + w);
    NoteFailure(w, end.exit_code());
    if (generation != 0) Happens(RankLost{w, pid, generation, Stamp(), "its process is gone"});
    Later(Within(0, 40), [this, w, pid, end, stamp = Stamp()] {
      if (!hosts_[HostOf(w)].over) Happens(WorkerExited{w, pid, end, stamp, "", false, 0});
    });
  }
  // By itself. Of two at almost the same time either may be named.
  void NoteFailure(uint32_t w, int code) {
    if (code == 0 || code == kStoppedExitCode || consequences_.contains(w)) return;
    if (first_ && events_.now() < first_at_ + milliseconds(300)) either_ = true;
    if (first_ || state_.asked() || state_.failure) return;
    first_ = code;
    first_at_ = events_.now();
  }

  // ---- rules

  void CheckEnd() {
    const int code = exit_code();
    const bool all_well =
        std::ranges::all_of(workers_, [](const Worker& worker) { return worker.end == 0; });
    if (code == 0 && !all_well && !foreign_cause_) Trouble("exit code 0, and a rank has failed");
    if (code != 0 && code != kStoppedExitCode && Report(state_).empty())
      Trouble("exit code " + std::to_string(code) + " without a report");
    const bool by_rank = state_.failure && state_.failure->kind == JobFailure::Kind::kRank;
    if (by_rank && first_ && !either_ && code != *first_ && code != 1)
      Trouble("exit code " + std::to_string(code) + ", and the first rank to fail had " +
              std::to_string(*first_));
    for (const Worker& worker : workers_) {
      if (worker.there) Trouble("a worker outlives the job");
    }
  }

  std::mt19937_64 random_;
  std::vector<Host> hosts_;
  JobState state_;
  std::vector<Worker> workers_;
  uint64_t generation_ = 0;
  SimEvents events_{kBound};
  std::optional<int> first_;  // the exit code of the first rank that failed by itself
  TimePoint first_at_{};
  bool either_ = false;
  std::set<uint32_t> consequences_;
  bool foreign_cause_ = false;  // a host was lost, or hvdrun was asked to end
  std::string trouble_;
  std::ostringstream schedule_;
};

TEST(FixedJobSim, EachJobEndsAndNoRuleIsBroken) {
  const char* one = std::getenv("HVD_SIM_SEED");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 10) : 0;
  const char* soak = std::getenv("HVD_SOAK");
  const uint64_t count = one != nullptr ? 1 : soak != nullptr && soak[0] == '1' ? 100'000 : 3000;
  std::map<int, uint64_t> ends;
  uint64_t generations = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    World world(seed);
    world.Run();
    ++ends[world.exit_code()];
    generations += world.generations();
    ASSERT_EQ(world.trouble(), "") << "with HVD_SIM_SEED=" << seed << "\n" << world.schedule();
  }
  std::printf("%llu jobs, %llu generations; exit codes:", static_cast<unsigned long long>(count),
              static_cast<unsigned long long>(generations));
  for (const auto& [code, jobs] : ends)
    std::printf(" %d: %llu", code, static_cast<unsigned long long>(jobs));
  std::printf("\n");
  if (one != nullptr) return;
  // The faults are neither so rare nor so many that nothing is tried.
  EXPECT_GT(ends[0], count / 10);
  EXPECT_GT(ends[kStoppedExitCode], 0U);
  EXPECT_GT(ends[137], 0U);
  EXPECT_GT(generations, count);
}

}  // namespace
}  // namespace hvd::test
