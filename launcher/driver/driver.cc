#include "launcher/driver/driver.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/signal_set.hpp>
#include <asio/steady_timer.hpp>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "configs/message_text.h"
#include "launcher/bundle/remote_script.h"
#include "launcher/driver/error_file.h"
#include "launcher/driver/failure_hint.h"
#include "launcher/driver/host_clock.h"
#include "launcher/driver/job.h"
#include "launcher/driver/remote_cleanup.h"
#include "launcher/driver/report.h"
#include "launcher/driver/silent_routes.h"
#include "launcher/driver/start_job.h"
#include "launcher/jobs/driver_status.h"
#include "launcher/jobs/job_id.h"
#include "launcher/output/output.h"
#include "launcher/output/screen.h"
#include "launcher/output/stdin_reader.h"
#include "launcher/process/uncaught.h"
#include "launcher/relay/relay_switch.h"
#include "launcher/text/seconds_text.h"
#include "launcher/tree/agent_tree.h"
#include "launcher/wire/kv_table.h"
#include "launcher/wire/message_rights.h"
#include "launcher/wire/messages.h"
#include "launcher/wire/probe_partners.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/test_env.h"
#include "runtime/net/trouble.h"

namespace hvd {
namespace {

Duration Seconds(double seconds) {
  constexpr double kLongest = 1e9;  // "for ever", without overflow
  return std::chrono::duration_cast<Duration>(
      std::chrono::duration<double>(std::min(seconds, kLongest)));
}

constexpr int kCannotGoOn = 1;
// How long the screen may take to show the last output, for each stream. A pager is read when
// somebody has the time, but a job that was asked to end does not wait for it.
constexpr auto kPatience = std::chrono::hours(24 * 365);
constexpr auto kOutputLimit = std::chrono::seconds(1);
// How much of stdin may be on its way to the workers.
constexpr uint64_t kInputWindow = 256 * 1024;
// Of a host without a rank; never the least of all, as some host has ranks.
constexpr uint64_t kReadsNothing = UINT64_MAX;

JobOptions JobOptionsOf(const DriverOptions& driver) {
  const Settings& settings = driver.settings;
  JobOptions options;
  options.stages = driver.stage_limits;
  options.prove_addresses = std::any_of(driver.hosts.begin(), driver.hosts.end(),
                                        [](const DriverHost& host) { return host.remote; });
  options.relay = settings.relay != "never";
  options.terminate_grace = Seconds(settings.terminate_grace_seconds);
  options.start_timeout = Seconds(settings.start_timeout_seconds);
  options.timeout = Seconds(settings.timeout_seconds);
  auto usual_ms = std::chrono::duration_cast<std::chrono::milliseconds>(options.init_watch).count();
  options.init_watch =
      std::chrono::milliseconds(TestNumber("HVD_TEST_INIT_WATCH_MS", static_cast<int>(usual_ms)));
  return options;
}

// Nothing can be cut off on this machine: only an agent that is stopped is silent here, and it may
// be continued.
constexpr int kSilentSecondsHere = 30;

Heartbeat HeartbeatOf(const DriverOptions& options, uint32_t host) {
  Heartbeat heartbeat;
  int limit = kSilentSecondsHere;
  if (options.hosts[host].remote) {
    limit = std::max(1, static_cast<int>(options.settings.heartbeat_timeout_seconds));
    heartbeat.every = std::min<Duration>(heartbeat.every, std::chrono::milliseconds(limit * 200));
  }
  heartbeat.limit_seconds = TestNumber("HVD_TEST_SILENT_SECONDS", limit);
  heartbeat.grace = Seconds(options.settings.driver_grace_seconds);
  return heartbeat;
}

// --verbose is the log level DEBUG.
LogLevel LogLevelOf(const Settings& settings) {
  const LogLevel level = ParseLogLevel(settings.log_level, LogLevel::kWarning);
  return settings.verbose ? std::min(level, LogLevel::kDebug) : level;
}

// "4 ranks on 2 hosts: a, b"
std::string PlanText(const Plan& plan) {
  std::vector<std::string> names;
  for (uint32_t host : plan.UsedHosts()) names.push_back(plan.hosts[host]);
  return std::to_string(plan.size()) + (plan.size() == 1 ? " rank on " : " ranks on ") +
         std::to_string(names.size()) + (names.size() == 1 ? " host: " : " hosts: ") +
         HostNames(names);
}

std::string CommandText(const std::vector<std::string>& command) {
  std::string text;
  for (const std::string& word : command) text += (text.empty() ? "" : " ") + word;
  return text;
}

JobCounts CountsOf(const JobState& state) {
  if (state.phase == JobPhase::kOpening) return {};  // its plan may change
  JobCounts counts{static_cast<uint32_t>(state.ranks.size()), 0};
  for (const RankRecord& rank : state.ranks) counts.alive += rank.phase == RankPhase::kRunning;
  return counts;
}

class Driver final : public AgentConnectionObserver {
 public:
  Driver(DriverOptions options, const ChannelFactory& make_channel);

