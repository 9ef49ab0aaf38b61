#include "runtime/api/world_joiner.h"

#include <stdlib.h>
#include <strings.h>

#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/api/engine_options.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/bootstrap/adopted_agent_connector.h"
#include "runtime/bootstrap/agent_bootstrap.h"
#include "runtime/bootstrap/refused_bootstrap.h"
#include "runtime/bootstrap/solo_bootstrap.h"

namespace hvd {
namespace {

constexpr const char* kAsStarted = "as started";
constexpr const char* kAlone = "alone";
constexpr const char* kMpi = "mpi ";
// Suffix in the message of a rank that cannot change its agent any more.
constexpr char kHeld = '!';

bool EnvIs(const char* variable, const char* value) {
  return ::strcasecmp(GetEnv(variable).value_or("").c_str(), value) == 0;
}

std::unique_ptr<Bootstrap> AdoptedBootstrap(ExternalRank rank) {
  return std::make_unique<AgentBootstrap>(
      std::make_unique<AdoptedAgentConnector>(std::move(rank), GetEnv("HVD_HVDRUN").value_or("")));
}

// Null if more has to be learned from MPI first.
std::unique_ptr<Bootstrap> BootstrapOf(const Result<DetectedLaunch>& choice) {
  if (!choice.ok()) return std::make_unique<RefusedBootstrap>(choice.status());
  if (const auto* agent = std::get_if<AgentAddress>(&*choice))
    return std::make_unique<AgentBootstrap>(*agent);
  if (const auto* rank = std::get_if<ExternalRank>(&*choice))
    return rank->over_mpi ? nullptr : AdoptedBootstrap(*rank);
  return std::make_unique<SoloBootstrap>();
}

const char* JobOf(const Result<DetectedLaunch>& choice) {
  return choice.ok() && std::holds_alternative<Standalone>(*choice) ? kAlone : kAsStarted;
}

Status HeldSentence(const std::string& who) {
  return Unsupported(who +
                     " shares memory with the ranks of an earlier hvd.init(), which were others "
                     "than those of this one; give the same communicator each time, or call "
                     "hvd.init() once and make a ProcessSet of the ranks");
}

std::string PlaceOf(const MpiWorld& world) {
  return Format("{} of {}", world.rank(), world.size());
}

ExternalRank RankOf(const MpiWorld& world, std::string launcher) {
  const RankPlace own = world.places()[world.rank()];
  const auto here = [&](const RankPlace& place) { return place.host == own.host; };
  ExternalRank rank;
  rank.launcher = std::move(launcher);
  rank.job = Format("{}{} {}", kMpi, world.id(), own.host);
  rank.rank = world.rank();
  rank.size = world.size();
  rank.local_rank = own.local_rank;
  rank.local_size = static_cast<uint32_t>(std::ranges::count_if(world.places(), here));
  rank.layout = RunsOf(world.places());
  return rank;
}

}  // namespace

WorldJoiner::WorldJoiner(Result<DetectedLaunch> choice, MpiHooks hooks)
    : choice_(std::move(choice)),
      hooks_(hooks),
      job_(JobOf(choice_)),
      bootstrap_(BootstrapOf(choice_)) {
  if (bootstrap_ != nullptr) (void)segments_.Point(&bootstrap_->segments());
}

void WorldJoiner::Update(Result<DetectedLaunch> choice) {
  if (plugin_ || bootstrap_ == nullptr) return;
  if (choice_.ok() && std::holds_alternative<AgentAddress>(*choice_)) return;
  if (choice.ok() && choice_.ok() ? *choice == *choice_
                                  : choice.status().message() == choice_.status().message())
    return;
  choice_ = std::move(choice);
  updated_ = true;
}

const ExternalRank* WorldJoiner::external() const {
  return choice_.ok() ? std::get_if<ExternalRank>(&*choice_) : nullptr;
}

// Open MPI's mpirun started this rank, perhaps for hvdrun --mpi: its MPI_COMM_WORLD has the ranks
// of the job. HOROVOD_CONTROLLER=gloo excludes MPI.
bool WorldJoiner::StartedByOpenMpi() const {
  if (!choice_.ok() || !GetEnv("OMPI_COMM_WORLD_SIZE")) return false;
  if (std::holds_alternative<AgentAddress>(*choice_)) return EnvIs("HOROVOD_CONTROLLER", "mpi");
  if (external() != nullptr && external()->launcher != "mpirun") return false;
  return !EnvIs("HOROVOD_CONTROLLER", "gloo") && !EnvIs("HOROVOD_CPU_OPERATIONS", "gloo");
}

uint32_t WorldJoiner::launched() const {
  if (const ExternalRank* rank = external()) return rank->size;
  if (!choice_.ok()) return 0;
  const auto* agent = std::get_if<AgentAddress>(&*choice_);
  return agent == nullptr ? 1 : agent->size;
}

bool WorldJoiner::IsEverybody(const std::vector<uint32_t>& ranks) const {
  return ranks.empty() || (ranks.size() == launched() && ranks.back() + 1 == launched());
}

Result<Membership> WorldJoiner::Join(const InitOptions& options) {
  const bool mpi_decides = external() != nullptr && external()->over_mpi;
  if (mpi_decides) return JoinOverMpi(options);
  if (options.mpi_comm == nullptr && IsEverybody(options.ranks)) return JoinAsStarted(options);
  HVD_RETURN_IF_ERROR(CheckAsksForMpi(options));
  return JoinOverMpi(options);
}

// hvd.init() was given arguments that require MPI.
Status WorldJoiner::CheckAsksForMpi(const InitOptions& options) const {
  if (!choice_.ok()) return choice_.status();
  const bool part = options.mpi_comm == nullptr;
  const std::string what = part ? "a part of the ranks" : "a communicator of MPI";
  if (std::holds_alternative<AgentAddress>(*choice_) && StartedByOpenMpi()) return Status::Ok();
  if (std::holds_alternative<AgentAddress>(*choice_)) {
    return Unsupported("hvd.init() was given " + what +
                       " as its world, but hvdrun started this rank, and MPI knows nothing of the "
                       "others; call hvd.init() without it and make a ProcessSet, or start the job "
                       "with hvdrun --mpi or mpirun");
  }
  // If the application has a communicator, MPI is running; otherwise it is safe to start only under
  // mpirun.
  if (!part || (external() != nullptr && external()->launcher == "mpirun")) return Status::Ok();
  return Unsupported(Format(
      "hvd.init() was given a world of other ranks than the {} that were started, which needs MPI; "
      "call hvd.init() without them and make a ProcessSet, or start the job with mpirun",
      launched()));
}

Result<Membership> WorldJoiner::JoinAsStarted(const InitOptions& options) {
  if (job_ != JobOf(choice_) || updated_) {
    Status used = Use(JobOf(choice_), BootstrapOf(choice_));
    if (!used.ok()) return used;
    updated_ = false;
  }
  Result<World> world = bootstrap_->Join(options.timeout);
  if (!world.ok()) return world.status();
  const std::optional<MpiFacts> beside = StartMpiBeside(*world);
  return Membership{std::move(*world), nullptr, beside};
}

// Only when all ranks are there: MPI_Init has no deadline.
std::optional<MpiFacts> WorldJoiner::StartMpiBeside(const World& world) {
  if (!StartedByOpenMpi()) return std::nullopt;
  const Result<bool> one_thread = MpiThreadsDisabled();
  MpiFacts facts;
  Status status = one_thread.ok() ? LoadPlugin() : one_thread.status();
  if (status.ok() && !plugin_->start(*one_thread, &facts, &status)) {
    // `status` has the reason.
  } else if (status.ok()) {
    FinishAtExit();
    if (facts.size == world.size) return facts;
    status = Unsupported(
        Format("MPI cannot be used beside this world of {} ranks because its own has {}: mpirun "
               "and libhvd_mpi.so are of different MPI libraries",
               world.size, facts.size));
  }
  LogInfo(status.message());
  return std::nullopt;
}

Status WorldJoiner::LoadPlugin() {
  if (plugin_) return Status::Ok();
  Result<MpiPlugin> loaded = LoadMpiPlugin();
  if (!loaded.ok()) return loaded.status();
  plugin_ = *loaded;
  return Status::Ok();
}

// Registered after MPI's initialisation, so that it runs before MPI's own exit handler.
void WorldJoiner::FinishAtExit() const {
  static const int registered = ::on_exit(hooks_.at_exit, nullptr);
  (void)registered;
}

Result<Membership> WorldJoiner::JoinOverMpi(const InitOptions& options) {
  if (!failure_.empty()) {
    return Aborted("ranks over MPI cannot form a world again, because " + failure_ +
                   "; start the job again, or start it with hvdrun");
  }
  const bool limited = options.timeout.count() > 0;
  const TimePoint deadline = limited ? SteadyNow() + options.timeout : TimePoint::max();
  Result<std::unique_ptr<MpiWorld>> mpi = OpenMpiWorld(options, deadline);
  Status status = mpi.status();
  if (mpi.ok()) status = UseAgentOf(**mpi, deadline);
  if (status.ok()) {
    // 0 means no limit, so an expired limit becomes the smallest positive one.
    const Duration left = limited ? std::max(Duration(1), deadline - SteadyNow()) : Duration(0);
    Result<World> world = bootstrap_->Join(left);
    status = AgreeToGoOn(**mpi, world.status(), deadline);
    if (status.ok()) return Membership{std::move(*world), std::move(*mpi)};
    if (world.ok()) bootstrap_->Leave(world->generation, SteadyNow());
  }
  // An error in the arguments is not a failure of MPI, whose state is unchanged.
  if (status.code() != Code::kInvalidArgument && status.code() != Code::kUnsupported)
    failure_ = status.message();
  return status.code() == Code::kInProgress ? Aborted(status.message()) : status;
}

Result<std::unique_ptr<MpiWorld>> WorldJoiner::OpenMpiWorld(const InitOptions& options,
                                                            TimePoint deadline) {
  Result<bool> one_thread = MpiThreadsDisabled();
  if (!one_thread.ok()) return one_thread.status();
  if (Status loaded = LoadPlugin(); !loaded.ok()) {
    const ExternalRank* rank = external();
    if (rank != nullptr && rank->local_size < rank->size) {
      return Unsupported(
          "the world spans several hosts, and HOROVOD_GLOO_RENDEZVOUS_ADDR and "
          "HOROVOD_GLOO_RENDEZVOUS_PORT name no key-value server by which they could find each "
          "other; " +
          loaded.message());
    }
    return loaded;
  }
  MpiJoinOptions join;
  join.comm = options.mpi_comm;
  if (!IsEverybody(options.ranks)) join.ranks = options.ranks;
  join.launched = external() == nullptr ? 0 : external()->size;
  join.one_thread = *one_thread;
  join.deadline = deadline;
  join.before_finalize = hooks_.before_finalize;
  Status status;
  std::unique_ptr<MpiWorld> world(plugin_->join(&join, &status));
  FinishAtExit();
  if (world == nullptr) return status;
  return world;
}

// Agents on different hosts do not know of each other: the others would wait for a host on which
// the world could not begin.
Status WorldJoiner::AgreeToGoOn(MpiWorld& world, const Status& own, TimePoint deadline) {
  if (world.size() == 1) return own;
  constexpr size_t kMostReasonBytes = 1000;
  Result<std::vector<std::string>> replies =
      world.Exchange(own.message().substr(0, kMostReasonBytes), deadline);
  if (!own.ok()) return own;
  if (!replies.ok()) return replies.status();
  for (size_t rank = 0; rank < replies->size(); ++rank) {
    const std::string& why = (*replies)[rank];
    if (!why.empty()) return Aborted(Format("rank {} cannot join: {}", rank, why));
  }
  return own;
}

// All ranks decide alike here: they keep the agents they have, or start new ones.
Status WorldJoiner::UseAgentOf(MpiWorld& world, TimePoint deadline) {
  if (world.size() == 1) {
    return job_ == kAlone ? Status::Ok() : Use(kAlone, std::make_unique<SoloBootstrap>());
  }
  const bool met = job_.starts_with(kMpi) && place_ == PlaceOf(world);
  std::string word = met ? job_ : "";
  if (segments_.used()) word += kHeld;
  Result<std::vector<std::string>> replies = world.Exchange(word, deadline);
  if (!replies.ok()) return replies.status();
  std::optional<size_t> holder;
  bool same = met;
  for (size_t rank = 0; rank < replies->size(); ++rank) {
    std::string& other = (*replies)[rank];
    if (other.ends_with(kHeld)) {
      other.pop_back();
      if (!holder) holder = rank;
    }
    same = same && other == job_;
  }
  if (same) return Status::Ok();
  if (holder) return HeldSentence(Format("rank {} over MPI", *holder));
  place_ = PlaceOf(world);
  std::string launcher = external() != nullptr ? external()->launcher : "MPI";
  return Use(kMpi + world.id(), AdoptedBootstrap(RankOf(world, std::move(launcher))));
}

Status WorldJoiner::Use(std::string job, std::unique_ptr<Bootstrap> bootstrap) {
  if (!segments_.Point(&bootstrap->segments())) return HeldSentence("this process");
  job_ = std::move(job);
  MutexLock lock(switching_);
  bootstrap_.swap(bootstrap);
  return Status::Ok();
}

void WorldJoiner::NoteFailure(std::string why) {
  if (failure_.empty()) failure_ = std::move(why);
}

void WorldJoiner::Finish(int code) {
  if (!plugin_ || code != 0) return;
  if (failure_.empty()) return plugin_->finish();
  LogInfo("MPI is not finalised in this process, because its world failed: " + failure_);
}

void WorldJoiner::CloseAfterFork() {
  if (bootstrap_ != nullptr) bootstrap_->CloseAfterFork();
}

}  // namespace hvd
