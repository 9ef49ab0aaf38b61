#include "launcher/overlay/relay/relay_end.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <utility>

#include "launcher/output/text/phrases.h"
#include "launcher/overlay/relay/relay_sockets.h"
#include "runtime/base/log.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/mesh/mesh_resolver.h"

namespace hvd {
namespace {

constexpr int kPings = 5;

}  // namespace

size_t RelayProbe::Next(TimePoint now) {
  size_t bytes = 0;
  if (pings_ < kPings) {
    if (in_flight_ > 0) return 0;
    ping_sent_ = now;
    bytes = 1;
  } else {
    // Keeps as much in flight as has already arrived, so that a slow route is not filled for
    // seconds.
    const uint64_t room = std::clamp<uint64_t>(arrived_, kRelayPiece, kRelayWindow);
    if (enough(now) || in_flight_ + kRelayPiece > room) return 0;
    bytes = kRelayPiece;
    sent_ += bytes;
  }
  in_flight_ += bytes;
  return bytes;
}

void RelayProbe::Arrived(uint64_t bytes, TimePoint now) {
  in_flight_ -= std::min(bytes, in_flight_);
  if (pings_ < kPings) {
    latency_ = std::min(latency_.value_or(Duration::max()), now - ping_sent_);
    if (++pings_ == kPings) sending_since_ = now;
    return;
  }
  arrived_ += bytes;
  last_arrival_ = now;
}

bool RelayProbe::over(TimePoint now) const {
  if (now >= deadline()) return true;
  return pings_ == kPings && in_flight_ == 0 && enough(now);
}

RelayMeasured RelayProbe::result() const {
  RelayMeasured measured;
  measured.bytes = arrived_;
  measured.elapsed_ns = (last_arrival_ - sending_since_).count();
  measured.latency_ns = latency_.value_or(Duration::zero()).count();
  if (arrived_ == 0) {
    measured.trouble = "nothing came through it in " + SecondsText(kLimit);
  }
  return measured;
}

namespace {

// Credit is returned in portions of this size, because each is a message.
constexpr uint64_t kCreditPortion = kRelayWindow / 8;

// A listener on this host answers at once or not at all. Loopback first: firewalls do not block it.
UniqueFd ConnectTo(const std::string& record) {
  Result<MeshRecord> known = DecodeMeshRecord(record);
  if (!known.ok()) return {};
  std::vector<MeshAddress> addresses;
  for (const std::string& endpoint : known->endpoints) {
    if (Result<MeshAddress> address = ParseMeshEndpoint(endpoint); address.ok())
      addresses.push_back(*address);
  }
  std::stable_partition(addresses.begin(), addresses.end(),
                        [](const MeshAddress& a) { return a.IsLoopback(); });
  for (const MeshAddress& address : addresses) {
    UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket.valid()) continue;
    if (::connect(socket.get(), address.get(), address.length) == 0 || errno == EINPROGRESS)
      return socket;
  }
  return {};
}

}  // namespace

RelayEnd::RelayEnd(asio::io_context& io, Send send)
    : io_(io), send_(std::move(send)), probe_timer_(io) {}

RelayEnd::~RelayEnd() { Close(); }

void RelayEnd::Use(const UseRelay& use) {
  host_ = use.host;
  relayed_.insert(use.hosts.begin(), use.hosts.end());
  for (uint32_t host : use.hosts) {
    const uint64_t id = NextId();
    probes_.emplace(id, Probe{host, RelayProbe(SteadyNow())});
    send_(RelayOpen{id, host, kRelayProbe});
    Drive(id);
  }
  WatchProbes();
}

void RelayEnd::SetWorld(std::string job_key, std::vector<RankPlace> places) {
  job_key_ = std::move(job_key);
  places_ = std::move(places);
}

void RelayEnd::BeginGeneration(uint64_t generation) {
  generation_ = generation;
  records_.clear();
  ports_.clear();
}

// ---- the directory

void RelayEnd::NoteEntry(uint64_t generation, const std::string& key, const std::string& value) {
  std::optional<uint32_t> rank = RankOfMeshKey(key);
  if (generation == generation_ && rank) records_[*rank] = value;
}

std::string RelayEnd::ValueFor(uint64_t generation, const std::string& key,
                               const std::string& value) {
  std::optional<uint32_t> rank = RankOfMeshKey(key);
  if (generation != generation_ || !rank || *rank >= places_.size()) return value;
  const uint32_t host = places_[*rank].host;
  if (relayed_.count(host) == 0) return value;
  std::unique_ptr<RelayPort>& port = ports_[*rank];
  if (port == nullptr) {
    Result<std::unique_ptr<RelayPort>> opened =
        RelayPort::Open(io_, {job_key_, generation, *rank},
                        [this, host, rank = *rank](UniqueFd socket, std::string hello) {
                          Accepted(host, rank, std::move(socket), std::move(hello));
                        });
    if (!opened.ok()) {  // the rank will report that it cannot connect; this is the reason
      LogWarning(opened.status().message());
      return value;
    }
    port = std::move(*opened);
  }
  return EncodeMeshRecord({ThisMachine(), {port->endpoint()}});
}