  int Run();

  void OnHostStage(uint32_t host, HostStage stage) override { Dispatch(HostEntered{host, stage}); }
  void OnHostTrouble(uint32_t host, HostStage stage, const std::string& reason) override {
    Dispatch(HostTroubled{host, stage, reason});
  }
  void OnHostNote(uint32_t host, const std::string& text) override {
    Verbose("host " + NameOf(host) + ": " + text);
  }
  void OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) override;
  void OnMessage(uint32_t host, ToDriver message) override;
  void OnReadOver(uint32_t) override { screen_.Flush(); }
  void OnHostAway(uint32_t host, const std::string& reason) override;
  void OnHostBack(uint32_t host, Duration away) override;
  void OnHvdrunSkipped(uint32_t host, const std::string& what) override;
  void OnHostEnd(uint32_t host, const std::string& reason) override;

 private:
  Status CheckStraight(uint32_t host, const ToDriver& message);
  bool MayNameKey(uint32_t host, uint64_t generation, const std::string& key);
  void Dispatch(const JobEvent& event);
  // Lines of the log; those of kInfo tell the story of the job, however many hosts it has.
  void Print(LogLevel level, const std::string& sentence);
  void Info(const std::string& sentence) { Print(LogLevel::kInfo, sentence); }
  void Verbose(const std::string& sentence) { Print(LogLevel::kDebug, sentence); }
  void BeginProgress();
  std::string Hint() const;
  std::string WriteErrorFileIfFailed();

  // What agents say. All but these are events as they are.
  template <typename Event>
  void Receive(uint32_t, const Event& event) {
    Dispatch(event);
  }
  void Receive(uint32_t host, const AgentReady& ready);
  void Receive(uint32_t host, CommandSeen& seen);
  void Receive(uint32_t host, const ConnectivityProbed& proven);
  void Receive(uint32_t host, const RelayMeasured& measured);
  void Receive(uint32_t host, const RelayOpen& message) { Relay(host, message); }
  void Receive(uint32_t host, const RelayData& message) { Relay(host, message); }
  void Receive(uint32_t host, const RelayClose& message) { Relay(host, message); }
  void Receive(uint32_t host, const RelayCredit& message) { Relay(host, message); }
  template <typename Message>
  void Relay(uint32_t host, const Message& message) {
    if (!IsUsed(host)) return;
    if (Status taken = relay_.Take(NumberOf(host), message); !taken.ok())
      hosts_[host]->Break(taken.message());
  }
  void Receive(uint32_t host, const AgentNote& note);
  void Receive(uint32_t host, const AgentWarning& warning);
  void Receive(uint32_t host, const WorkerStarted& started);
  void Receive(uint32_t host, const RankJoined& joined);
  void Receive(uint32_t host, const RanksJoined& joined) {
    ForEachRank(joined, options_.plan.size(), [&](RankJoined rank) { Receive(host, rank); });
  }
  void Receive(uint32_t host, const InputTaken& taken);
  void Receive(uint32_t host, PutKey& put);
  void OnTrouble(uint32_t host, uint64_t generation, const RankSilent& silent);
  void OnTrouble(uint32_t host, uint64_t generation, const RankEnding& ending);
  void OnTrouble(uint32_t host, uint64_t generation, const RankStopped& stopped);
  bool IsOn(uint32_t host, uint32_t rank) const;
  void Receive(uint32_t host, const WantKey& want);
  void Receive(uint32_t host, const TreeUp& batch);
  void Receive(uint32_t host, const TreeCut& cut);
  void Receive(uint32_t, const WorkerOutput&) {}  // OnOutput has it
  void Receive(uint32_t, const AgentGone&) {}     // OnHostEnd follows
  void Receive(uint32_t, const AgentPath&) {}     // its line has it
  void Receive(uint32_t host, const TimeTold& told);
  // The doctor asks for these.
  void Receive(uint32_t, const HostExam&) {}
  void Receive(uint32_t, const PairMeasured&) {}

  // What the job wants done. All but these are messages to every agent.
  template <typename Message>
  void Execute(const Message& message) {
    SendToAll(message);
  }
  void Execute(const UsePlan&);
  void Execute(const DismissHost& dismiss) { hosts_[dismiss.host]->Send(FinishJob{}); }
  void Execute(const ProveAddresses&);
  void Execute(const RelayRoutes& relay);
  void Execute(const StartWorkers&);
  void Execute(const BeginGeneration& begin);
  void Execute(const CutHost& cut) { hosts_[cut.host]->Cut(); }
  void Execute(const CutChannels&);
  void Execute(const NotifyUser& tell) {
    if (!tell.terminal_only || screen_.on_terminal()) screen_.Print(tell.sentence);
  }
  void Execute(const EndRun&);
  void SendToAll(const ToAgent& message);
  void SendDownTree();
  void GiveValue(uint32_t host, const KeyValue& entry);

