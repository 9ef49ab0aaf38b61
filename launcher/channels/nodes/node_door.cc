#include "launcher/channels/nodes/node_door.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launcher/channels/nodes/node_order.h"
#include "launcher/channels/own_calls.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

constexpr Duration kHandshakeLimit = std::chrono::seconds(10);
// From the close of a channel to the end of its connection: the agent ends its workers first.
constexpr Duration kCloseLimit = std::chrono::seconds(4);
// Delay after which the owner is informed why a channel waits.
constexpr Duration kFirstTrouble = std::chrono::seconds(1);
constexpr int kSendLimitMs = 2000;

// The other side is gone: its process ended, or its host said so.
bool IsClosed(int socket) {
  char byte = 0;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

// Sends a few bytes to a socket whose buffer is empty.
void SendAll(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
      continue;
    }
    pollfd ready{socket, POLLOUT, 0};
    const bool may_pass = sent < 0 && (errno == EAGAIN || errno == EINTR);
    if (!may_pass || ::poll(&ready, 1, kSendLimitMs) <= 0) return;
  }
}

void ForgetClosedSpares(WaitingNodes& waiting) {
  std::erase_if(waiting.spares,
                [](const auto& spare) { return IsClosed(spare.second.socket.get()); });
}

// Every machine with a number has a connection on which to receive the exit code, and each number
// without a machine is matched by a spare.
bool AllAreThere(WaitingNodes& waiting) {
  ForgetClosedSpares(waiting);
  size_t free_numbers = 0;
  for (uint32_t node = 1; node < waiting.names.size(); ++node) {
    if (waiting.lines.contains(node)) continue;
    if (waiting.numbers.IsTaken(node)) return false;
    ++free_numbers;
  }
  return free_numbers <= waiting.spares.size();
}

}  // namespace

uint32_t WaitingNodes::NumberOf(const std::string& name) const {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? 0 : static_cast<uint32_t>(at - names.begin());
}

class NodeDoor::Channel final : public HostChannel {
 public:
  Channel(std::shared_ptr<NodeDoor> door, uint32_t node, std::string command, Purpose purpose)
      : door_(std::move(door)),
        node_(node),
        may_begin_(purpose == Purpose::kBegin),
        unsent_(OrderText({std::move(command), 0})),
        later_(door_->io_) {}
  ~Channel() override { Forget(); }

  void Open(ChannelObserver& observer) override {
    observer_ = &observer;
    observer_->OnStage(ChannelStage::kConnect);
    if (!door_->listening_.ok())
      return EndLater(
          {ChannelStage::kConnect, "hvdrun cannot listen for it: " + door_->listening_.message()});
    if (std::optional<SealedLine> line = door_->LineOfNode(node_)) return Run(std::move(*line));
    if (std::optional<SealedLine> line = Spare()) return Run(std::move(*line));
    door_->takers_[node_] = this;
    later_.After(kFirstTrouble, [this] {
      later_.After(kNodeAbsence - kFirstTrouble, [this] {
        if (std::optional<SealedLine> line = Spare()) Run(std::move(*line));
      });
      observer_->OnTrouble({ChannelStage::kConnect,
                            Format("it has not dialed port {} of this node; the same command, with "
                                   "the same key, is to run there",
                                   door_->waiting_->port)});
    });
  }

  // Another machine has the number of one that has dialed.
  void ReportTwoMachines(uint32_t number) {
    observer_->OnTrouble(
        {ChannelStage::kConnect,
         Format("two machines are node {0}: one that was started with --node-rank {0} has dialed, "
                "and another has that number; start all with --node-rank, or none",
                number)});
  }
  bool may_begin() const { return may_begin_; }
  WantedNode Wanted() const {
    return {node_, door_->waiting_->wanted.try_emplace(node_, door_->clock_.Now()).first->second};
  }
  void Run(SealedLine line) {
    Forget();
    door_->waiting_->wanted.erase(node_);
    pump_ = std::make_unique<SealedPump>(
        door_->io_, std::move(line),
        BytePumpHandlers{[this](std::string_view bytes) { OnBytes(bytes); },
                         [this] { OnWritable(); }, [this] { OnLineEnd(); }});
    observer_->OnStage(ChannelStage::kExec);
    Flush();
  }

  size_t Write(std::string_view bytes) override {
    if (reported_) return bytes.size();
    if (!pump_ || !unsent_.empty()) return 0;
    return pump_->Write(bytes);
  }

  void Close() override {
    if (closed_ || reported_) return;
    closed_ = true;
    if (!pump_) return EndLater({ChannelStage::kClosed, ""});
    pump_->FinishWriting();
    later_.After(kCloseLimit, [this] { End({ChannelStage::kClosed, ""}); });
  }

  void Kill() override {
    if (reported_) return;
    EndLater({closed_ ? ChannelStage::kClosed : Stage(), "it was ended by force"});
  }