// ---- connections

void RelayEnd::Accepted(uint32_t host, uint32_t rank, UniqueFd socket, std::string hello) {
  const uint64_t id = NextId();
  send_(RelayOpen{id, host, rank});
  Add(id, std::move(socket));
  Connection& connection = connections_.at(id);
  connection.socket->Spend(hello.size());
  send_(RelayData{id, std::move(hello)});
  connection.socket->Start();
}

void RelayEnd::Handle(const RelayOpen& open) {
  if (connections_.count(open.id) > 0) return;
  if (open.rank == kRelayProbe) {
    connections_[open.id];
    return;
  }
  const bool of_this_host = open.rank < places_.size() && places_[open.rank].host == open.host;
  auto record = records_.find(open.rank);
  UniqueFd socket;
  if (of_this_host && record != records_.end()) socket = ConnectTo(record->second);
  if (!socket.valid()) return send_(RelayClose{open.id});
  Add(open.id, std::move(socket));
  connections_.at(open.id).socket->Start();
}

void RelayEnd::Add(uint64_t id, UniqueFd socket) {
  RelaySocket::Handlers handlers;
  handlers.on_bytes = [this, id](std::string bytes) { send_(RelayData{id, std::move(bytes)}); };
  handlers.on_written = [this, id](size_t bytes) { ReturnCredit(id, bytes, kCreditPortion); };
  handlers.on_end = [this, id] { Ended(id); };
  connections_[id].socket =
      std::make_shared<RelaySocket>(io_, std::move(socket), std::move(handlers));
}

void RelayEnd::ReturnCredit(uint64_t id, uint64_t bytes, uint64_t at_least) {
  auto at = connections_.find(id);
  if (at == connections_.end()) return;
  at->second.owed += bytes;
  if (at->second.owed >= at_least) send_(RelayCredit{id, std::exchange(at->second.owed, 0)});
}

void RelayEnd::Ended(uint64_t id) {
  if (connections_.erase(id) > 0) send_(RelayClose{id});
}

void RelayEnd::Handle(const RelayData& data) {
  auto at = connections_.find(data.id);
  if (at == connections_.end()) return;
  if (at->second.socket == nullptr) return ReturnCredit(data.id, data.bytes.size(), 1);
  if (at->second.socket->Write(data.bytes)) return;
  at->second.socket->Close();
  Ended(data.id);
}

void RelayEnd::Handle(const RelayClose& close) {
  if (auto probe = probes_.find(close.id); probe != probes_.end()) {
    RelayMeasured measured;
    measured.host = probe->second.host;
    measured.trouble = "the other host's agent closed it";
    probes_.erase(probe);
    return send_(measured);
  }
  auto at = connections_.find(close.id);
  if (at == connections_.end()) return;
  if (at->second.socket != nullptr) at->second.socket->Finish();
  connections_.erase(at);
}

void RelayEnd::Handle(const RelayCredit& credit) {
  if (auto probe = probes_.find(credit.id); probe != probes_.end()) {
    probe->second.probe.Arrived(credit.bytes, SteadyNow());
    return Drive(credit.id);
  }
  auto at = connections_.find(credit.id);
  if (at != connections_.end() && at->second.socket != nullptr)
    at->second.socket->Allow(credit.bytes);
}

void RelayEnd::Close() {
  ports_.clear();
  probes_.clear();
  probe_timer_.cancel();
  for (auto& [id, connection] : connections_) {
    if (connection.socket != nullptr) connection.socket->Close();
  }
  connections_.clear();
}

// ---- measuring

void RelayEnd::Drive(uint64_t id) {
  Probe& probe = probes_.at(id);
  while (size_t bytes = probe.probe.Next(SteadyNow()))
    send_(RelayData{id, std::string(bytes, '\0')});
  if (!probe.probe.over(SteadyNow())) return;
  RelayMeasured measured = probe.probe.result();
  measured.host = probe.host;
  probes_.erase(id);
  send_(RelayClose{id});
  send_(measured);
}

// Ends probes that receive no answers.
void RelayEnd::WatchProbes() {
  TimePoint next = TimePoint::max();
  for (const auto& [id, probe] : probes_) next = std::min(next, probe.probe.deadline());
  if (next == TimePoint::max()) return;
  probe_timer_.expires_at(next);
  probe_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    std::vector<uint64_t> ids;
    for (const auto& [id, probe] : probes_) ids.push_back(id);
    for (uint64_t id : ids) Drive(id);
    WatchProbes();
  });
}

}  // namespace hvd
