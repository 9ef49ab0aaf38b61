#include "launcher/job/membership.h"

#include <algorithm>
#include <csignal>
#include <set>
#include <utility>

#include "launcher/job/describe_end.h"
#include "launcher/text/seconds_text.h"
#include "runtime/segment/job_page.h"

namespace hvd {
namespace {

// A job that has enough slots waits so long for hosts that are on their way, so that it does not
// form a generation without them and another one with them.
constexpr Duration kHostsPatience = std::chrono::seconds(3);
// A rank that joins waits so long for others that still start, for the same reason.
constexpr Duration kGrowthPatience = std::chrono::seconds(5);
// A script that has not called hvd.init() so long after one of its processes went is taken for one
// that never does.
constexpr Duration kNativePatience = std::chrono::seconds(10);
constexpr Duration kFirstReport = std::chrono::seconds(10);
constexpr Duration kLaterReports = std::chrono::seconds(30);

std::string CountText(size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

bool IsSurvivor(const Candidate& candidate) { return candidate.last_rank.has_value(); }

}  // namespace

// ---- what there is

bool Membership::IsAlive(uint32_t worker) const {
  const RankRecord& record = state_.ranks[worker];
  return record.phase != RankPhase::kEnded && !record.lost;
}

std::vector<uint32_t> Membership::AliveWorkers() const {
  std::vector<uint32_t> alive;
  for (uint32_t worker = 0; worker < state_.ranks.size(); ++worker) {
    if (IsAlive(worker)) alive.push_back(worker);
  }
  return alive;
}

std::vector<uint32_t> Membership::StayingWorkers() const {
  std::vector<uint32_t> staying = AliveWorkers();
  std::erase_if(staying, [this](uint32_t worker) { return state_.ranks[worker].leaving; });
  return staying;
}

std::string Membership::WorkerText(uint32_t worker) const {
  const RankRecord& record = state_.ranks[worker];
  return "rank " + std::to_string(record.rank) + " (pid " + std::to_string(record.pid) + ") on " +
         state_.plan.hosts[state_.plan.ranks[worker].host];
}

Candidate Membership::CandidateOf(uint32_t worker) const {
  const RankRecord& record = state_.ranks[worker];
  const Placement& place = state_.plan.ranks[worker];
  return {worker, place.host, place.local_rank,
          record.member ? std::optional(record.rank) : std::nullopt};
}

uint32_t Membership::Needed() const {
  return state_.generation == 0 && elastic_.restarts == 0 ? elastic_.limits.np
                                                          : elastic_.limits.min_np;
}

void Membership::FailJob(JobFailure failure) {
  if (!failure_) failure_ = std::move(failure);
}

void Membership::FailJob(std::string reason) {
  JobFailure failure;
  failure.kind = JobFailure::Kind::kInternal;
  failure.reason = std::move(reason);
  FailJob(std::move(failure));
}

// ---- hosts

void Membership::OnListed(const HostsListed& listed) {
  if (!listed.trouble.empty()) {
    // Without any answer there is nothing to go on with.
    if (!elastic_.listed_once) return FailJob(listed.trouble);
    if (elastic_.source_trouble != listed.trouble)
      Tell(listed.trouble + "; the job goes on with the hosts that it has");
    elastic_.source_trouble = listed.trouble;
    return;
  }
  elastic_.source_trouble.clear();
  elastic_.listed_once = true;
  for (ElasticHost& host : elastic_.hosts) host.listed = false;
  for (const HostSlots& listing : listed.hosts) {
    const std::optional<uint32_t> known = LiveHostOf(listing);
    if (!known) continue;
    ElasticHost& host = elastic_.hosts[*known];
    host.listed = true;
    host.listing = listing;
    if (listing.slots_told) host.slots = listing.slots;
  }
  elastic_.listing = listed.hosts;
}

std::optional<uint32_t> Membership::LiveHostOf(const HostSlots& listing) const {
  for (uint32_t host = 0; host < elastic_.hosts.size(); ++host) {
    const ElasticHost& known = elastic_.hosts[host];
    if (!known.gone && known.listing.host == listing.host && known.listing.port == listing.port)
      return host;
  }
  return std::nullopt;
}

uint32_t Membership::AddHost(const HostSlots& listing) {
  const auto host = static_cast<uint32_t>(elastic_.hosts.size());
  ElasticHost added;
  added.listing = listing;
  added.slots = listing.slots_told ? listing.slots : 0;
  elastic_.hosts.push_back(added);
  state_.plan.hosts.push_back(NamesOf({listing}).front());
  state_.host_open.push_back(true);
  state_.dismissed.push_back(false);
  state_.facts.emplace_back();
  state_.clocks.push_back(listing.remote ? HostClock() : HostClock::Ours());
  state_.stages.Add(now_);
  return host;
}

void Membership::OpenListedHosts() {
  if (elastic_.any_finished || elastic_.stop_asked) return;
  for (const HostSlots& listing : elastic_.listing) {
    if (LiveHostOf(listing) || !elastic_.ledger.MayUse(listing.host, now_)) continue;
    if (listing.slots_told && listing.slots == 0) continue;
    const uint32_t host = AddHost(listing);
    Do(OpenHost{host, listing});
    Because("host " + listing.host + " is opened");
  }
}

void Membership::OnAgentReady(uint32_t host, const AgentFacts& facts) {
  ElasticHost& known = elastic_.hosts[host];
  state_.stages.Enter(host, HostStage::kReady, now_);
  state_.facts[host] = facts;
  known.ready = true;
  known.trouble.clear();
  if (!known.listing.slots_told) known.slots = facts.slots;
}

void Membership::OnHostGone(uint32_t host, const std::string& reason) {
  ElasticHost& known = elastic_.hosts[host];
  const bool was_wanted = !std::exchange(known.gone, true);
  known.trouble = reason;
  const std::string name = "host " + state_.plan.hosts[host];
  std::vector<uint32_t> taken;
  if (!state_.dismissed[host] && was_wanted) {
    elastic_.ledger.NoteHostFailure(known.listing.host, now_);
    for (uint32_t worker : AliveWorkers()) {
      if (state_.plan.ranks[worker].host == host) taken.push_back(worker);
    }
    if (taken.empty()) {
      Tell(name + (known.ready ? " was lost: " : " cannot be used: ") + reason);
    } else {
      Tell(name + " was lost: " + reason + "; " +
           CountText(taken.size(), "rank is gone with it", "ranks are gone with it"));
    }
    JobFailure failure;
    failure.kind = JobFailure::Kind::kHost;
    failure.host = host;
    failure.reason = reason;
    if (!GoesOnWithoutAll(taken)) FailJob(std::move(failure));
  }
  for (uint32_t worker = 0; worker < state_.ranks.size(); ++worker) {
    if (state_.plan.ranks[worker].host != host) continue;
    RankRecord& record = state_.ranks[worker];
    if (record.phase != RankPhase::kEnded && record.in_generation != 0) {
      Do(BreakGeneration{record.in_generation, name + " was lost"});
      OnLeft(worker);
    }
    record.in_generation = 0;
    // One that was lost before its host has no other end to come.
    if (record.lost && record.phase != RankPhase::kEnded) record.forgiven = true;
    state_.Becomes(record, RankPhase::kEnded);
    state_.Waits(record, false);
  }
  if (!taken.empty()) NoteIncomplete();
}

// The workers of a host that was lost: one failure.
bool Membership::GoesOnWithoutAll(const std::vector<uint32_t>& workers) {
  bool counted = false;
  for (uint32_t worker : workers) {
    RankRecord& record = state_.ranks[worker];
    if (!counted && !GoesOnWithout(worker, FailureKind::kHostLost)) return false;
    counted = counted || !record.leaving;
    record.forgiven = true;
  }
  return true;
}

bool Membership::HostsOnTheirWay() const {
  return std::ranges::any_of(elastic_.hosts, [](const ElasticHost& host) {
    return host.listed && !host.gone && !host.ready;
  });
}

// Hosts that left the list and have no worker any more.
void Membership::DropUnusedHosts() {
  std::set<uint32_t> used;
  for (uint32_t worker = 0; worker < state_.ranks.size(); ++worker) {
    if (state_.ranks[worker].phase != RankPhase::kEnded)
      used.insert(state_.plan.ranks[worker].host);
  }
  for (uint32_t host = 0; host < elastic_.hosts.size(); ++host) {
    ElasticHost& known = elastic_.hosts[host];
    if (known.listed || known.gone || used.contains(host)) continue;
    known.gone = true;
    state_.dismissed[host] = true;
    state_.dismissed_by = now_ + state_.options.finish_limit;
    Do(DismissHost{host});
    if (!known.ready) Do(CutHost{host});
  }
}

// ---- seats and workers

std::vector<Membership::Seat> Membership::FreeSeats() const {
  std::set<std::pair<uint32_t, uint32_t>> taken;
  for (uint32_t worker = 0; worker < state_.ranks.size(); ++worker) {
    const Placement& place = state_.plan.ranks[worker];
    if (state_.ranks[worker].phase != RankPhase::kEnded)
      taken.emplace(place.host, place.local_rank);
  }
  std::vector<Seat> free;
  for (uint32_t host = 0; host < elastic_.hosts.size(); ++host) {
    const ElasticHost& known = elastic_.hosts[host];
    if (!known.usable()) continue;
    for (uint32_t seat = 0; seat < known.slots; ++seat) {
      if (!taken.contains({host, seat}) && elastic_.ledger.MayUse(known.listing.host, seat, now_))
        free.push_back({host, seat});
    }
  }
  return free;
}

// Workers may be added: at the start, in the place of lost ones, and beside ranks that will let
// them in.
bool Membership::MayAdd() const {
  if (elastic_.any_finished || elastic_.stop_asked || elastic_.restart) return false;
  const bool none_started = StayingWorkers().empty();
  return none_started || elastic_.any_joined;
}

// Spares are started once the ranks train. A spare is a worker that waits in hvd.init() until a
// place is free.
size_t Membership::MostWorkers() const {
  return elastic_.limits.max_np + (elastic_.running ? elastic_.limits.spares : 0);
}

void Membership::FillSeats() {
  const std::optional<TimePoint> enough_since = std::exchange(elastic_.enough_since, std::nullopt);
  if (!MayAdd()) return;
  const size_t staying = StayingWorkers().size();
  const size_t most = MostWorkers();
  const size_t with_slot = CountWithSlot();
  if (with_slot >= most) return;
  std::vector<Seat> seats = FreeSeats();
  if (seats.empty()) return;
  // The first start, or one after all are gone: with what is needed, and what is about to come.
  if (staying == 0) {
    if (seats.size() < Needed()) return;
    const TimePoint since = enough_since.value_or(now_);
    const bool full = seats.size() >= elastic_.limits.max_np;
    if (!full && HostsOnTheirWay() && now_ < since + kHostsPatience) {
      elastic_.enough_since = since;
      return;
    }
  }
  seats.resize(std::min(seats.size(), most - with_slot));
  StartOn(seats);
}

void Membership::StartOn(const std::vector<Seat>& seats) {
  std::set<uint32_t> added;
  std::vector<Candidate> candidates;
  for (uint32_t worker : StayingWorkers()) candidates.push_back(CandidateOf(worker));
  for (const Seat& seat : seats) {
    const auto worker = static_cast<uint32_t>(state_.ranks.size());
    state_.ranks.emplace_back();
    state_.plan.ranks.push_back({worker, seat.host, seat.seat, 0, 0, 0});
    candidates.push_back(CandidateOf(worker));
    added.insert(worker);
  }
  const Generation expected = ArrangeRanks(std::move(candidates));
  StartMembers start{{}, expected.size(), expected.homogeneous, elastic_.restarts};
  for (const Member& member : expected.members) {
    if (!added.contains(member.worker)) continue;
    state_.ranks[member.worker].rank = member.place.rank;
    start.members.push_back(member);
  }
  Because("starting " + CountText(start.members.size(), "worker", "workers"));
  if (state_.phase == JobPhase::kOpening) {
    state_.phase = JobPhase::kStarting;
    state_.deadline = now_ + state_.options.start_timeout;
  }
  elastic_.time.NoteStart(now_);
  Do(std::move(start));
}

bool Membership::HasSlot(uint32_t worker) const {
  const Placement& place = state_.plan.ranks[worker];
  const ElasticHost& host = elastic_.hosts[place.host];
  return host.listed && place.local_rank < host.slots;
}

size_t Membership::CountWithSlot() const {
  return static_cast<size_t>(
      std::ranges::count_if(AliveWorkers(), [this](uint32_t worker) { return HasSlot(worker); }));
}

// A worker leaves when its slot is no longer there and enough others could go on without it: ranks,
// and workers that wait to become one. So one that is still starting does not replace any yet.
void Membership::MarkLeaving() {
  std::vector<uint32_t> without_slot;
  size_t able = 0;
  for (uint32_t worker : AliveWorkers()) {
    RankRecord& record = state_.ranks[worker];
    if (!record.dismissed) record.leaving = false;
    if (!HasSlot(worker)) {
      without_slot.push_back(worker);
    } else {
      able += record.member || record.waiting || state_.generation == 0;
    }
  }
  if (able < elastic_.limits.min_np) return;
  for (uint32_t worker : without_slot) state_.ranks[worker].leaving = true;
}

// A worker went before any rank has called hvd.init(). If none does soon, the script knows of no
// generations, and the others wait for that worker in vain.
void Membership::NoteIncomplete() {
  if (!elastic_.any_joined && !elastic_.incomplete_since) elastic_.incomplete_since = now_;
}

void Membership::RestartIfIncomplete() {
  if (!elastic_.incomplete_since || elastic_.any_finished || elastic_.stop_asked) return;
  if (now_ < *elastic_.incomplete_since + kNativePatience) return;
  RestartAll("a rank is no longer there");
}

// ---- losses

// Ranks of one generation that die are one failure: most of the others are consequences of the
// first. A worker that is not in it yet fails for itself.
bool Membership::SpendOn(uint32_t worker, FailureKind kind) {
  const RankRecord& record = state_.ranks[worker];
  const bool consequence = record.is_consequence || kind == FailureKind::kConsequence;
  if (!record.member && !consequence) return elastic_.budget.Spend(now_);
  if (elastic_.failed_generation == state_.generation) return true;
  elastic_.failed_generation = state_.generation;
  return elastic_.budget.Spend(now_);
}

bool Membership::GoesOnWithout(uint32_t worker, FailureKind kind) {
  RankRecord& record = state_.ranks[worker];
  if (elastic_.any_finished || kind == FailureKind::kUserError) return false;
  if (record.leaving || elastic_.restart || elastic_.stop_asked) {
    record.forgiven = true;
    return true;
  }
  if (kind != FailureKind::kHostLost) {
    const Placement& place = state_.plan.ranks[worker];
    elastic_.ledger.NoteSlotFailure(elastic_.hosts[place.host].listing.host, place.local_rank,
                                    now_);
  }
  if (!SpendOn(worker, kind)) {
    Tell("the job ends because it had more failures than --max-failures allows (" +
         elastic_.budget.Text(now_) + ")");
    return false;
  }
  record.forgiven = true;
  return true;
}

void Membership::OnNotStarted(uint32_t worker, const std::string& reason) {
  if (elastic_.any_finished || GoesOnWithout(worker, FailureKind::kCrash))
    return Tell(WorkerText(worker) + " could not be started: " + reason);
  JobFailure failure;
  failure.kind = JobFailure::Kind::kCommand;
  failure.rank = worker;
  failure.reason = WorkerText(worker) + " could not be started: " + reason;
  FailJob(std::move(failure));
}

// An exception of a script that never commits is the script's when it comes again: from another
// rank, or after all were started again.
FailureKind Membership::KindOf(uint32_t worker) {
  const RankRecord& record = state_.ranks[worker];
  elastic_.any_committed = elastic_.any_committed || record.commits > 0;
  const Placement& place = state_.plan.ranks[worker];
  return elastic_.kinds.KindOf({.end = *record.end,
                                .out_of_memory = record.out_of_memory,
                                .is_consequence = record.is_consequence,
                                .had_committed = elastic_.any_committed || !elastic_.any_joined,
                                .place = state_.plan.hosts[place.host] + ":" +
                                         std::to_string(place.local_rank) + ":" +
                                         std::to_string(elastic_.restarts),
                                .last_stderr = record.last_stderr});
}

void Membership::OnExited(uint32_t worker) {
  const RankRecord& record = state_.ranks[worker];
  OnLeft(worker);
  const bool stopped = elastic_.stop_asked && record.end->exit_code() == kStoppedExitCode;
  if (record.end->ok() && !record.lost) {
    elastic_.any_finished = elastic_.any_finished || !(record.leaving || record.dismissed);
    return;
  }
  const FailureKind kind = KindOf(worker);
  const bool restarting = elastic_.restart && kind != FailureKind::kUserError;
  if (stopped || record.leaving || record.dismissed || restarting) {
    state_.ranks[worker].forgiven = true;
    return;
  }
  if (!GoesOnWithout(worker, kind)) {
    state_.ranks[worker].forgiven = false;
    JobFailure failure;
    failure.rank = worker;
    return FailJob(std::move(failure));
  }
  const std::string end = WorkerText(worker) + " failed: " + DescribeCause(record);
  if (!elastic_.any_joined) return RestartAll(end);
  Tell(end + "; " + CountText(StayingWorkers().size(), "rank goes on", "ranks go on") +
       " without it (" + elastic_.budget.Text(now_) + ")");
}

// A script that knows of no generations cannot go on with fewer ranks or more: all of it is started
// again.
void Membership::RestartAll(const std::string& why) {
  if (elastic_.restart) return;
  elastic_.incomplete_since.reset();
  elastic_.restart = Restart{now_ + state_.options.terminate_grace};
  const std::vector<uint32_t> alive = AliveWorkers();
  Tell(why + "; all ranks are started again, because none has called hvd.init() (restart " +
       std::to_string(elastic_.restarts + 1) + ", " + elastic_.budget.Text(now_) + ")");
  for (uint32_t worker : alive) {
    state_.ranks[worker].forgiven = true;
    Do(SignalWorker{worker, SIGTERM});
  }
}

void Membership::GoOnWithRestart() {
  if (!elastic_.restart) return;
  if (state_.counts.ended == state_.ranks.size()) {
    elastic_.restart.reset();
    ++elastic_.restarts;
    elastic_.any_joined = false;
    return;
  }
  if (elastic_.restart->killing || now_ < elastic_.restart->kill_at) return;
  elastic_.restart->killing = true;
  for (uint32_t worker = 0; worker < state_.ranks.size(); ++worker) {
    if (state_.ranks[worker].phase != RankPhase::kEnded) Do(SignalWorker{worker, SIGKILL});
  }
}

// ---- generations

void Membership::OnJoined(uint32_t worker) {
  RankRecord& record = state_.ranks[worker];
  if (record.phase == RankPhase::kEnded) return;
  OnLeft(worker);
  if (record.dismissed) {  // before it heard of that
    record.in_generation = 0;
    return Do(DismissWorker{worker, "the job goes on, or has ended, without it"});
  }
  state_.Waits(record, true);
  record.in_generation = 0;
  record.departed_ns = 0;
  record.is_consequence = false;
  record.joined_at = now_;
  elastic_.any_joined = true;
  elastic_.incomplete_since.reset();
}

void Membership::OnLeft(uint32_t worker) {
  const RankRecord& record = state_.ranks[worker];
  if (record.in_generation == 0 || record.in_generation != state_.generation) return;
  SetRunning(false);
}

void Membership::SetRunning(bool running) {
  elastic_.running = running;
  elastic_.time.SetTraining(running, now_);
}

void Membership::OnEnding(const JobFailure& ending) {
  if (!elastic_.running) return;
  SetRunning(false);
  if (!elastic_.budget.Spend(now_)) return FailJob(ending);
  elastic_.failed_generation = state_.generation;
  Tell(ending.reason + "; the ranks form another generation (" + elastic_.budget.Text(now_) + ")");
}

// A rank that a signal has stopped, of a generation that had to end: it cannot be told, and must
// not touch the memory of the others when it goes on.
void Membership::OnStopped(uint32_t worker) {
  if (elastic_.running || !IsAlive(worker)) return;
  Tell(WorkerText(worker) + " is stopped by a signal and was ended, so that the others can go on");
  Do(SignalWorker{worker, SIGKILL});
}

std::vector<Candidate> Membership::Waiting() const {
  std::vector<Candidate> waiting;
  for (uint32_t worker : StayingWorkers()) {
    if (state_.ranks[worker].waiting) waiting.push_back(CandidateOf(worker));
  }
  // Beyond the most that there may be, new ones are spares.
  std::stable_partition(waiting.begin(), waiting.end(), IsSurvivor);
  if (waiting.size() > elastic_.limits.max_np) waiting.resize(elastic_.limits.max_np);
  return waiting;
}

// Each rank that could tell the state to new ones.
bool Membership::SurvivorsWait() const {
  return std::ranges::all_of(AliveWorkers(), [this](uint32_t worker) {
    const RankRecord& record = state_.ranks[worker];
    return !record.member || record.waiting || record.dismissed;
  });
}

// Until a lost process is gone it could write into memory that the survivors use.
bool Membership::LostAreGone() const {
  return std::ranges::none_of(state_.ranks, [](const RankRecord& record) {
    return record.lost && record.phase != RankPhase::kEnded;
  });
}

// Where all that would go on are new, one of those that leave takes part once more, to tell them
// the state of the job.
void Membership::KeepState(std::vector<Candidate>& candidates) const {
  if (std::ranges::any_of(candidates, IsSurvivor)) return;
  std::optional<Candidate> keeper;
  for (uint32_t worker : AliveWorkers()) {
    const RankRecord& record = state_.ranks[worker];
    if (!record.member || !record.waiting) continue;
    if (!keeper || record.rank < keeper->last_rank) keeper = CandidateOf(worker);
  }
  const uint32_t most = elastic_.limits.max_np;
  if (!keeper || most == 1) return;  // a job of one rank cannot have two for a while
  if (candidates.size() >= most) candidates.resize(most - 1);
  candidates.push_back(*keeper);
}

void Membership::DismissLeaving() {
  for (uint32_t worker : AliveWorkers()) {
    RankRecord& record = state_.ranks[worker];
    if (!record.leaving || record.dismissed) continue;
    // It leaves at a commit, once the others have its state.
    if (record.member && (!record.waiting || !elastic_.running)) continue;
    record.dismissed = true;
    if (record.waiting) {
      state_.Waits(record, false);
      Do(DismissWorker{worker, "its slot is no longer part of the job"});
    } else {
      NoteIncomplete();
      EndUnused(worker);
    }
  }
}

void Membership::FormGeneration() {
  if (elastic_.running || elastic_.restart || !LostAreGone() || !SurvivorsWait()) return;
  std::vector<Candidate> waiting = Waiting();
  KeepState(waiting);
  if (waiting.empty()) return;
  const bool first = state_.generation == 0;
  const size_t expected = std::min<size_t>(StayingWorkers().size(), elastic_.limits.max_np);
  if (first && waiting.size() < expected) return;
  if (waiting.size() < elastic_.limits.min_np && !elastic_.any_finished) return;
  const bool survivors = std::ranges::any_of(waiting, IsSurvivor);
  // Nobody has the state any more: all start anew, together.
  if (!first && !survivors && waiting.size() < expected) return;
  Begin(std::move(waiting));
}

void Membership::Begin(std::vector<Candidate> candidates) {
  const bool first = state_.generation == 0;
  const std::optional<uint32_t>& limit = elastic_.limits.reset_limit;
  if (!first && limit && elastic_.resets >= *limit) {
    return FailJob(
        "Horovod was shutdown because number of resets during elastic job exceeded limit: " +
        std::to_string(*limit));
  }
  if (!first) ++elastic_.resets;
  ++state_.generation;
  state_.ending.reset();
  elastic_.generation = ArrangeRanks(std::move(candidates));
  SetRunning(true);
  elastic_.notice = CommitNotice::kNone;
  elastic_.update = 0;
  for (const Member& member : elastic_.generation.members) {
    RankRecord& record = state_.ranks[member.worker];
    const Placement& place = state_.plan.ranks[member.worker];
    // It has outlived a generation.
    if (record.member)
      elastic_.ledger.NoteGood(elastic_.hosts[place.host].listing.host, place.local_rank);
    state_.Waits(record, false);
    record.stopped = false;
    record.member = true;
    record.rank = member.place.rank;
    record.in_generation = state_.generation;
  }
  Do(BeginWorld{state_.generation, elastic_.generation});
  std::string begun = "generation " + std::to_string(state_.generation) + " begins with " +
                      CountText(elastic_.generation.size(), "rank", "ranks");
  first ? Because(std::move(begun)) : Tell(std::move(begun));
}

// While a generation runs: are there ranks to let in or out, or is the job to stop?
void Membership::NoticeChange() {
  elastic_.growth_at.reset();
  if (!elastic_.running || elastic_.notice != CommitNotice::kNone) return;
  uint32_t update = 0;
  if (elastic_.stop_asked) update |= kUpdateStop;
  bool starting = false;
  size_t members = 0, new_ones = 0;
  std::optional<TimePoint> first_waits;
  for (uint32_t worker : AliveWorkers()) {
    const RankRecord& record = state_.ranks[worker];
    if (record.in_generation != 0 && record.leaving) update |= kUpdateRemoved;
    members += record.in_generation != 0 && !record.leaving;
    if (record.member || record.leaving) continue;
    if (!record.waiting) {
      starting = true;
      continue;
    }
    ++new_ones;
    first_waits = std::min(first_waits.value_or(record.joined_at), record.joined_at);
  }
  if (elastic_.any_finished) return;
  const bool room = members < elastic_.limits.max_np;
  const bool full = members + new_ones >= elastic_.limits.max_np;
  if (!room) first_waits.reset();
  if (first_waits && (!starting || full || now_ >= *first_waits + kGrowthPatience))
    update |= kUpdateAdded;
  if (update == 0) {
    if (first_waits) elastic_.growth_at = *first_waits + kGrowthPatience;
    return;
  }
  elastic_.notice = CommitNotice::kHolding;
  elastic_.update = update;
  elastic_.most_commits = 0;
  elastic_.holding.clear();
  for (const Member& member : elastic_.generation.members)
    elastic_.holding.insert(member.place.host);
  Do(HoldCommits{state_.generation});
}

void Membership::OnHeld(const CommitsHeldBy& held) {
  if (elastic_.notice != CommitNotice::kHolding || held.held.generation != state_.generation)
    return;
  elastic_.holding.erase(held.host);
  elastic_.most_commits = std::max(elastic_.most_commits, held.held.most);
  elastic_.any_committed = elastic_.any_committed || held.held.most > 0;
  if (!elastic_.holding.empty()) return;
  elastic_.notice = CommitNotice::kActing;
  const auto grace =
      std::chrono::duration_cast<std::chrono::milliseconds>(elastic_.stop_grace).count();
  Do(ActAtCommit{state_.generation, elastic_.most_commits + 1, elastic_.update,
                 static_cast<uint32_t>(grace)});
  Because("all ranks act at commit " + std::to_string(elastic_.most_commits + 1));
}

void Membership::OnStopAsked(const StopAsked& asked) {
  if (std::exchange(elastic_.stop_asked, true)) return;
  elastic_.stop_grace = asked.grace;
  Tell("asked to stop by signal " + std::to_string(asked.signal) +
       ": the ranks leave at their next commit, within " + SecondsText(asked.grace));
}

// After the first rank that ended with 0 nobody is added or replaced: when no member is left, ranks
// that never got in end, too.
void Membership::FinishIfDone() {
  // A script that forms no generations has no members, and each of its processes ends by itself.
  const bool finished = elastic_.any_finished && state_.generation > 0;
  if (!finished && !elastic_.stop_asked) return;
  bool any_member = false;
  for (uint32_t worker : AliveWorkers()) any_member |= state_.ranks[worker].in_generation != 0;
  if (any_member) return;
  for (uint32_t worker : AliveWorkers()) {
    RankRecord& record = state_.ranks[worker];
    if (record.member || record.dismissed) continue;
    record.leaving = record.dismissed = true;
    state_.Waits(record, false);
    EndUnused(worker);
  }
  // The job is over but for ranks that were dismissed before.
  if (!StayingWorkers().empty()) return;
  for (uint32_t worker : AliveWorkers()) {
    RankRecord& record = state_.ranks[worker];
    if (!record.end_by) record.end_by = now_ + state_.options.stop_grace;
  }
}

// A worker that has not been a rank, so that it has nothing to save.
void Membership::EndUnused(uint32_t worker) {
  state_.ranks[worker].end_by = now_ + state_.options.terminate_grace;
  Do(SignalWorker{worker, SIGTERM});
}

void Membership::KillOverdue() {
  elastic_.next_overdue.reset();
  for (uint32_t worker : AliveWorkers()) {
    std::optional<TimePoint>& end_by = state_.ranks[worker].end_by;
    if (!end_by || *end_by == TimePoint::max()) continue;
    if (now_ >= *end_by) {
      end_by = TimePoint::max();
      Do(SignalWorker{worker, SIGKILL});
    } else {
      elastic_.next_overdue = std::min(elastic_.next_overdue.value_or(*end_by), *end_by);
    }
  }
}

// ---- too few

void Membership::WatchShortage() {
  if (elastic_.running || elastic_.any_finished || elastic_.restart) {
    elastic_.short_since.reset();
    return;
  }
  const size_t have = StayingWorkers().size();
  const uint32_t need = Needed();
  const bool late = state_.counts.waiting > 0 || (elastic_.any_joined && !SurvivorsWait());
  if (have >= need && !late) {
    elastic_.short_since.reset();
    return;
  }
  if (!elastic_.short_since) {
    elastic_.short_since = now_;
    elastic_.next_report = now_ + kFirstReport;
  }
  if (now_ >= *elastic_.short_since + elastic_.limits.elastic_timeout) {
    ReportShortage(have, need);
    return FailJob("too few ranks could take part within the " +
                   SecondsText(elastic_.limits.elastic_timeout) +
                   " of --elastic-timeout: " + ShortageText(have, need));
  }
  if (now_ < elastic_.next_report) return;
  elastic_.next_report = now_ + kLaterReports;
  ReportShortage(have, need);
}

std::string Membership::ShortageText(size_t have, uint32_t need) const {
  std::string text = CountText(have, "rank is there", "ranks are there") + ", " +
                     CountText(need, "is needed", "are needed");
  std::vector<std::string> late;
  for (uint32_t worker : AliveWorkers()) {
    if (!state_.ranks[worker].waiting && state_.ranks[worker].phase == RankPhase::kRunning)
      late.push_back(WorkerText(worker));
  }
  if (!late.empty()) {
    text += "; " + HostNames(late) + (late.size() == 1 ? " has" : " have") +
            " not called hvd.init()" + (state_.generation > 0 ? " again" : "");
  }
  for (const ElasticHost& host : elastic_.hosts) {
    if (!host.trouble.empty() && host.listed)
      text += "; host " + host.listing.host + ": " + host.trouble;
  }
  if (elastic_.listed_once && elastic_.listing.empty()) text += "; no hosts are listed";
  if (!elastic_.source_trouble.empty()) text += "; " + elastic_.source_trouble;
  return text;
}

void Membership::ReportShortage(size_t have, uint32_t need) {
  const Duration left = *elastic_.short_since + elastic_.limits.elastic_timeout - now_;
  Tell("waiting for ranks: " + ShortageText(have, need) + "; the job ends in " +
       SecondsText(std::max(left, Duration{})) + " (--elastic-timeout)");
}

// ---- all of it

std::optional<JobFailure> Membership::Review() {
  const bool at_work = state_.phase <= JobPhase::kRunning && !state_.failure;
  if (!at_work || failure_) return std::exchange(failure_, std::nullopt);
  GoOnWithRestart();
  OpenListedHosts();
  MarkLeaving();
  RestartIfIncomplete();
  FillSeats();
  FormGeneration();
  DismissLeaving();
  NoticeChange();
  FinishIfDone();
  KillOverdue();
  DropUnusedHosts();
  WatchShortage();
  elastic_.ledger_changes_at = elastic_.ledger.NextChange(now_);
  return std::exchange(failure_, std::nullopt);
}

std::optional<TimePoint> Membership::NextTick(const JobState& state) {
  const ElasticState& elastic = *state.elastic;
  std::optional<TimePoint> next;
  const auto take = [&next](const std::optional<TimePoint>& time) {
    if (time && (!next || *time < *next)) next = time;
  };
  if (state.phase > JobPhase::kRunning || state.failure) return next;
  take(elastic.ledger_changes_at);
  if (elastic.enough_since) take(*elastic.enough_since + kHostsPatience);
  if (elastic.restart && !elastic.restart->killing) take(elastic.restart->kill_at);
  const bool may_restart = !elastic.any_finished && !elastic.stop_asked;
  if (elastic.incomplete_since && may_restart) take(*elastic.incomplete_since + kNativePatience);
  if (elastic.short_since) {
    take(elastic.next_report);
    take(*elastic.short_since + elastic.limits.elastic_timeout);
  }
  take(elastic.growth_at);
  take(elastic.next_overdue);
  return next;
}

}  // namespace hvd
