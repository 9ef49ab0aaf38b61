#include "launcher/external/adopt/adopt.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <climits>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/external/adopt/external_stalls.h"
#include "launcher/external/adopt/external_view.h"
#include "launcher/external/adopt/rendezvous.h"
#include "launcher/external/adopt/rendezvous_records.h"
#include "launcher/generation/host_generations.h"
#include "runtime/base/clock.h"
#include "runtime/base/log.h"
#include "runtime/base/test_env.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/link.h"

namespace hvd {
namespace {

// How often the agent checks whether any rank is left; links report their ends themselves.
constexpr Duration kLookAgain = std::chrono::seconds(1);
// How long it waits for its first rank.
constexpr Duration kFirstRank = std::chrono::seconds(10);

// How long ranks wait for the replacement of one that has ended.
Duration AbsenceLimit() {
  return std::chrono::milliseconds(TestNumber("HVD_TEST_ABSENCE_MS", 60'000));
}

std::string MachineName() {
  char name[HOST_NAME_MAX + 1] = {};
  ::gethostname(name, sizeof name - 1);
  return name;
}

HostWorld EmptyWorld(const AdoptOptions& options) {
  HostWorld world;
  world.host = options.host;
  world.size = options.size;
  world.slots.resize(options.slots);
  return world;
}

// By slot.
std::vector<uint32_t> RanksOf(const HostWorld& world) {
  std::vector<uint32_t> ranks;
  for (const Placement& place : world.slots) ranks.push_back(place.rank);
  return ranks;
}

class Adopter final : public HostGenerationsObserver {
 public:
  Adopter(AdoptOptions options, UniqueFd listener);
  int Run();

  Status OnHello(const LinkHello& hello) override;
  void OnLayout(uint32_t slot, std::vector<RankRun> runs) override;
  void OnJoined(uint32_t slot) override;
  void OnPage(const std::vector<uint32_t>& slots) override { view_.UsePage(slots); }
  void OnLeft(uint32_t, const LeftRank&) override { EndWorldIfUnused(); }
  void OnLost(uint32_t slot, const LostRank& lost) override;
  void OnLinkClosed(uint32_t slot) override;
  void OnPut(const LinkPut& put) override;
  void OnWanted(const LinkGet& get) override;

 private:
  struct Member {
    std::optional<uint32_t> rank;  // once it has said hello
    std::string gone;              // "rank 1 on host a (pid 12) died": it was lost
    TimePoint away_since{};        // without a link, though it had one
  };

  std::string RankText(uint32_t slot, int pid) const;
  std::string CannotForm() const;
  void Form();
  Result<HostWorld> WorldKnownHere(const std::vector<uint32_t>& ranks) const;
  void Begin(HostWorld world, uint64_t generation);
  void OnEndlessStall(uint64_t generation, const std::string& reason);
  void EndWorldIfUnused();
  void Refuse(const std::string& reason);
  void LookAgain();
  void EndIfAlone();
  void RefuseAbsence();

  AdoptOptions options_;
  asio::io_context io_{1};
  SteadyClock clock_;
  HostGenerations generations_;
  ExternalStalls stalls_;
  ExternalView view_;
  std::optional<Rendezvous> rendezvous_;
  asio::steady_timer look_timer_;
  std::vector<Member> members_;
  std::vector<RankRun> layout_;  // as reported by the rank in the first slot
  const TimePoint born_ = SteadyNow();
  const Duration absence_limit_ = AbsenceLimit();
  uint64_t generation_ = 0;  // the last one begun
  bool had_rank_ = false;
};

Adopter::Adopter(AdoptOptions options, UniqueFd listener)
    : options_(std::move(options)),
      generations_(io_, *this, EmptyWorld(options_),
                   options_.secret.empty() ? options_.job_id : options_.secret, ""),
      stalls_(io_, clock_,
              [this](uint64_t generation, const std::string& reason) {
                OnEndlessStall(generation, reason);
              }),
      view_(io_, options_.job_id, generations_),
      look_timer_(io_),
      members_(options_.slots) {
  if (!options_.store.empty() && options_.slots < options_.size)
    rendezvous_.emplace(io_, options_.store, options_.secret);
  generations_.links().RequireSameNamespaces();
  generations_.links().Serve(std::move(listener));
  stalls_.Watch(generations_);
  if (Status open = view_.Open(); !open.ok())
    LogDebug("hvdrun top cannot look at these ranks: " + open.message());
}

// An exception (out of memory, descriptors or threads) ends the current world and this agent: the
// ranks get the reason, and the next hvd.init() starts another agent.
int Adopter::Run() {
  LookAgain();
  try {
    io_.run();
    return 0;
  } catch (const std::exception& failure) {
    const std::string reason =
        "the agent of host " + options_.host + " cannot go on: " + failure.what();
    LogError(reason);
    generations_.Break(generation_, reason);
    generations_.Break(0, reason);
    return 1;
  }
}

std::string Adopter::RankText(uint32_t slot, int pid) const {
  std::string rank = members_[slot].rank ? std::to_string(*members_[slot].rank) : "?";
  return Format("rank {} on host {} (pid {})", rank, options_.host, pid);
}

std::string Adopter::CannotForm() const {
  return Format(", so the world of {} cannot form{}", options_.size,
                generation_ > 0 ? " again" : "");
}

// ---- ranks come and go

Status Adopter::OnHello(const LinkHello& hello) {
  if (hello.size != options_.size || hello.rank >= options_.size) {
    return InvalidArgument(
        Format("its launcher says that it is rank {} of {}, but the world has {} ranks", hello.rank,
               hello.size, options_.size));
  }
  for (uint32_t slot = 0; slot < members_.size(); ++slot) {
    if (slot != hello.slot && members_[slot].rank == hello.rank &&
        generations_.links().connected(slot))
      return InvalidArgument(Format("there is a rank {} already, process {}", hello.rank,
                                    generations_.links().pid(slot)));
  }
  had_rank_ = true;
  members_[hello.slot] = {hello.rank, "", {}};
  if (hello.slot == 0) layout_.clear();
  return Status::Ok();
}

void Adopter::OnLayout(uint32_t slot, std::vector<RankRun> runs) {
  if (slot == 0 && layout_.size() < options_.size)
    layout_.insert(layout_.end(), runs.begin(), runs.end());
}

void Adopter::OnJoined(uint32_t) {
  for (const Member& member : members_) {
    if (!member.gone.empty()) return Refuse(member.gone + CannotForm());
  }
  if (generations_.slots().AllWaiting()) Form();
}

void Adopter::OnLost(uint32_t slot, const LostRank& lost) {
  Member& member = members_[slot];
  if (lost.generation != 0) {
    member.gone = RankText(slot, lost.pid) + " died";
    if (rendezvous_) rendezvous_->SendBroken(lost.reason);
  } else {
    member.gone = RankText(slot, lost.pid) + " ended while it waited in hvd.init()";
    if (rendezvous_) rendezvous_->SendBroken(member.gone + CannotForm());
    Refuse(member.gone + CannotForm());
  }
  EndWorldIfUnused();
}

void Adopter::OnLinkClosed(uint32_t slot) {
  members_[slot].away_since = SteadyNow();
  asio::post(io_, [this] { EndIfAlone(); });
}

// Tells every rank that waits for a world that there will be none.
void Adopter::Refuse(const std::string& reason) {
  if (rendezvous_ && !generations_.slots().in_use()) rendezvous_->Stop();
  generations_.Break(0, reason);
}

// ---- worlds

void Adopter::Form() {
  std::vector<uint32_t> ranks;
  for (const Member& member : members_) ranks.push_back(member.rank.value_or(0));
  if (!rendezvous_) {
    Result<HostWorld> world = WorldKnownHere(ranks);
    if (!world.ok()) return Refuse(world.status().message());
    return Begin(std::move(*world), generation_ + 1);
  }
  rendezvous_->Meet({ranks, options_.size, generation_}, [this](Result<MetWorld> met) {
    if (!met.ok()) return Refuse(met.status().message());
    if (!rendezvous_->local_address().empty())
      met->part.listen.addresses = {rendezvous_->local_address()};
    Begin(std::move(met->part), met->generation);
    rendezvous_->Watch(
        [this](const std::string& reason) { generations_.Break(generation_, reason); });
  });
}

// Without a rendezvous all ranks are here, or have reported where they are.
Result<HostWorld> Adopter::WorldKnownHere(const std::vector<uint32_t>& ranks) const {
  if (ranks.size() == options_.size) {
    std::vector<RankPlace> places(options_.size);
    for (uint32_t local = 0; local < ranks.size(); ++local) places[ranks[local]] = {0, local};
    return PartOfHost(places, 0);
  }
  Result<std::vector<RankPlace>> places = PlacesOf(layout_, options_.size);
  if (!places.ok()) {
    return InvalidArgument(Format("rank {} sent {}", ranks[0], places.status().message()));
  }
  HostWorld world = PartOfHost(*places, (*places)[ranks[0]].host);
  if (RanksOf(world) == ranks) return world;
  return InvalidArgument(
      Format("rank {} sent a layout with other ranks on this host than have come", ranks[0]));
}

void Adopter::Begin(HostWorld world, uint64_t generation) {
  world.host = options_.host;
  generation_ = generation;
  generations_.set_world(std::move(world));
  Status begun = generations_.Begin(generation, generations_.slots().All());
  if (!begun.ok() && rendezvous_) rendezvous_->SendBroken(begun.message());
}

void Adopter::OnEndlessStall(uint64_t generation, const std::string& reason) {
  if (generation != generation_) return;
  generations_.Break(generation_, reason);
  if (rendezvous_) rendezvous_->SendBroken(reason);
}

void Adopter::EndWorldIfUnused() {
  if (rendezvous_ && !generations_.slots().in_use()) rendezvous_->Stop();
}

void Adopter::OnPut(const LinkPut& put) {
  if (rendezvous_) rendezvous_->Put(put.key, put.value);
}

void Adopter::OnWanted(const LinkGet& get) {
  if (!rendezvous_) return;
  rendezvous_->Await(get.key, [this, get](const std::string& value) {
    generations_.GiveValue(get.generation, get.key, value);
  });
}

// ---- the end

void Adopter::LookAgain() {
  EndIfAlone();
  RefuseAbsence();
  look_timer_.expires_after(std::min(kLookAgain, absence_limit_));
  look_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) LookAgain();
  });
}

// A rank that connects while this agent ends finds its link closed, and starts another agent.
void Adopter::EndIfAlone() {
  if (generations_.links().CountLinks() > 0 || (rendezvous_ && rendezvous_->telling())) return;
  if (had_rank_ || SteadyNow() - born_ > kFirstRank) io_.stop();
}

void Adopter::RefuseAbsence() {
  const bool waited_for = !generations_.slots().Waiting().empty();
  for (uint32_t slot = 0; waited_for && slot < members_.size(); ++slot) {
    const Member& member = members_[slot];
    bool away = member.rank && !generations_.links().connected(slot);
    if (!away || SteadyNow() - member.away_since < absence_limit_) continue;
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(absence_limit_).count();
    return Refuse(Format("rank {} has ended, and no process has taken its place for {} s{}",
                         *member.rank, seconds, CannotForm()));
  }
}

std::optional<uint32_t> ParseCount(const std::string& text) {
  const auto value = ParseWhole<uint32_t>(text);
  return value && *value > 0 && *value <= kMaxRanks ? value : std::nullopt;
}

}  // namespace

