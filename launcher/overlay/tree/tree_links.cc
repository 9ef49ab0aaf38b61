#include "launcher/overlay/tree/tree_links.h"

#include <fcntl.h>

#include <asio/post.hpp>
#include <utility>

#include "launcher/process/byte_pump.h"
#include "runtime/net/sealed_records.h"
#include "runtime/net/stream.h"

namespace hvd {
namespace {

constexpr Duration kConnectLimit = std::chrono::seconds(10);
constexpr Duration kHandshakeLimit = std::chrono::seconds(5);

StreamOptions OptionsOf(uint32_t child) {
  StreamOptions options;
  options.job = child;  // the peer was authenticated before; this distinguishes the links
  return options;
}

MeshConnectorOptions ConnectorOptionsOf(const TreeLinksOptions& options) {
  MeshConnectorOptions connector;
  connector.identity = {options.job_key, kTreeGeneration, options.host};
  connector.connect_timeout = kConnectLimit;
  connector.handshake_timeout = kHandshakeLimit;
  connector.name = options.name;
  connector.session_keys = true;
  return connector;
}

}  // namespace

struct TreeLinks::Link {
  Link(uint32_t the_peer, uint32_t child) : peer(the_peer), stream(OptionsOf(child)) {}
  const uint32_t peer;
  Stream stream;
  std::unique_ptr<BytePump> pump;  // none: not connected yet
  std::optional<RecordSealer> sealer;
  std::optional<RecordOpener> opener;
  std::string sealed;  // of the stream's bytes, and not written yet
};

TreeLinks::TreeLinks(asio::io_context& io, TreeLinksObserver& observer, TreeLinksOptions options,
                     MeshListener listener)
    : io_(io),
      observer_(observer),
      options_(std::move(options)),
      connector_(io, clock_, ConnectorOptionsOf(options_), std::move(listener), *this) {}

TreeLinks::~TreeLinks() = default;

void TreeLinks::Expect(const std::vector<uint32_t>& children) {
  for (uint32_t child : children) links_.emplace(child, std::make_unique<Link>(child, child));
}

void TreeLinks::Dial(uint32_t parent, std::vector<MeshAddress> addresses) {
  parent_ = parent;
  links_.emplace(parent, std::make_unique<Link>(parent, options_.host));
  connector_.Dial(parent, std::move(addresses));
}

// ---- connecting

void TreeLinks::Connected(uint32_t peer, UniqueFd socket, const MeshGreeting& greeting) {
  auto at = links_.find(peer);
  const bool wanted =
      at != links_.end() && at->second->pump == nullptr && greeting.incoming == (peer != parent_);
  if (!wanted) return;  // closes it
  Link& link = *at->second;
  const MeshSessionKeys& keys = greeting.keys;
  link.sealer.emplace(greeting.incoming ? keys.from_responder : keys.from_initiator);
  link.opener.emplace(greeting.incoming ? keys.from_initiator : keys.from_responder);
  UniqueFd write_end(::fcntl(socket.get(), F_DUPFD_CLOEXEC, 0));
  link.pump = std::make_unique<BytePump>(
      io_, std::move(socket), std::move(write_end),
      BytePumpHandlers{[this, peer](std::string_view bytes) { Receive(peer, bytes); },
                       [this, &link] { Flush(link); },
                       [this, peer] { Lose(peer, Aborted("the connection was closed")); }});
  link.stream.Attach(SteadyNow());
  Flush(link);
}

void TreeLinks::Unreachable(uint32_t peer, Status why) { Lose(peer, Aborted(why.message())); }

// ---- messages

void TreeLinks::Receive(uint32_t peer, std::string_view bytes) {
  auto at = links_.find(peer);
  if (at == links_.end()) return;
  Stream& stream = at->second->stream;
  std::string opened;
  Status status = at->second->opener->Open(bytes, opened);
  if (status.ok()) status = stream.Receive(opened, SteadyNow());
  while (status.ok()) {
    std::optional<StreamMessage> message = stream.Next();
    if (!message) break;
    status = Handle(peer, message->bytes);
  }
  if (!status.ok()) return Lose(peer, status);
  Flush(*at->second);
}

Status TreeLinks::Handle(uint32_t peer, const std::string& message) {
  if (peer == parent_) {
    Result<ToAgent> decoded = DecodeToAgent(message);
    if (!decoded.ok()) return decoded.status();
    const auto* down = std::get_if<TreeDown>(&*decoded);
    if (down == nullptr)
      return InvalidArgument("its agent sends a message that does not go down the tree");
    return observer_.OnFromAbove(*down);
  }
  Result<ToDriver> decoded = DecodeToDriver(message);
  if (!decoded.ok()) return decoded.status();
  auto* up = std::get_if<TreeUp>(&*decoded);
  if (up == nullptr)
    return InvalidArgument("its agent sends a message that does not go up the tree");
  return observer_.OnFromBelow(peer, std::move(*up));
}

void TreeLinks::SendUp(const TreeUp& batch) {
  auto at = parent_ ? links_.find(*parent_) : links_.end();
  if (at == links_.end()) return;
  at->second->stream.SendControl(EncodeToDriver(batch));
  Flush(*at->second);
}

void TreeLinks::SendDown(uint32_t child, const TreeDown& message) {
  auto at = links_.find(child);
  if (at == links_.end() || child == parent_) return;
  at->second->stream.SendControl(EncodeToAgent(message));
  Flush(*at->second);
}

void TreeLinks::Flush(Link& link) {
  while (link.pump != nullptr && link.pump->open()) {
    if (link.sealed.empty()) {
      std::string_view out = link.stream.Outgoing();
      if (out.empty()) return;
      Status status = link.sealer->Seal(out, link.sealed);
      if (!status.ok()) {
        link.pump->Close();
        return asio::post(io_, [this, peer = link.peer, status] { Lose(peer, status); });
      }
      link.stream.Consume(out.size());
    }
    link.sealed.erase(0, link.pump->Write(link.sealed));
    if (!link.sealed.empty()) return;
  }
}

void TreeLinks::Tick(TimePoint now) {
  for (auto& [peer, link] : links_) {
    if (now >= link->stream.NextTick()) link->stream.Tick(now);
    Flush(*link);
  }
}

void TreeLinks::Lose(uint32_t peer, const Status& why) {
  auto at = links_.find(peer);
  if (at == links_.end()) return;
  // This may be called from a pump, which is destroyed after that.
  std::shared_ptr<Link> lost = std::move(at->second);
  if (lost->pump != nullptr) lost->pump->Close();
  links_.erase(at);
  asio::post(io_, [this, lost, peer, why] {
    if (peer == parent_) return observer_.OnAboveLost(why);
    observer_.OnBelowLost(peer, why);
  });
}

void TreeLinks::Close() {
  connector_.Close();
  for (auto& [peer, link] : links_) {
    if (link->pump != nullptr) link->pump->Close();
  }
}

}  // namespace hvd
