#include "test/sim/elastic_sim.h"

#include <algorithm>
#include <csignal>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <sstream>
#include <vector>

#include "launcher/driver/takeover/elastic_adoption.h"
#include "launcher/driver/takeover/job_record.h"
#include "launcher/job/job.h"
#include "launcher/job/report/job_result.h"
#include "launcher/job/report/report.h"
#include "runtime/segment/job_page.h"
#include "test/sim/recounted.h"
#include "test/sim/sim_events.h"

namespace hvd::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Duration kFaultsEnd = seconds(90);
// From then on a rank that is in a generation finishes.
constexpr Duration kWorkDone = seconds(120);
constexpr Duration kElasticTimeout = seconds(60);
// By then each job is over: after the work, waits for slots or ranks, and the ways of hosts.
constexpr Duration kBound = kWorkDone + 4 * kElasticTimeout + seconds(240);

double SecondsOf(TimePoint time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

}  // namespace

class ElasticSim::World {
 public:
  World(uint64_t seed, bool keep_schedule, bool takeovers)
      : random_(seed),
        keep_schedule_(keep_schedule),
        seed_(seed),
        takeovers_(takeovers),
        state_(Plan{}, JobOptions{}) {
    const uint32_t min_np = 1 + Below(3), np = min_np + Below(3), max_np = np + Below(4);
    JobPolicy limits = ElasticPolicy(min_np, np, max_np);
    limits.elastic_timeout = limits.init_timeout = kElasticTimeout;
    limits.failures = {Below(4) == 0 ? Below(3) : 10 + Below(20), std::nullopt};
    if (Below(8) == 0) limits.reset_limit = Below(6);
    if (Below(3) == 0) limits.spares = 1 + Below(2);
    const uint32_t mode = Below(8);
    if (mode <= 1) limits.restart = mode == 0 ? RestartMode::kInProcess : RestartMode::kInJob;
    limits_ = limits;
    state_ = Fresh();
    native_ = Below(12) == 0;
    calm_ = Below(6) == 0;
    for (uint32_t h = 0; h < 2 + Below(3); ++h) listing_.push_back(NewHost());
  }

