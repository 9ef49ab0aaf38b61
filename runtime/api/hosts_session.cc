#include "runtime/api/hosts_session.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "runtime/api/compare_hosts.h"
#include "runtime/base/text/format.h"
#include "runtime/net/trouble.h"

namespace hvd {
namespace {

constexpr Duration kSpin = std::chrono::microseconds(50);
constexpr Duration kLinksEvery = std::chrono::seconds(1);
// Too few bytes to measure a link by.
constexpr uint64_t kLittle = 256 * 1024;

uint32_t LocalRankOf(const World& world, uint32_t rank) { return world.places[rank].local_rank; }

// Waking a sleeping receiver costs the sender time for each packet, so receivers spin; but not on
// cores that ranks need.
Duration SpinOf(const World& world) {
  return world.local_size < AllowedCores() ? kSpin : Duration::zero();
}

// Earlier than the engines report a stall to the user, or end it.
Duration ReportAwaitedAfter(const EngineOptions& engine) {
  const Duration warning = engine.stall_warning, shutdown = engine.stall_shutdown;
  if (warning.count() <= 0 || shutdown.count() <= 0) return std::max(warning, shutdown) / 2;
  return std::min(warning, shutdown) / 2;
}

HostsBackend::Options OptionsFor(const World& world, Peers& peers, const EngineOptions& engine,
                                 bool over_mpi) {
  HostsBackend::Options options;
  options.nudge_host = [&peers] { peers.Nudge(); };
  HostLeaderOptions& leader_service = options.leader_service;
  for (const RankPlace& place : world.places) leader_service.map.host_of.push_back(place.host);
  leader_service.map.rank = world.rank;
  // The variables were checked before the world was joined.
  Result<HostsSettings> settings = HostsSettingsFromEnv();
  if (settings.ok()) {
    // A mesh learns of losses from the kernel and from the launcher; MPI does not report them.
    if (over_mpi) leader_service.idle_limit = settings->timeout;
    leader_service.coordinator.fusion_bytes = settings->fusion_bytes;
    leader_service.coordinator.cut = settings->cut;
  }
  const Result<OneHostSettings> one_host = OneHostSettingsFromEnv();
  if (one_host.ok() && one_host->tuned)
    leader_service.coordinator.tuned = &world.page.header().tuned;
  leader_service.coordinator.stall_warning = engine.stall_warning;
  leader_service.coordinator.report_awaited_after = ReportAwaitedAfter(engine);
  leader_service.compare = CompareHosts;
  const JobPage page = world.page;
  leader_service.wake_host = [page] {
    for (uint32_t r = 0; r < page.local_size(); ++r) Ring(page.rank(r).bell);
  };
  leader_service.broken = [page]() -> std::optional<std::string> {
    if (!page.broken()) return std::nullopt;
    return page.broken_text();
  };
  leader_service.has_left = [page, places = world.places](uint32_t rank) {
    const RankBlock& block = page.rank(places[rank].local_rank);
    return block.state.load(std::memory_order_acquire) == static_cast<uint32_t>(RankState::kLeft);
  };
  return options;
}

}  // namespace

Group WorldGroup(const World& world) {
  if (world.hosts == 1) return WorldOnOneHost(world.rank, world.size);
  Group group;
  group.ranks.resize(world.size);
  std::iota(group.ranks.begin(), group.ranks.end(), 0u);
  group.index = world.rank;
  for (uint32_t rank = 0; rank < world.size; ++rank) {
    if (world.places[rank].host == world.host()) group.local_to_group.push_back(rank);
  }
  std::ranges::sort(group.local_to_group, {},
                    [&](uint32_t rank) { return LocalRankOf(world, rank); });
  group.local.resize(group.local_to_group.size());
  std::iota(group.local.begin(), group.local.end(), 0u);
  group.local_index = world.local_rank;
  return group;
}

Result<std::unique_ptr<InterHostComm>> HostsSession::Connect(const World& world,
                                                             const BackendFacts& facts,
                                                             Bootstrap& bootstrap, MpiWorld* mpi) {
  const BackendRow* backend = InterHostBackend(facts);
  if (backend == nullptr) return std::unique_ptr<InterHostComm>();
  const Group group = WorldGroup(world);
  if (!std::ranges::is_sorted(group.local_to_group)) {
    return Unsupported(
        Format("the ranks of host {} are numbered in another order on the host than in the world; "
               "let the launcher number both alike",
               world.host()));
  }
  Result<HostsSettings> settings = HostsSettingsFromEnv();
  if (!settings.ok()) return settings.status();
  InterHostOptions options;
  options.rank = world.rank;
  options.generation = world.generation;
  options.job_key = world.data_key;
  options.listen = world.listen;
  options.connect_timeout = settings->timeout;
  options.spin = SpinOf(world);
  return backend->open({options, bootstrap.directory(), mpi});
}

HostsSession::HostsSession(const World& world, std::unique_ptr<InterHostComm> comm, Peers& peers,
                           Backend& one_host, SharedHeap& heap, SharedMemoryMap& peer_memory,
                           const EngineOptions& engine, bool over_mpi)
    : page_(world.page),
      comm_(std::move(comm)),
      backend_(one_host, heap, peer_memory, *comm_, OptionsFor(world, peers, engine, over_mpi)),
      rank_(world.rank) {}

void HostsSession::PollAgent(Bootstrap& bootstrap) {
  if (aborted_) return;
  if (!page_.broken()) return ReportSilences(bootstrap);
  aborted_ = true;
  backend_.Abort(Aborted(page_.broken_text()));
}

std::vector<InterHostLink> HostsSession::NewOnLinks(TimePoint now) {
  if (now < next_links_) return {};
  next_links_ = now + kLinksEvery;
  std::vector<InterHostLink> fresh;
  for (const InterHostLink& sum : comm_->Links()) {
    InterHostLink& noted = noted_[sum.rank];
    if (sum.bytes < noted.bytes || sum.busy_us < noted.busy_us) noted = {};  // a new connection
    const InterHostLink link{sum.rank, sum.bytes - noted.bytes, sum.busy_us - noted.busy_us};
    if (link.bytes < kLittle) continue;
    fresh.push_back(link);
    noted = sum;
  }
  return fresh;
}

// Reports each silence once, and again when it is over.
void HostsSession::ReportSilences(Bootstrap& bootstrap) {
  std::vector<InterHostSilence> silences = comm_->Silences();
  const auto among = [](const std::vector<InterHostSilence>& all, uint32_t rank) {
    return std::ranges::find(all, rank, &InterHostSilence::rank) != all.end();
  };
  for (const InterHostSilence& silence : silences) {
    if (!among(reported_silences_, silence.rank)) ReportSilence(bootstrap, silence);
  }
  for (const InterHostSilence& silence : reported_silences_) {
    if (!among(silences, silence.rank)) ReportSilence(bootstrap, {silence.rank, Duration::zero()});
  }
  reported_silences_ = std::move(silences);
}

// If the agent is gone there is no one to report to.
void HostsSession::ReportSilence(Bootstrap& bootstrap, const InterHostSilence& silence) {
  const auto silent_ms = std::chrono::duration_cast<std::chrono::milliseconds>(silence.silent);
  const TroubleEntry entry = EncodeTrouble(
      RankSilent{rank_, silence.rank, static_cast<uint32_t>(silent_ms.count())}, reports_sent_++);
  (void)bootstrap.directory().Put(entry.key, entry.value);
}

}  // namespace hvd