Result<AdoptOptions> ParseAdoptArguments(const std::vector<std::string>& arguments) {
  AdoptOptions options;
  for (size_t i = 0; i < arguments.size(); i += 2) {
    std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (arguments[i] == "--adopt") {
      options.job_id = value;
    } else if (arguments[i] == "--slots") {
      options.slots = ParseCount(value).value_or(0);
    } else if (arguments[i] == "--size") {
      options.size = ParseCount(value).value_or(0);
    } else if (arguments[i] == "--host") {
      options.host = value;
    } else if (arguments[i] == "--store") {
      options.store = value;
    } else {
      return InvalidArgument("unknown argument " + arguments[i]);
    }
  }
  if (options.host.empty()) options.host = MachineName();
  bool complete = !options.job_id.empty() && options.slots > 0 && options.slots <= options.size;
  if (!complete) return InvalidArgument("--adopt, --slots and --size are needed");
  return options;
}

int RunAdoptingAgent(AdoptOptions options, UniqueFd listener) {
  ::signal(SIGPIPE, SIG_IGN);
  for (int signal : {SIGUSR1, SIGUSR2}) ::signal(signal, SIG_IGN);  // they are for the ranks
  // The rank that created the socket may end long before its agent.
  if (Status ours = ListenInOwnName(listener.get()); !ours.ok()) {
    LogError(ours.message());
    return 1;
  }
  rlimit descriptors{};  // one per rank and segment
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) == 0) {
    descriptors.rlim_cur = descriptors.rlim_max;
    (void)::setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  try {
    return Adopter(std::move(options), std::move(listener)).Run();
  } catch (const std::exception& failure) {
    LogError(std::string("the agent cannot begin or end: ") + failure.what());
    return 1;
  }
}

}  // namespace hvd