  ElasticSimResult Run() {
    Happens(Begun{});
    Happens(HostsListed{listing_, {}});
    if (!calm_) ScheduleFault();
    if (Below(6) == 0) Later(Within(1000, 110'000), [this] { Happens(StopAsked{SIGTERM, {}}); });
    while (trouble_.empty() && state_.phase != JobPhase::kDone) OneMore();
    if (trouble_.empty()) CheckEnd();
    return {trouble_, schedule_.str(),         ExitCode(state_), state_.generation,
            spares_,  state_.elastic.restarts, taken_over_};
  }

 private:
  struct Worker {
    uint32_t host = 0;
    bool there = false;       // its process runs
    bool waits = false;       // in hvd.init()
    uint64_t generation = 0;  // 0: in none
    uint64_t commits = 0;
    bool ignores_sigterm = false;
    bool known = false, begun = false;  // to its agent; and started, or not
    int32_t pid = 0;
  };
  struct Host {
    bool agent = false;  // it is connected
    bool over = false;   // its end was reported
    bool ending = false;
    // What its agent knows, for an hvdrun that takes over.
    bool started = false;
    uint64_t generation = 0;
    std::vector<RankLeft> left;
    std::vector<RankLost> lost;
    std::vector<WorkerExited> exited;
  };

  // ---- chance

  uint32_t Below(uint32_t end) { return static_cast<uint32_t>(random_() % end); }
  Duration Within(uint32_t least_ms, uint32_t most_ms) {
    return milliseconds(least_ms + Below(most_ms - least_ms + 1));
  }
  HostSlots NewHost() { return {"h" + std::to_string(Below(8)), 1 + Below(3)}; }

  // ---- time

  void Later(Duration delay, std::function<void()> happens) {
    events_.Later(delay, std::move(happens));
  }

  void OneMore() {
    const std::string rule = events_.RunNext(state_, [this] { Happens(Tick{}); });
    if (!rule.empty()) Trouble(rule);
  }

  // ---- what is said to the job

  template <typename T>
  static std::string NameOf(const T& value) {
    const std::string name = typeid(value).name();
    return name.substr(name.find_first_not_of("N0123456789"));
  }

  template <typename T>
  void Note(const char* what, const T& value, int64_t number = -1) {
    if (!keep_schedule_) return;
    schedule_ << SecondsOf(events_.now()) << what << NameOf(value);
    if (number >= 0) schedule_ << " " << number;
    schedule_ << "\n";
  }

  void Trouble(const std::string& rule) {
    if (!trouble_.empty()) return;
    std::ostringstream text;
    text << "at " << SecondsOf(events_.now()) << " s: " << rule;
    trouble_ = text.str();
    if (keep_schedule_) schedule_ << trouble_ << "\n";
  }

  template <typename T>
  void Happens(const T& event) {
    if constexpr (requires { event.rank; }) {
      Note("  ", event, event.rank);
    } else if constexpr (requires { int64_t{event.host}; }) {
      Note("  ", event, event.host);
    } else {
      Note("  ", event);
    }
    if (state_.phase == JobPhase::kDone) return;
    Remember(event);
    if (away_) return Miss(event);
    failed_ = state_.failure.has_value();
    CheckRecord(event);
    const Decision decision = Step(state_, event, events_.now());
    if (takeovers_ && chance_() % 40 == 0) return TakeOver(decision.actions);
    for (const JobAction& action : decision.actions)
      std::visit([this](const auto& a) { Do(a); }, action);
    CheckState();
  }

  // ---- hvdrun is killed, and another one takes over

  JobState Fresh() const { return JobState(Plan{}, JobOptions{}, {}, limits_, seed_); }

  // What an agent keeps.
  template <typename T>
  void Remember(const T& event) {
    if constexpr (std::same_as<T, RankLeft> || std::same_as<T, RankLost>) {
      Host& host = hosts_[workers_[event.rank].host];
      if (event.generation == 0 || event.generation != host.generation) return;
      if constexpr (std::same_as<T, RankLeft>) {
        host.left.push_back(event);
      } else {
        host.lost.push_back(event);
      }
    }
    if constexpr (std::same_as<T, WorkerExited>)
      hosts_[workers_[event.rank].host].exited.push_back(event);
    if constexpr (std::same_as<T, WorkerStarted>) workers_[event.rank].pid = event.pid;
  }

  // Agents say it again, or it is heard of later; the rest is lost.
  template <typename T>
  void Miss(const T& event) {
    if constexpr (std::same_as<T, AgentLost> || std::same_as<T, AgentFinished> ||
                  std::same_as<T, HostsListed> || std::same_as<T, Interrupted>)
      missed_.push_back(event);
  }

  // From a record to the same next action, and to the same record.
  template <typename T>
  void CheckRecord(const T& event) {
    for (uint32_t h = 0; h < state_.elastic.hosts.size(); ++h) {
      // How far the others are is not in the record.
      if (state_.stages.stage(h) != HostStage::kReady) return;
    }
    if (chance_() % 20 != 0) return;
    JobState twin = Fresh(), same = state_;
    const std::string record = EncodeJobState(state_);
    if (!DecodeJobState(record, twin, events_.now())) return Trouble("a record cannot be read");
    if (EncodeJobState(twin) != record) return Trouble("a record has changed");
    const Decision one = Step(same, event, events_.now());
    const Decision other = Step(twin, event, events_.now());
    bool equal = one.reason == other.reason && one.actions.size() == other.actions.size() &&
                 NextTick(same) == NextTick(twin) && EncodeJobState(same) == EncodeJobState(twin);
    for (size_t at = 0; equal && at < one.actions.size(); ++at)
      equal = one.actions[at].index() == other.actions[at].index();
    if (!equal) Trouble("a job from a record does something else");
  }

  // After the record was left, in the middle of what was to be done.
  void TakeOver(const std::vector<JobAction>& actions) {
    ++taken_over_;
    const std::string record = EncodeJobState(state_);
    if (keep_schedule_) schedule_ << SecondsOf(events_.now()) << "  hvdrun is killed\n";
    partial_ = true;
    for (size_t done = chance_() % (actions.size() + 1), at = 0; at < done; ++at)
      std::visit([this](const auto& a) { Do(a); }, actions[at]);
    partial_ = false;
    std::vector<bool> outlives;
    for (uint32_t h = 0; h < state_.elastic.hosts.size(); ++h) {
      if (h >= hosts_.size()) hosts_.resize(h + 1);
      outlives.push_back(state_.elastic.hosts[h].ready && hosts_[h].agent);
      if (!outlives[h] && !hosts_[h].agent) hosts_[h].over = true;
    }
    away_ = true;
    const TimePoint until = events_.now() + Within(1, 500);
    Later(until - events_.now(), [] {});
    while (events_.now() < until && events_.RunNextEvent()) {
    }
    for (uint32_t w = 0; w < workers_.size(); ++w) Starts(w);
    away_ = false;
    state_ = Fresh();
    if (!DecodeJobState(record, state_, events_.now())) return Trouble("a record cannot be read");
    ForgetHosts(state_, outlives);
    HostSnapshots snapshots(hosts_.size());
    for (uint32_t h = 0; h < hosts_.size(); ++h) {
      if (outlives[h] && hosts_[h].agent) snapshots[h] = SnapshotOf(h);
    }
    const std::vector<JobEvent> events = MissedEvents(state_, snapshots);
    failed_ = false;
    again_ = true;
    for (const JobAction& action : UnfinishedActions(state_, snapshots, events_.now()))
      std::visit([this](const auto& a) { Do(a); }, action);
    again_ = false;
    for (const JobEvent& event : events) StepOnly(event);
    for (const JobEvent& event : std::exchange(missed_, {})) StepOnly(event);
    StepOnly(HostsListed{listing_, {}});
    StepOnly(Tick{});
    CheckState();
  }

  HostSnapshot SnapshotOf(uint32_t h) const {
    const Host& host = hosts_[h];
    HostSnapshot snapshot{host.started ? uint8_t{1} : uint8_t{0}, host.generation, {}, {}, {}, {}};
    snapshot.left = host.left;
    snapshot.lost = host.lost;
    snapshot.exited = host.exited;
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      const Worker& worker = workers_[w];
      if (worker.host == h && worker.known)
        snapshot.workers.push_back(
            {w, worker.pid, worker.waits ? uint8_t{1} : uint8_t{0}, worker.generation});
    }
    return snapshot;
  }

  void StepOnly(const JobEvent& event) {
    if (state_.phase == JobPhase::kDone) return;
    failed_ = state_.failure.has_value();
    const Decision decision = Step(state_, event, events_.now());
    if (const std::string wrong = WrongCount(state_); !wrong.empty()) Trouble(wrong);
    for (const JobAction& action : decision.actions)
      std::visit([this](const auto& a) { Do(a); }, action);
  }

  int64_t Stamp() const { return events_.now().time_since_epoch().count() + 1; }

  // ---- what is done about it

  template <typename Action>
  void Do(const Action& action) {
    Note("      -> ", action);
  }
  void Do(const NotifyUser& notice) {
    if (keep_schedule_)
      schedule_ << SecondsOf(events_.now()) << "      -> " << notice.sentence << "\n";
  }
  void Do(const OpenHost& open) {
    Note("      -> ", open, open.host);
    hosts_.resize(std::max<size_t>(hosts_.size(), open.host + 1));
    const uint32_t luck = Below(20);
    if (luck == 0) return;  // it says nothing
    if (luck <= 2) return Later(Within(100, 5000), [this, h = open.host] { Loses(h); });
    Later(Within(50, 400), [this, h = open.host] {
      if (!hosts_[h].over) Happens(HostEntered{h, HostStage::kConnect});
    });
    Later(luck == 3 ? Within(8000, 25'000) : Within(400, 6000), [this, h = open.host] {
      if (hosts_[h].over || hosts_[h].ending) return;
      hosts_[h].agent = true;
      Happens(AgentIsReady{h, {}});
    });
  }
  void Do(const CutHost& cut) {
    Note("      -> ", cut, cut.host);
    Later(Within(1, 50), [this, h = cut.host] { Loses(h); });
  }
  void Do(const DismissHost& dismiss) {
    Note("      -> ", dismiss, dismiss.host);
    if (hosts_[dismiss.host].agent) Ends(dismiss.host);
  }
  void Do(const FinishJob& finish) {
    Note("      -> ", finish);
    for (uint32_t h = 0; h < hosts_.size(); ++h) {
      if (hosts_[h].agent) Ends(h);
    }
  }
  void Do(const CutChannels& cut) {
    Note("      -> ", cut);
    for (uint32_t h = 0; h < hosts_.size(); ++h) Later(Within(1, 50), [this, h] { Loses(h); });
  }
  void Do(const StartMembers& start) {
    if (failed_) Trouble("workers are started after a failure");
    CheckCount();
    for (const Member& member : start.members) {
      Note("      -> ", start, member.worker);
      if (member.worker >= workers_.size()) workers_.resize(member.worker + 1);
      workers_[member.worker].host = member.place.host;
      workers_[member.worker].ignores_sigterm = Below(15) == 0;
      workers_[member.worker].known = true;
      hosts_[member.place.host].started = true;
      Later(Within(5, 400), [this, w = member.worker] { Starts(w); });
    }
  }
  void Do(const AskMemory& ask) {
    Note("      -> ", ask, ask.rank);
    ++spares_;
    const Worker& spare = workers_[ask.rank];  // its end may be on its way
    if (spare.there && !spare.waits) Trouble("a spare does not wait");
    Later(Within(1, 60), [this, w = ask.rank] {
      if (!hosts_[workers_[w].host].over) Happens(MemoryReply{w, 100'000'000});
    });
  }
  void Do(const BeginWorld& begin) {
    Note("      -> ", begin, static_cast<int64_t>(begin.number));
    if (again_) {
      for (const Member& member : begin.generation.members)
        since_.emplace(member.worker, begin.number);
      acted_ = acted_ && begin.number == generation_;
    } else {
      CheckWorld(begin);
    }
    std::set<uint32_t> hear;  // hosts
    for (uint32_t h = 0; h < hosts_.size(); ++h) {
      Host& host = hosts_[h];
      if (!host.started || host.over || host.generation >= begin.number) continue;
      if (partial_ && chance_() % 2 == 0) continue;
      host.generation = begin.number;
      host.left.clear();
      host.lost.clear();
      hear.insert(h);
    }
    last_members_.clear();
    for (const Member& member : begin.generation.members) {
      last_members_.insert(member.worker);
      Worker& worker = workers_[member.worker];
      if (!hear.contains(worker.host)) continue;
      worker.waits = false;
      if (again_ && !worker.there) {
        Later(milliseconds(1), [this, w = member.worker, g = begin.number] {
          if (!hosts_[workers_[w].host].over)
            Happens(RankLost{w, workers_[w].pid, g, Stamp(), "it had died"});
        });
      } else {
        worker.generation = begin.number;
      }
    }
    generation_ = begin.number;
    const Duration left = TimePoint() + kWorkDone - events_.now();
    Later(std::max<Duration>(left, seconds(1)), [this, g = begin.number] {
      for (uint32_t w = 0; w < workers_.size(); ++w) {
        if (workers_[w].generation == g)
          Later(Within(1, 3000), [this, w, g] { LeavesAndExits(w, g, 0); });
      }
    });
  }
  void Do(const BreakGeneration& broken) {
    Note("      -> ", broken);
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].generation == broken.generation && broken.generation != 0)
        Later(Within(5, 300), [this, w, g = broken.generation] { LearnsOfBreak(w, g); });
    }
  }
  void Do(const HoldCommits& hold) {
    Note("      -> ", hold);
    std::set<uint32_t> hosts;
    for (uint32_t w : last_members_) hosts.insert(workers_[w].host);
    for (uint32_t h : hosts) {
      Later(Within(1, 60), [this, h, g = hold.generation] {
        if (!hosts_[h].over) Happens(CommitsHeldBy{h, {g, Below(50)}});
      });
    }
  }
  void Do(const ActAtCommit& act) {
    Note("      -> ", act);
    acted_ = true;
    for (uint32_t w : last_members_) {
      Later(Within(10, 1500), [this, w, act] {
        if (workers_[w].generation != act.generation || !workers_[w].there) return;
        ++workers_[w].commits;
        if ((act.update & kUpdateStop) != 0) {
          LeavesAndExits(w, act.generation, kStoppedExitCode);
        } else {
          JoinsAgain(w);
        }
      });
    }
  }
  void Do(const SignalWorker& signal) {
    Note("      -> ", signal, signal.rank);
    Signals(signal.rank, signal.signal);
  }
  void Do(const SignalWorkers& signal) {
    Note("      -> ", signal, signal.signal);
    for (uint32_t w = 0; w < workers_.size(); ++w) Signals(w, signal.signal);
  }
  void Do(const DismissWorker& dismiss) {
    Note("      -> ", dismiss, dismiss.rank);
    workers_[dismiss.rank].waits = false;
    if (Below(30) == 0) return;  // it goes on with something else
    Later(Within(5, 2000), [this, w = dismiss.rank] { Exits(w, {false, 0}); });
  }

  // ---- hosts

  // Its agent, its workers and the way to it are gone.
  void Loses(uint32_t host) {
    if (hosts_[host].over) return;
    hosts_[host].over = true;
    hosts_[host].agent = false;
    for (Worker& worker : workers_) {
      if (worker.host == host) worker = {.host = host, .begun = true};
    }
    Happens(AgentLost{host, "its connection broke"});
  }

  // When none of its workers is left.
  void Ends(uint32_t host) {
    if (std::exchange(hosts_[host].ending, true)) return;
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].host == host) Exits(w, {true, SIGKILL});
    }
    Later(Within(5, 500), [this, host] {
      if (std::exchange(hosts_[host].over, true)) return;
      Happens(AgentFinished{host});
    });
  }

  // ---- workers

  void Starts(uint32_t w) {
    Worker& worker = workers_[w];
    if (!worker.known || std::exchange(worker.begun, true)) return;
    if (hosts_[worker.host].over || hosts_[worker.host].ending) return;
    const auto pid = static_cast<int32_t>(1000 + w);
    if (Below(150) == 0) return Happens(WorkerNotStarted{w, EAGAIN, "no process can be made"});
    worker.there = true;
    Happens(WorkerStarted{w, pid});
    if (native_) return Later(Within(20'000, 100'000), [this, w] { Exits(w, {false, 0}); });
    const uint32_t luck = Below(40);
    if (luck == 0) {  // it never joins
      return Later(kWorkDone + kElasticTimeout, [this, w] { Exits(w, {false, 0}); });
    }
    if (luck == 1) return Later(Within(10, 2000), [this, w] { Exits(w, {true, SIGSEGV}); });
    Later(luck <= 4 ? Within(10'000, 40'000) : Within(50, 6000), [this, w] { Joins(w); });
  }

  void Joins(uint32_t w) {
    Worker& worker = workers_[w];
    if (!worker.there || worker.waits || worker.generation != 0) return;
    worker.waits = true;
    Happens(RankJoined{w});
  }

  void JoinsAgain(uint32_t w) {
    Worker& worker = workers_[w];
    const uint64_t generation = std::exchange(worker.generation, 0);
    if (Below(2) == 0) Happens(RankLeft{w, generation, Stamp(), Below(4) == 0});
    Later(Below(10) == 0 ? Within(3000, 20'000) : Within(5, 1000), [this, w] { Joins(w); });
  }

  void LearnsOfBreak(uint32_t w, uint64_t generation) {
    Worker& worker = workers_[w];
    if (worker.generation != generation || !worker.there) return;
    const uint32_t luck = Below(60);
    if (luck == 0) return;  // it never comes back
    if (luck <= 2) {
      worker.generation = 0;
      Happens(RankLeft{w, generation, Stamp(), true});
      return Later(Within(5, 500), [this, w] {
        Exits(w, {false, 1},
              "Traceback (most recent call last):\n  a\nHorovodInternalError: a peer was lost\n");
      });
    }
    JoinsAgain(w);
  }

  void LeavesAndExits(uint32_t w, uint64_t generation, int code) {
    Worker& worker = workers_[w];
    if (worker.generation != generation || !worker.there) return;
    worker.generation = 0;
    Happens(RankLeft{w, generation, Stamp()});
    Later(Within(1, 400), [this, w, code] { Exits(w, {false, code}); });
  }

  void Signals(uint32_t w, int signal) {
    if (w >= workers_.size()) return;  // its agent was never asked to start it
    if (signal == SIGTERM && workers_[w].ignores_sigterm) return;
    Later(Within(1, 30), [this, w, signal] { Exits(w, {true, signal}); });
  }

  // As its agent reports it: a member without a goodbye is lost first.
  void Exits(uint32_t w, ProcessEnd end, std::string words = "") {
    Worker& worker = workers_[w];
    if (!worker.there) return;
    worker.there = worker.waits = false;
    const uint64_t generation = std::exchange(worker.generation, 0);
    const auto pid = static_cast<int32_t>(1000 + w);
    const uint64_t commits = worker.commits;  // a loss may add workers, and so move this one
    if (generation != 0) Happens(RankLost{w, pid, generation, Stamp(), "its process is gone"});
    Later(Within(0, 40), [this, w, pid, end, words, commits] {
      if (hosts_[workers_[w].host].over) return;
      Happens(WorkerExited{w, pid, end, Stamp(), words, false, commits});
    });
  }

  // ---- faults

  void ScheduleFault() {
    Later(Within(50, 15'000), [this] {
      if (events_.now() > TimePoint() + kFaultsEnd) return;
      Fault();
      ScheduleFault();
    });
  }

  void Fault() {
    const uint32_t luck = Below(100);
    if (luck < 35) {
      for (uint32_t times = 1 + (Below(3) == 0 ? Below(4) : 0); times > 0; --times) {
        if (!workers_.empty()) Exits(Below(Count(workers_)), {true, SIGKILL});
      }
    } else if (luck < 45) {
      if (!hosts_.empty()) Loses(Below(Count(hosts_)));
    } else if (luck < 85) {
      ChangeList();
    } else if (luck < 90) {
      if (!workers_.empty()) Raises(Below(Count(workers_)));
    } else if (luck < 95) {
      const RankEnding by{Below(4), "rank 0 has waited too long"};
      if (generation_ != 0) Happens(GenerationEnding{generation_, by});
    } else if (luck < 98) {
      for (uint32_t w : std::set<uint32_t>(last_members_)) {
        if (Below(4) == 0) LeavesAndExits(w, generation_, 0);
      }
    } else if (Below(4) == 0) {
      Happens(Interrupted{Below(2) == 0 ? SIGINT : SIGTERM});
    }
  }

  void Raises(uint32_t w) {
    workers_[w].commits += Below(2);
    Exits(w, {false, 1},
          "Traceback (most recent call last):\n  a\nValueError: " +
              std::string(1, static_cast<char>('a' + Below(6))) + "\n");
  }

  void ChangeList() {
    const uint32_t luck = Below(10);
    if (luck == 0) return Happens(HostsListed{{}, "the script ended with exit code 1"});
    if (luck == 1) {
      listing_.clear();
    } else if (luck <= 4 && !listing_.empty()) {
      listing_.erase(listing_.begin() + Below(Count(listing_)));
    } else if (luck <= 6 && !listing_.empty()) {
      listing_[Below(Count(listing_))].slots = Below(4);
    } else {
      const HostSlots host = NewHost();
      std::erase_if(listing_, [&](const HostSlots& known) { return known.host == host.host; });
      listing_.push_back(host);
    }
    Happens(HostsListed{listing_, {}});
  }

  static uint32_t Count(const auto& all) { return static_cast<uint32_t>(all.size()); }

  // ---- rules

  void CheckWorld(const BeginWorld& begin) {
    const ElasticState& elastic = state_.elastic;
    const std::vector<Member>& members = begin.generation.members;
    if (begin.number <= generation_) Trouble("the number of a generation does not grow");
    if (state_.failure) Trouble("a generation begins after a failure");
    if (members.empty()) return Trouble("a generation has no members");
    if (members.size() > elastic.policy.max_np) Trouble("more than max_np members");
    if (members.size() < elastic.policy.min_np && !elastic.any_finished)
      Trouble("fewer than min_np members");
    std::set<uint32_t> workers;
    for (uint32_t rank = 0; rank < members.size(); ++rank) {
      const Member& member = members[rank];
      if (member.place.rank != rank) Trouble("the ranks are not in a row");
      if (!workers.insert(member.worker).second) Trouble("a worker has two ranks");
      const Worker& worker = workers_[member.worker];
      // Its end may be on its way.
      if (worker.there && !worker.waits) Trouble("a member did not wait");
    }
    uint64_t oldest = UINT64_MAX;  // of those that wait: since which generation it takes part
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].generation != 0 && workers_[w].there)
        Trouble("worker " + std::to_string(w) + " is still in the last generation");
      if (workers_[w].waits && since_.contains(w)) oldest = std::min(oldest, since_[w]);
    }
    const auto first = since_.find(members[0].worker);
    const uint64_t since = first == since_.end() ? UINT64_MAX : first->second;
    // One that was new in the last generation may not have been told the state before it broke.
    const bool told = since < generation_ || (since == generation_ && acted_);
    if (since > oldest && !told && elastic.policy.max_np > 1)
      Trouble("rank 0 may not have the state, though one that has it waits");
    for (const uint32_t worker : workers) since_.emplace(worker, begin.number);
    acted_ = false;
  }

  // Of those whose slot is there: others leave.
  void CheckCount() {
    const ElasticState& elastic = state_.elastic;
    uint32_t with_slot = 0;
    for (uint32_t w = 0; w < state_.ranks.size(); ++w) {
      const ElasticHost& host = elastic.hosts[state_.plan.ranks[w].host];
      const bool alive = state_.ranks[w].alive();
      with_slot += alive && host.listed && state_.plan.ranks[w].local_rank < host.slots;
    }
    if (with_slot > elastic.policy.max_np + elastic.policy.spares)
      Trouble("more workers than max_np and the spares");
    if (with_slot > elastic.policy.max_np && !elastic.running)
      Trouble("spares are started before the ranks train");
  }

  void CheckState() {
    if (const std::string wrong = WrongCount(state_); !wrong.empty()) Trouble(wrong);
    std::set<std::pair<uint32_t, uint32_t>> seats;
    for (uint32_t w = 0; w < state_.ranks.size(); ++w) {
      const RankRecord& record = state_.ranks[w];
      const Placement& place = state_.plan.ranks[w];
      if (!record.ended() && !seats.emplace(place.host, place.local_rank).second)
        Trouble("two workers have one slot");
      const bool failed = record.loss || (record.end && !record.end->ok());
      if (record.ended() && failed && !record.forgiven && !state_.failure)
        Trouble("the job goes on, and would blame worker " + std::to_string(w) + " later");
    }
  }

  void CheckEnd() {
    const int code = ExitCode(state_);
    if (code != 0 && code != kStoppedExitCode && Report(state_).empty())
      Trouble("exit code " + std::to_string(code) + " without a report");
    if (code == 0 && !state_.elastic.any_finished && !state_.elastic.stop_asked)
      Trouble("exit code 0, and no rank has finished");
    for (uint32_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].there) Trouble("worker " + std::to_string(w) + " outlives the job");
    }
  }

  std::mt19937_64 random_;
  const bool keep_schedule_;
  const uint64_t seed_;
  const bool takeovers_;
  std::mt19937_64 chance_{seed_};  // of takeovers, so that they change nothing else
  uint32_t taken_over_ = 0;
  bool away_ = false;     // there is no hvdrun
  bool again_ = false;    // what the former hvdrun had decided is sent once more
  bool partial_ = false;  // it is killed while it sends
  std::vector<JobEvent> missed_;
  JobPolicy limits_;
  bool native_ = false;  // the script knows of no generations
  bool failed_ = false;  // before the present event
  bool calm_ = false;    // no faults but those of workers and hosts themselves
  JobState state_;
  SimEvents events_{kBound};
  std::vector<HostSlots> listing_;
  std::vector<Host> hosts_;
  std::vector<Worker> workers_;
  uint64_t generation_ = 0;
  uint32_t spares_ = 0;
  std::set<uint32_t> last_members_;
  std::map<uint32_t, uint64_t> since_;  // the first generation of each worker
  bool acted_ = false;                  // the last generation ended at a commit
  std::string trouble_;
  std::ostringstream schedule_;
};

ElasticSim::ElasticSim(uint64_t seed, bool keep_schedule, bool takeovers)
    : world_(std::make_unique<World>(seed, keep_schedule, takeovers)) {}
ElasticSim::~ElasticSim() = default;

ElasticSimResult ElasticSim::Run() { return world_->Run(); }

}  // namespace hvd::test
