#include "launcher/live/view_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/net/link.h"

namespace hvd {
namespace {

using Descriptor = asio::posix::stream_descriptor;

constexpr size_t kMostClients = 16;
constexpr auto kLimit = std::chrono::seconds(30);
constexpr auto kPause = std::chrono::milliseconds(10);

}  // namespace

struct ViewServer::Client {
  enum class Request { kUnknown, kViews, kDump };

  Client(asio::io_context& io, uint64_t the_id) : id(the_id), socket(io), limit(io) {}

  const uint64_t id;
  Descriptor socket;
  asio::steady_timer limit;  // while waiting for the client to send or receive
  Request request = Request::kUnknown;
  std::string out;  // not yet sent
  bool writing = false, finishing = false;
};

ViewServer::ViewServer(asio::io_context& io, Callbacks callbacks)
    : io_(io),
      callbacks_(std::move(callbacks)),
      listener_(
          io, [this](LinkClient visitor) { Add(std::move(visitor)); }, kPause) {}

ViewServer::~ViewServer() { Close(); }

Status ViewServer::Open(const std::string& job_id) {
  return listener_.Listen(std::string(kViewAddress) + job_id);
}

void ViewServer::Close() {
  listener_.Close();
  asio::error_code ignored;
  for (auto& [id, client] : clients_) {
    (void)client->socket.close(ignored);
    client->limit.cancel();
  }
  clients_.clear();
}

bool ViewServer::has_viewers() const {
  return std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) {
    return entry.second->request == Client::Request::kViews;
  });
}

bool ViewServer::IsDrained(uint64_t id) const {
  const auto found = clients_.find(id);
  return found == clients_.end() || found->second->out.empty();
}

void ViewServer::Add(LinkClient visitor) {
  if (clients_.size() >= kMostClients) return;
  auto client = std::make_shared<Client>(io_, next_++);
  client->socket.assign(visitor.socket.Release());
  clients_.emplace(client->id, client);
  StartLimit(client);
  Read(client);
}

void ViewServer::StartLimit(const std::shared_ptr<Client>& client) {
  client->limit.expires_after(kLimit);
  client->limit.async_wait([this, client](const asio::error_code& error) {
    if (!error) Drop(client->id);
  });
}

void ViewServer::Read(const std::shared_ptr<Client>& client) {
  client->socket.async_wait(Descriptor::wait_read, [this, client](const asio::error_code& error) {
    if (error || !Has(client->id)) return;
    HandleRequest(client);
  });
}

// The first packet is the request; anything after it closes the connection.
void ViewServer::HandleRequest(const std::shared_ptr<Client>& client) {
  std::array<char, 16> room;
  const ssize_t got =
      ::recv(client->socket.native_handle(), room.data(), room.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Read(client);
  const std::string_view request(room.data(), static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const bool known =
      request == kAskTop || request == kAskDump || request == kAskStacks || request == kAskNative;
  if (client->request != Client::Request::kUnknown || !known) return Drop(client->id);
  client->limit.cancel();
  client->request = request == kAskTop ? Client::Request::kViews : Client::Request::kDump;
  Read(client);
  if (client->request == Client::Request::kViews) return callbacks_.viewers_changed();
  callbacks_.dump_wanted(client->id, request == kAskDump     ? Dumped::kEvents
                                     : request == kAskStacks ? Dumped::kStacks
                                                             : Dumped::kNativeStacks);
}

void ViewServer::Publish(const std::string& view_json) {
  std::vector<std::shared_ptr<Client>> ready;
  for (const auto& [id, client] : clients_) {
    if (client->request == Client::Request::kViews && client->out.empty()) ready.push_back(client);
  }
  for (const auto& client : ready) {
    client->out = view_json + "\n";
    Write(client);
  }
}

void ViewServer::Send(uint64_t id, std::string_view bytes) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  const std::shared_ptr<Client> client = found->second;
  client->out += bytes;
  Write(client);
}

void ViewServer::Finish(uint64_t id) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  found->second->finishing = true;
  if (found->second->out.empty()) Drop(id);
}

void ViewServer::Write(const std::shared_ptr<Client>& client) {
  if (std::exchange(client->writing, true)) return;
  StartLimit(client);
  client->socket.async_wait(Descriptor::wait_write, [this, client](const asio::error_code& error) {
    client->writing = false;
    if (error || !Has(client->id)) return;
    const std::string_view piece = std::string_view(client->out).substr(0, kViewPacket);
    const ssize_t sent = ::send(client->socket.native_handle(), piece.data(), piece.size(),
                                MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return Drop(client->id);
    client->out.erase(0, static_cast<size_t>(std::max<ssize_t>(sent, 0)));
    if (!client->out.empty()) return Write(client);
    client->limit.cancel();
    Drained(client);
  });
}

void ViewServer::Drained(const std::shared_ptr<Client>& client) {
  if (client->finishing) return Drop(client->id);
  if (client->request == Client::Request::kDump) callbacks_.drained(client->id);
}

void ViewServer::Drop(uint64_t id) {
  auto found = clients_.find(id);
  if (found == clients_.end()) return;
  const std::shared_ptr<Client> client = found->second;
  clients_.erase(found);
  asio::error_code ignored;
  (void)client->socket.close(ignored);
  client->limit.cancel();
  if (client->request == Client::Request::kViews) return callbacks_.viewers_changed();
  if (client->request == Client::Request::kDump) callbacks_.drained(id);
}

}  // namespace hvd