 private:
  std::optional<SealedLine> Spare() {
    return may_begin_ ? door_->SpareFor(Wanted()) : std::nullopt;
  }
  ChannelStage Stage() const {
    if (!pump_) return ChannelStage::kConnect;
    return heard_ ? ChannelStage::kRunning : ChannelStage::kExec;
  }
  void Flush() { unsent_.erase(0, pump_->Write(unsent_)); }
  void OnBytes(std::string_view bytes) {
    if (!std::exchange(heard_, true)) observer_->OnStage(ChannelStage::kRunning);
    if (!closed_) observer_->OnBytes(bytes);
  }
  void OnWritable() {
    Flush();
    if (unsent_.empty()) observer_->OnWritable();
  }
  void OnLineEnd() {
    if (closed_) return End({ChannelStage::kClosed, ""});
    const std::string& trouble = pump_->trouble();
    End({Stage(), trouble.empty() ? "its connection to hvdrun was closed" : trouble,
         /*may_pass=*/!heard_});
  }
  void EndLater(ChannelEnd end) {
    reported_ = true;
    Forget();
    if (pump_) pump_->Close();
    later_.Post([this, end] { observer_->OnEnd(end); });
  }
  void End(const ChannelEnd& end) {
    if (!reported_) EndLater(end);
  }
  // Stops waiting.
  void Forget() {
    later_.Cancel();
    const auto taker = door_->takers_.find(node_);
    if (taker != door_->takers_.end() && taker->second == this) door_->takers_.erase(taker);
  }

  const std::shared_ptr<NodeDoor> door_;
  const uint32_t node_;
  const bool may_begin_;
  std::string unsent_;  // of the order
  ChannelObserver* observer_ = nullptr;
  OwnCalls later_;
  std::unique_ptr<SealedPump> pump_;  // none: the node has not dialed
  bool heard_ = false, closed_ = false, reported_ = false;
};

NodeDoor::NodeDoor(asio::io_context& io, const Clock& clock, std::shared_ptr<WaitingNodes> waiting)
    : io_(io), clock_(clock), waiting_(std::move(waiting)) {}

NodeDoor::~NodeDoor() {
  if (loop_) loop_->Close();
}

Status NodeDoor::Listen() {
  Result<MeshListener> listener = OpenMeshListener({{}, waiting_->port, waiting_->port}, 0);
  if (!listener.ok()) return listening_ = listener.status();
  MeshConnectorOptions options;
  options.identity = {waiting_->key, kNodeGeneration, 0};
  options.connect_timeout = options.handshake_timeout = kHandshakeLimit;
  options.name = [](uint32_t node) { return Format("node {}", node); };
  options.session_keys = true;
  loop_ = std::make_unique<ConnectorLoop>(io_, clock_, options, std::move(*listener),
                                          static_cast<MeshConnectorOwner&>(*this));
  return Status::Ok();
}

std::unique_ptr<HostChannel> NodeDoor::Reach(const std::string& name, std::string command,
                                             Purpose purpose) {
  return std::make_unique<Channel>(shared_from_this(), waiting_->NumberOf(name), std::move(command),
                                   purpose);
}

void NodeDoor::Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) {
  SealedLine line = LineOf(std::move(socket), greeting.keys, greeting.incoming);
  if (peer == 0 || (!IsNodeId(peer) && peer >= waiting_->names.size())) return;  // closes it
  const std::optional<uint32_t> number = NumberFor(peer);
  if (!number && IsNodeId(peer)) {
    ForgetClosedSpares(*waiting_);
    waiting_->spares.insert_or_assign(peer, std::move(line));
  }
  if (!number) return;
  waiting_->spares.erase(peer);
  const auto taker = takers_.find(*number);
  if (taker != takers_.end()) return taker->second->Run(std::move(line));
  waiting_->lines.insert_or_assign(*number, std::move(line));  // a node that has dialed again
}

std::optional<uint32_t> NodeDoor::NumberFor(uint32_t peer) {
  std::vector<WantedNode> wanted;
  if (IsNodeId(peer)) {
    for (const auto& [node, taker] : takers_) {
      if (taker->may_begin()) wanted.push_back(taker->Wanted());
    }
  } else {
    const auto taker = takers_.find(peer);
    wanted.push_back(taker != takers_.end() ? taker->second->Wanted()
                                            : WantedNode{peer, clock_.Now()});
  }
  const std::optional<uint32_t> number = waiting_->numbers.Take(peer, wanted, clock_.Now());
  if (!number && !IsNodeId(peer)) {
    for (const auto& [node, taker] : takers_) taker->ReportTwoMachines(peer);
  }
  return number;
}

std::optional<SealedLine> NodeDoor::LineOfNode(uint32_t node) {
  auto waits = waiting_->lines.extract(node);
  if (waits.empty() || IsClosed(waits.mapped().socket.get())) return std::nullopt;
  return std::move(waits.mapped());
}

std::optional<SealedLine> NodeDoor::SpareFor(WantedNode wanted) {
  ForgetClosedSpares(*waiting_);
  for (auto& [id, line] : waiting_->spares) {
    if (waiting_->numbers.Take(id, {wanted}, clock_.Now()) != wanted.number) continue;
    SealedLine taken = std::move(line);
    waiting_->spares.erase(id);
    return taken;
  }
  return std::nullopt;
}

void EndNodes(WaitingNodes& waiting, int code, Duration limit) {
  asio::io_context io{1};
  const SteadyClock clock;
  const TimePoint end = clock.Now() + limit;
  // No deleter: it owns nothing of this.
  auto door = std::make_shared<NodeDoor>(
      io, clock, std::shared_ptr<WaitingNodes>(std::shared_ptr<void>(), &waiting));
  if (door->Listen().ok()) {
    while (!AllAreThere(waiting) && clock.Now() < end) io.run_for(std::chrono::milliseconds(20));
  }
  for (auto* lines : {&waiting.lines, &waiting.spares}) {
    for (auto& [node, line] : *lines) {
      RecordSealer sealer(line.seals_with);
      std::string sealed;
      if (sealer.Seal(OrderText({std::nullopt, code}), sealed).ok())
        SendAll(line.socket.get(), sealed);
      ::shutdown(line.socket.get(), SHUT_WR);
    }
    lines->clear();
  }
}

}  // namespace hvd