  void AskTimeIfDue(uint32_t host);

  void Clear(uint32_t host);
  void EndRunWhenCleared();

  void ReadInput();
  void OnInput(std::string bytes);
  void HandleSignals();
  void WaitForSignals();
  void OnSignal(int signal);
  void ScheduleDeadline();
  void ScheduleHeartbeat();
  void LookForBrokenRoutes();

  std::string AddressesText() const;
  void FormTree();
  bool IsUsed(uint32_t host) const;        // by a rank, in the final plan
  uint32_t NumberOf(uint32_t host) const;  // its place in used_
  std::vector<uint32_t> PartnersOf(uint32_t host) const;
  uint32_t host_count() const { return static_cast<uint32_t>(hosts_.size()); }
  const std::string& NameOf(uint32_t host) const { return options_.plan.hosts[host]; }

  DriverOptions options_;
  const LogLevel log_level_;
  const TimePoint begun_ = SteadyNow();
  asio::io_context io_{1};
  asio::signal_set signals_;
  asio::steady_timer deadline_timer_, heartbeat_timer_;
  DriverStatusListener status_listener_{io_, [this] { return CountsOf(state_); }};
  JobState state_;
  ClockQuestions clock_questions_;
  SilentRoutes silent_routes_;
  KvTable directory_;  // readers are hosts
  std::vector<uint32_t>
      used_;  // the hosts with a rank; their places here are their numbers in the tree
  std::optional<TreeRoot> tree_;           // once the plan is final
  std::vector<std::string> tree_records_;  // by host, of those with others below them
  std::map<uint32_t, asio::steady_timer>
      cut_;  // hosts that lost their place in it: until they are given up
  std::vector<std::unique_ptr<AgentConnection>> hosts_;
  std::vector<std::unique_ptr<RemoteCleanup>> clearings_;
  std::set<std::string> skipped_;  // what the user was told of a hvdrun that is not run
  bool run_over_ = false;          // but for the clearings
  // Knows hosts by their places in used_.
  RelaySwitch relay_{
      [this](uint32_t number, const ToAgent& message) { hosts_[used_[number]]->Send(message); }};
  std::vector<uint32_t> free_ports_;   // by host
  std::vector<AgentFacts> facts_;      // by host
  std::vector<uint64_t> input_taken_;  // by host, of those that read it; empty: nobody does
  uint64_t input_allowed_ = 0, input_sent_ = 0;
  // Last: their threads post to io_.
  Screen screen_;
  std::unique_ptr<StdinReader> input_;
};

Driver::Driver(DriverOptions options, const ChannelFactory& make_channel)
    : options_(std::move(options)),
      log_level_(LogLevelOf(options_.settings)),
      signals_(io_),
      deadline_timer_(io_),
      heartbeat_timer_(io_),
      state_(options_.plan, JobOptionsOf(options_), options_.named_hosts),
      clock_questions_(options_.plan.hosts.size()),
      // A job that may lose its connections for a while may lose those between its hosts as long.
      silent_routes_(Seconds(std::max(options_.settings.heartbeat_timeout_seconds,
                                      options_.settings.driver_grace_seconds))),
      screen_(io_, options_.plan, options_.settings, options_.prefix,
              [this](uint32_t host, uint64_t bytes) { hosts_[host]->ReturnCredit(bytes); }) {
  uint64_t job = ParseJobId(options_.job_id).value_or(0);
  for (uint32_t host = 0; host < options_.plan.hosts.size(); ++host) {
    hosts_.push_back(std::make_unique<AgentConnection>(
        *this, host, job + host, make_channel(io_, host), HeartbeatOf(options_, host)));
    if (!options_.hosts[host].remote) state_.clocks[host] = HostClock::Ours();
  }
}

int Driver::Run() {
  HandleSignals();
  if (Status open = status_listener_.Open(options_.job_id); !open.ok())
    Verbose("hvdrun ps sees the ranks on this machine only: " + open.message());
  Info("job " + options_.job_id + ": " + PlanText(options_.plan));
  Dispatch(Begun{});
  for (auto& host : hosts_) host->Open();
  ScheduleHeartbeat();
  if (log_level_ > LogLevel::kInfo) BeginProgress();  // those tell more
  io_.run();
  input_.reset();
  signals_.clear();  // a job that waits for its reader can be interrupted
  const std::string last = Report(state_) + Hint() + WriteErrorFileIfFailed();
  screen_.Finish(last, EndedByItself(state_) ? kPatience : kOutputLimit);
  const int code = ExitCode(state_);
  return code != 0 ? code : screen_.exit_code();
}

void Driver::BeginProgress() {
  bool routes = state_.options.prove_addresses;  // there are hosts beyond this machine
  screen_.BeginProgress(routes ? [this] { return state_.stages.Counts(); } : Screen::HostCounts());
}

// What its command has to do with the failure of a rank.
std::string Driver::Hint() const {
  if (!state_.failure || state_.failure->kind != JobFailure::Kind::kRank) return "";
  const std::optional<uint32_t> cause = FirstFailedRank(state_);
  return cause ? FailureHint(options_.command, state_.ranks[*cause].last_stderr) : "";
}

// The sentence about it.
std::string Driver::WriteErrorFileIfFailed() {
  const std::string& path = options_.settings.error_file;
  if (path.empty() || !state_.failure) return "";
  Status status = WriteErrorFile(path, ErrorJson(state_, options_.job_id, options_.command));
  return status.ok() ? "" : "hvdrun: " + status.message() + "\n";
}

void Driver::Print(LogLevel level, const std::string& sentence) {
  if (level >= log_level_) screen_.Print(sentence);
}

// ---- events and actions

void Driver::Dispatch(const JobEvent& event) {
  Decision decision = Step(state_, event, SteadyNow());
  if (!decision.reason.empty())
    Print(decision.detail ? LogLevel::kDebug : LogLevel::kInfo, decision.reason);
  for (const JobAction& action : decision.actions)
    std::visit([this](const auto& a) { Execute(a); }, action);
  if (state_.phase == JobPhase::kOpening) screen_.HostsChanged();
  ScheduleDeadline();
}

void Driver::OnOutput(uint32_t host, const WorkerOutputView& output, size_t message_bytes) {
  const std::vector<Placement>& ranks = options_.plan.ranks;
  if (output.rank >= ranks.size() || ranks[output.rank].host != host)
    return hosts_[host]->Break("its agent speaks of a rank that it does not have");
  screen_.Print(host, output, message_bytes);
}

void Driver::OnMessage(uint32_t host, ToDriver message) {
  if (Status may = CheckStraight(host, message); !may.ok())
    return hosts_[host]->Break(may.message());
  std::visit([&](auto& m) { Receive(host, m); }, message);
  SendDownTree();
}

// A host's own stream carries messages about its own ranks, and about none before it was told to
// start some.
Status Driver::CheckStraight(uint32_t host, const ToDriver& message) {
  static const HostOfRank kNone;
  if (state_.phase == JobPhase::kOpening || !IsUsed(host)) return CheckSpeaker(message, {}, kNone);
  const uint32_t number = NumberOf(host);
  return CheckSpeaker(message, {number, number + 1}, tree_->host_of_rank());
}

void Driver::OnHostAway(uint32_t host, const std::string& reason) {
  screen_.Print(AwayText(NameOf(host), reason, HeartbeatOf(options_, host).grace));
  ScheduleHeartbeat();  // the next tick is earlier
}

void Driver::OnHostBack(uint32_t host, Duration away) {
  screen_.Print(BackText(NameOf(host), away));
}

// Once for all hosts where it is the same.
void Driver::OnHvdrunSkipped(uint32_t host, const std::string& what) {
  const std::string sentence = "host " + NameOf(host) + ": " + what + "; " + kSkipAdvice;
  if (!skipped_.insert(what).second) return Verbose(sentence);
  screen_.Print(sentence);
}

void Driver::OnHostEnd(uint32_t host, const std::string& reason) {
  if (hosts_[host]->left_alone()) Clear(host);
  if (IsUsed(host)) relay_.HostGone(NumberOf(host));
  if (reason.empty()) return Dispatch(AgentFinished{host});
  Dispatch(AgentLost{host, reason});
}

void Driver::Receive(uint32_t host, const AgentNote& note) {
  Verbose("host " + NameOf(host) + ": " + note.text);
}

// Departures of ranks on different hosts are put in order by it.
void Driver::AskTimeIfDue(uint32_t host) {
  if (std::optional<AskTime> question = clock_questions_.Next(host, SteadyNow()))
    hosts_[host]->Send(*question);
}

void Driver::Receive(uint32_t host, const TimeTold& told) {
  if (std::optional<ClockReading> reading = clock_questions_.Take(host, told, SteadyNow()))
    Dispatch(ClockRead{host, *reading});
  AskTimeIfDue(host);
}

void Driver::Receive(uint32_t host, const AgentWarning& warning) {
  constexpr size_t kMostShown = 400;
  screen_.Print("host " + NameOf(host) + ": " + Printable(warning.text, kMostShown));
}

void Driver::Receive(uint32_t, const WorkerStarted& started) {
  screen_.WorkerStarted();
  Dispatch(started);
}

void Driver::Receive(uint32_t, const RankJoined& joined) {
  screen_.RankJoined(joined.rank);
  Dispatch(joined);
}

void Driver::SendToAll(const ToAgent& message) {
  for (auto& host : hosts_) host->Send(message);
}

void Driver::Execute(const CutChannels&) {
  if (state_.phase == JobPhase::kFinishing) screen_.NoteUnsent();
  for (uint32_t host = 0; host < host_count(); ++host) {
    if (hosts_[host]->away())
      screen_.Print(UntoldText(NameOf(host), HeartbeatOf(options_, host).grace));
    hosts_[host]->Cut();
  }
}

// Beside the end of the job: the other hosts do not wait for it.
void Driver::Clear(uint32_t host) {
  std::unique_ptr<HostChannel> side_command = hosts_[host]->MakeSideCommand(SideCommand::kClear);
  if (!side_command) return;
  size_t number = clearings_.size();
  auto on_over = [this, host, number] {
    const std::string& reason = clearings_[number]->reason();
    if (reason.empty()) {
      Verbose("host " + NameOf(host) + ": what was left of the job there is ended");
    } else {
      screen_.Print(UnclearedText(NameOf(host), reason));
    }
    EndRunWhenCleared();
  };
  clearings_.push_back(
      std::make_unique<RemoteCleanup>(std::move(side_command), SteadyNow(), on_over));
  clearings_.back()->Open();
  ScheduleHeartbeat();
}

void Driver::Execute(const EndRun&) {
  if (!run_over_)
    Info("the job ended with exit code " + std::to_string(ExitCode(state_)) + " after " +
         SecondsText(SteadyNow() - begun_));
  run_over_ = true;
  EndRunWhenCleared();
}

void Driver::EndRunWhenCleared() {
  bool cleared =
      std::all_of(clearings_.begin(), clearings_.end(), [](const auto& c) { return c->over(); });
  if (run_over_ && cleared) io_.stop();
}

// ---- hosts that get ready

void Driver::Receive(uint32_t host, const AgentReady& ready) {
  Verbose("agent on host " + NameOf(host) + ": pid " + std::to_string(ready.pid) + ", warden " +
          std::to_string(ready.warden_pid) + "; cleanup is guaranteed by: " + ready.means);
  if (ready.version != HVD_VERSION) {
    return hosts_[host]->Break("it has hvdrun " + Printable(ready.version) +
                               " and this is hvdrun " HVD_VERSION
                               "; install the same version there");
  }
  if (options_.hosts[host].remote) clock_questions_.Begin(host);
  AskTimeIfDue(host);
  free_ports_.resize(hosts_.size());
  free_ports_[host] = ready.free_port;
  facts_.resize(hosts_.size());
  facts_[host].identity = ready.identity;
  facts_[host].slots = ready.slots;
  // A host that is alone has nobody to differ from.
  if (host_count() == 1) return Dispatch(AgentIsReady{host, facts_[host]});
  hosts_[host]->Send(
      LookAtCommand{options_.command.at(0), PathOfWorkers(options_), options_.directory});
}

void Driver::Receive(uint32_t host, CommandSeen& seen) {
  facts_.resize(hosts_.size());
  facts_[host].command = std::move(seen.facts);
  Dispatch(AgentIsReady{host, facts_[host]});
}

void Driver::Execute(const UsePlan&) {
  options_.plan = state_.plan;
  screen_.UsePlan(options_.plan);
  Info("agents run on all hosts: " + PlanText(options_.plan));
}

// Once it is known which hosts have a rank. Who proves addresses has some; only then can agents
// reach each other.
void Driver::FormTree() {
  if (tree_) return;
  used_ = options_.plan.UsedHosts();
  const auto count = static_cast<uint32_t>(used_.size());
  const auto radix = static_cast<uint32_t>(options_.settings.tree_radix);
  tree_.emplace(count, options_.several_machines() ? radix : count,
                HostsOf(options_.plan.Layout(), options_.plan.size()));
}

// "a at 10.0.0.1, b at 10.0.0.2", of the first hosts.
std::string Driver::AddressesText() const {
  std::vector<std::string> places;
  for (uint32_t host : used_) {
    const std::vector<std::string>& known = options_.hosts[host].addresses;
    places.push_back(NameOf(host) + (known.empty() ? "" : " at " + known.front()));
  }
  return HostNames(places);
}

bool Driver::IsUsed(uint32_t host) const {
  return std::binary_search(used_.begin(), used_.end(), host);
}

uint32_t Driver::NumberOf(uint32_t host) const {
  return static_cast<uint32_t>(std::lower_bound(used_.begin(), used_.end(), host) - used_.begin());
}

// The hosts with which one proves itself.
std::vector<uint32_t> Driver::PartnersOf(uint32_t host) const {
  const uint32_t number = NumberOf(host);
  if (number == used_.size() || used_[number] != host) return {};
  std::vector<uint32_t> partners = ProbePartners(number, static_cast<uint32_t>(used_.size()));
  if (!tree_->flat()) {
    const std::vector<uint32_t> neighbours = TreeNeighbours(tree_->PlaceOf(number));
    partners.insert(partners.end(), neighbours.begin(), neighbours.end());
    std::sort(partners.begin(), partners.end());
    partners.erase(std::unique(partners.begin(), partners.end()), partners.end());
  }
  for (uint32_t& partner : partners) partner = used_[partner];
  return partners;
}

void Driver::Execute(const ProveAddresses&) {
  FormTree();
  for (uint32_t host : used_) {
    ProbeConnectivity question;
    question.job_key = options_.job_key;
    question.host = NumberOf(host);
    for (uint32_t other : PartnersOf(host)) {
      question.others.push_back(NumberOf(other));
      question.names.push_back(NameOf(other));
    }
    question.interfaces = options_.interfaces;
    question.first_port = options_.first_port;
    question.last_port = options_.last_port;
    question.passes_on = tree_->PlaceOf(question.host).below.empty() ? 0 : 1;
    hosts_[host]->Send(question);
  }
}

// Where the others reached a host is where its ranks will listen.
void Driver::Receive(uint32_t host, const ConnectivityProbed& proven) {
  std::vector<uint32_t> others = PartnersOf(host);
  tree_records_.resize(hosts_.size());
  tree_records_[host] = proven.tree_record;
  for (size_t i = 0; i < std::min(others.size(), proven.addresses.size()); ++i) {
    const std::string& address = proven.addresses[i];
    std::vector<std::string>& known = options_.hosts[others[i]].addresses;
    if (address.empty() || std::find(known.begin(), known.end(), address) != known.end()) continue;
    known.push_back(address);
    Verbose("host " + NameOf(others[i]) + " is reached at " + address + " by " + NameOf(host));
  }
  HostProven event{host, proven.trouble, {}};
  for (size_t i = 0; i < std::min(others.size(), proven.reasons.size()); ++i) {
    if (proven.reasons[i].empty()) continue;
    event.blocked.push_back({host, others[i], proven.reasons[i], {}, false});
    Verbose("host " + NameOf(host) + ": " + proven.reasons[i]);
  }
  Dispatch(event);
}

void Driver::Execute(const RelayRoutes& relay) {
  std::map<uint32_t, std::vector<uint32_t>> blocked;  // by host; numbers of others
  for (const auto& [from, to] : relay.routes) {
    relay_.Allow(NumberOf(from), NumberOf(to));
    blocked[from].push_back(NumberOf(to));
  }
  for (const auto& [host, others] : blocked) hosts_[host]->Send(UseRelay{NumberOf(host), others});
  const auto count = static_cast<uint32_t>(used_.size());
  // None: its agents would not reach each other either.
  tree_.emplace(count, count, HostOfRank(tree_->host_of_rank()));
}

void Driver::Receive(uint32_t host, const RelayMeasured& measured) {
  if (measured.host < used_.size()) Dispatch(RouteMeasured{host, used_[measured.host], measured});
}

void Driver::Execute(const StartWorkers&) {
  screen_.HostsReady();
  if (options_.several_machines()) {
    const std::vector<std::string>& first = options_.hosts[0].addresses;
    options_.master_address = first.empty() ? NameOf(0) : first[0];
    options_.master_port = free_ports_[0];
    for (DriverHost& host : options_.hosts) {  // that nobody reaches: its agent does
      if (host.addresses.empty()) host.addresses = {"127.0.0.1"};
    }
  }
  FormTree();
  if (options_.several_machines()) Info("the hosts reach each other: " + AddressesText());
  Info("starting " + Printable(CommandText(options_.command), kMaxShownPath));
  const StartJob common = CommonStart(options_);
  std::vector<std::vector<Placement>> slots = options_.plan.ByHost();
  for (uint32_t number = 0; number < used_.size(); ++number) {
    const uint32_t host = used_[number];
    StartJob start = StartOn(host, std::move(slots[host]), options_, common);
    if (!tree_->flat()) {
      const TreePlace place = tree_->PlaceOf(number);
      start.tree_host = number;
      start.tree_hosts = static_cast<uint32_t>(used_.size());
      start.tree_radix = static_cast<uint32_t>(options_.settings.tree_radix);
      if (place.parent) start.tree_above = tree_records_[used_[*place.parent]];
    }
    hosts_[used_[number]]->Send(start);
  }
  ReadInput();
}

// ---- the generation's directory

void Driver::Execute(const BeginGeneration& begin) {
  directory_.Begin(begin.generation);
  if (tree_->flat()) return SendToAll(begin);
  tree_->ToAll(begin);
}

// Breaks the host that names too many.
bool Driver::MayNameKey(uint32_t host, uint64_t generation, const std::string& key) {
  if (generation != directory_.generation() || !IsUsed(host)) return false;
  const TreeBlock hosts = tree_->PlaceOf(NumberOf(host)).block;
  if (directory_.Admits(host, key, MostKeys(hosts, tree_->host_of_rank()))) return true;
  hosts_[host]->Break("its agent names more keys of the directory than its hosts have use for");
  return false;
}

void Driver::Receive(uint32_t host, PutKey& put) {
  if (put.generation != directory_.generation() || !IsUsed(host)) return;
  if (std::optional<Trouble> trouble = DecodeTrouble(put.key, put.value)) {
    return std::visit([&](const auto& t) { OnTrouble(host, put.generation, t); }, *trouble);
  }
  if (!MayNameKey(host, put.generation, put.key)) return;
  KeyValue entry{put.generation, put.key, std::move(put.value)};
  for (uint32_t reader : directory_.Put(entry.key, entry.value)) GiveValue(reader, entry);
}

// Nobody speaks of the ranks of another host.
bool Driver::IsOn(uint32_t host, uint32_t rank) const {
  return rank < options_.plan.ranks.size() && options_.plan.ranks[rank].host == host;
}

void Driver::OnTrouble(uint32_t host, uint64_t generation, const RankSilent& silent) {
  if (!IsOn(host, silent.rank) || silent.peer >= options_.plan.ranks.size()) return;
  silent_routes_.Note(silent, generation, SteadyNow());
  ScheduleHeartbeat();
}

void Driver::OnTrouble(uint32_t host, uint64_t generation, const RankEnding& ending) {
  if (IsOn(host, ending.rank)) Dispatch(GenerationEnding{generation, ending});
}

void Driver::OnTrouble(uint32_t host, uint64_t, const RankStopped& stopped) {
  if (IsOn(host, stopped.rank)) Dispatch(stopped);
}

void Driver::LookForBrokenRoutes() {
  const auto heard = [this](uint32_t rank) {
    return hosts_[options_.plan.ranks[rank].host]->heard();
  };
  const std::optional<SilentRoute> broken = silent_routes_.Broken(SteadyNow(), heard);
  if (!broken) return;
  silent_routes_.Clear();
  Dispatch(*broken);
}

void Driver::Receive(uint32_t host, const WantKey& want) {
  if (!MayNameKey(host, want.generation, want.key)) return;
  if (const std::string* value = directory_.Find(want.key)) {
    GiveValue(host, {want.generation, want.key, *value});
  } else {
    directory_.Await(host, want.key);
  }
}

// Before the generations the tree does not stand yet.
void Driver::GiveValue(uint32_t host, const KeyValue& entry) {
  if (entry.generation == 0 || tree_->flat()) return hosts_[host]->Send(entry);
  tree_->ToOne(NumberOf(host), entry);
}

// ---- the tree

// What a message brought forth goes out together.
void Driver::SendDownTree() {
  if (!tree_) return;
  for (auto& [number, part] : tree_->TakeDown()) hosts_[used_[number]]->Send(std::move(part));
}

void Driver::Receive(uint32_t host, const TreeUp& batch) {
  if (!tree_ || tree_->flat() || state_.phase == JobPhase::kOpening)
    return hosts_[host]->Break("its agent speaks of a tree where there is none");
  auto messages = tree_->Open(NumberOf(host), batch);
  if (!messages.ok()) return hosts_[host]->Break(messages.status().message());
  for (auto& [from, message] : *messages)
    std::visit([&, host = used_[from]](auto& m) { Receive(host, m); }, message);
}

// Mostly because the host above it is gone, which will be heard of; when it is not, the two have
// lost each other.
void Driver::Receive(uint32_t host, const TreeCut& cut) {
  if (!tree_ || tree_->flat() || !tree_->Cut(NumberOf(host))) return;
  Verbose("host " + NameOf(host) + " lost its place in the tree: " + cut.reason);
  asio::steady_timer& timer = cut_.emplace(host, io_).first->second;
  timer.expires_after(Seconds(options_.settings.heartbeat_timeout_seconds + 1));
  timer.async_wait([this, host, reason = cut.reason](const asio::error_code& error) {
    if (error) return;
    hosts_[host]->Break("it lost the host over which messages reach it: " + reason +
                        "; a --tree-radix that is not less than the number of hosts does without");
  });
}

// ---- stdin

// Once the agents know who reads it: what came earlier would go nowhere. Rank 0 is on the first
// host: ranks are handed out host by host.
void Driver::ReadInput() {
  StdinTo to = StartJobFor(options_, 0).stdin_to;
  if (to == StdinTo::kNone) return;
  input_taken_.resize(to == StdinTo::kRank0 ? 1 : hosts_.size(), kReadsNothing);
  for (uint32_t host : options_.plan.UsedHosts()) {
    if (host < input_taken_.size()) input_taken_[host] = 0;
  }
  input_allowed_ = kInputWindow;
  input_ = std::make_unique<StdinReader>(STDIN_FILENO, kInputWindow, [this](std::string bytes) {
    asio::post(io_, [this, bytes = std::move(bytes)]() mutable { OnInput(std::move(bytes)); });
  });
}

void Driver::OnInput(std::string bytes) {
  if (options_.stdin_terminal) screen_.Typed(bytes);
  input_sent_ += bytes.size();
  WorkerInput input{std::move(bytes)};
  for (size_t host = 0; host < input_taken_.size(); ++host) hosts_[host]->Send(input);
}

// The slowest host says how much more is read.
void Driver::Receive(uint32_t host, const InputTaken& taken) {
  if (host >= input_taken_.size() || input_taken_[host] == kReadsNothing) return;
  if (taken.bytes > input_sent_ - input_taken_[host])
    return hosts_[host]->Break("its agent says that its workers read more than they were sent");
  input_taken_[host] += taken.bytes;
  uint64_t allowed = *std::min_element(input_taken_.begin(), input_taken_.end()) + kInputWindow;
  if (allowed > input_allowed_) input_->Allow(allowed - std::exchange(input_allowed_, allowed));
}

// ---- signals and timers

// A signal that was ignored when hvdrun began (nohup) stays so.
void Driver::HandleSignals() {
  for (int signal : {SIGINT, SIGTERM, SIGHUP, SIGTSTP, SIGCONT}) {
    struct sigaction inherited {};
    if (::sigaction(signal, nullptr, &inherited) == 0 && inherited.sa_handler != SIG_IGN)
      signals_.add(signal);
  }
  WaitForSignals();
}

void Driver::WaitForSignals() {
  signals_.async_wait([this](const asio::error_code& error, int signal) {
    if (error) return;
    OnSignal(signal);
    WaitForSignals();
  });
}

void Driver::OnSignal(int signal) {
  if (run_over_ && signal != SIGCONT && signal != SIGTSTP) return io_.stop();
  if (signal == SIGCONT) return Dispatch(Resumed{});
  if (signal != SIGTSTP) return Dispatch(Interrupted{signal});
  Dispatch(Paused{});
  ::raise(SIGSTOP);  // here the shell takes over, until it says SIGCONT
}

void Driver::ScheduleDeadline() {
  std::optional<TimePoint> next = state_.NextTick();
  if (!next) {
    deadline_timer_.cancel();
    return;
  }
  deadline_timer_.expires_at(*next);
  deadline_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) Dispatch(Tick{});
  });
}

