#include "launcher/agent/resume_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <asio/posix/stream_descriptor.hpp>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <optional>
#include <utility>
#include <vector>

#include "launcher/process/jobs/job_id.h"
#include "launcher/process/links/pass_descriptors.h"
#include "runtime/net/link.h"

namespace hvd {
namespace {

// From the connection to the key; the other side writes it as soon as it sees the greeting.
constexpr auto kPatience = std::chrono::seconds(20);
constexpr size_t kMostClients = 16;
constexpr size_t kEnds = 2;

// Whether its other end is closed, even if bytes can still be read.
bool IsOver(int input) {
  pollfd entry{input, POLLIN | POLLRDHUP, 0};
  return ::poll(&entry, 1, 0) > 0 && (entry.revents & (POLLHUP | POLLRDHUP | POLLERR)) != 0;
}

}  // namespace

struct ResumeListener::Client {
  explicit Client(asio::io_context& io) : socket(io), watched(io), limit(io) {}
  asio::posix::stream_descriptor socket, watched;  // the visitor; a copy of `stream.input`
  asio::steady_timer limit;
  ReturnedStream stream;
  std::string received;
  bool over = false;
};

ResumeListener::ResumeListener(asio::io_context& io, OnReturn on_return)
    : io_(io),
      on_return_(std::move(on_return)),
      listener_(io, [this](LinkClient visitor) { Accept(std::move(visitor)); }) {}

ResumeListener::~ResumeListener() {
  while (!clients_.empty()) Dismiss(clients_.front());
}

void ResumeListener::Accept(LinkClient visitor) {
  if (clients_.size() >= kMostClients) Dismiss(clients_.front());
  auto client = std::make_shared<Client>(io_);
  client->socket.assign(visitor.socket.Release());
  clients_.push_back(client);
  client->limit.expires_after(kPatience);
  client->limit.async_wait([this, client](const asio::error_code& error) {
    if (!error && !client->over) Dismiss(client);
  });
  WaitForEnds(client);
}

void ResumeListener::WaitForEnds(const ClientPtr& client) {
  client->socket.async_wait(
      asio::posix::stream_descriptor::wait_read, [this, client](const asio::error_code& error) {
        if (error || client->over) return;
        std::optional<PassedDescriptors> passed =
            ReceiveDescriptors(client->socket.native_handle());
        if (!passed) return WaitForEnds(client);
        std::vector<UniqueFd> ends = std::move(passed->descriptors);
        if (ends.size() != kEnds) return Dismiss(client);
        client->stream.input = std::move(ends[0]);
        client->stream.output = std::move(ends[1]);
        int input = client->stream.input.get();
        ::fcntl(input, F_SETFL, ::fcntl(input, F_GETFL) | O_NONBLOCK);
        asio::error_code unwatchable;  // a plain file, say
        client->watched.assign(::fcntl(input, F_DUPFD_CLOEXEC, 0), unwatchable);
        if (unwatchable) return Dismiss(client);
        WaitForKey(client);
      });
}

void ResumeListener::WaitForKey(const ClientPtr& client) {
  client->watched.async_wait(asio::posix::stream_descriptor::wait_read,
                             [this, client](const asio::error_code& error) {
                               if (!error && !client->over) ReadKey(client);
                             });
}

// Reads not a byte beyond the key: those that follow belong to the stream.
void ResumeListener::ReadKey(const ClientPtr& client) {
  const size_t length = std::max(driver_key_.size(), successor_key_.size());
  if (client->received.size() >= length) return Dismiss(client);
  std::string bytes(length - client->received.size(), '\0');
  ssize_t got = ::read(client->stream.input.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return WaitForKey(client);
  if (got <= 0) return Dismiss(client);
  client->received.append(bytes, 0, static_cast<size_t>(got));
  if (client->received.size() < length) return WaitForKey(client);
  const auto is = [&](const std::string& key) {
    return !key.empty() && SameKey(client->received, key);
  };
  const bool of_successor = is(successor_key_);
  if (!of_successor && !is(driver_key_)) return Dismiss(client);
  // A driver that has been killed since must not displace the one that took over from it.
  if (of_successor && IsOver(client->stream.input.get())) return Dismiss(client);
  ReturnedStream stream = std::move(client->stream);
  stream.client = UniqueFd(::fcntl(client->socket.native_handle(), F_DUPFD_CLOEXEC, 0));
  stream.of_successor = of_successor;
  Dismiss(client);
  on_return_(std::move(stream));
}

void ResumeListener::Dismiss(const ClientPtr& the_visitor) {
  ClientPtr client = the_visitor;  // it may be the one in the list
  client->over = true;
  client->socket.close();
  client->watched.close();
  client->limit.cancel();
  client->stream = {};
  clients_.remove(client);
}

// Not a secret once the agent listens there; random enough not to be guessed before.
std::string MakeListenerAddress() { return "hvd-resume-" + MakeJobKey().substr(0, 24); }

Status SendStreamEnds(int socket, int input, int output) {
  return PassDescriptors(socket, std::string(1, '\0'), {input, output});
}

}  // namespace hvd