void Driver::ScheduleHeartbeat() {
  TimePoint next = TimePoint::max();
  for (const auto& host : hosts_) next = std::min(next, host->NextTick());
  for (const auto& clearing : clearings_) next = std::min(next, clearing->due());
  next = std::min(next, silent_routes_.NextLook(SteadyNow()));
  heartbeat_timer_.expires_at(next);
  heartbeat_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    for (auto& host : hosts_) host->Tick();
    for (uint32_t host = 0; host < host_count(); ++host) AskTimeIfDue(host);
    LookForBrokenRoutes();
    for (size_t i = 0; i < clearings_.size(); ++i) clearings_[i]->Tick(SteadyNow());
    ScheduleHeartbeat();
  });
}

}  // namespace

bool DriverOptions::several_machines() const {
  const std::vector<uint32_t> used = plan.UsedHosts();
  bool remote =
      std::any_of(used.begin(), used.end(), [&](uint32_t host) { return hosts[host].remote; });
  return remote && used.size() > 1;
}

int RunJob(DriverOptions options, const ChannelFactory& make_channel) {
  ::signal(SIGPIPE, SIG_IGN);
  try {
    Driver driver(std::move(options), make_channel);
    return driver.Run();
  } catch (const std::exception& failure) {  // out of descriptors, threads or memory
    WriteAll(STDERR_FILENO, std::string("hvdrun: it cannot go on, so all ranks were ended: ") +
                                MeaningOf(failure) + "\n");
    return kCannotGoOn;
  }
}

}  // namespace hvd
