#include "launcher/resume_door.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio/steady_timer.hpp>
#include <cerrno>
#include <cstring>
#include <utility>

#include "launcher/job_id.h"
#include "runtime/net/link.h"

namespace hvd {
namespace {

// From the knock to the key; the other side writes it as soon as it sees the greeting.
constexpr auto kPatience = std::chrono::seconds(20);
constexpr size_t kMostVisitors = 16;
constexpr size_t kEnds = 2;

// Descriptors that came in this message; all of them, so that none stays open unseen.
std::vector<UniqueFd> DescriptorsIn(msghdr& header) {
  std::vector<UniqueFd> found;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
      found.emplace_back(fd);
    }
  }
  return found;
}

}  // namespace

struct ResumeDoor::Visitor {
  explicit Visitor(asio::io_context& io) : socket(io), watched(io), limit(io) {}
  asio::posix::stream_descriptor socket, watched;  // the visitor; a copy of `stream.input`
  asio::steady_timer limit;
  ReturnedStream stream;
  std::string said;
  bool over = false;
};

ResumeDoor::ResumeDoor(asio::io_context& io, std::string key, OnReturn on_return)
    : io_(io), key_(std::move(key)), on_return_(std::move(on_return)), listener_(io) {}

ResumeDoor::~ResumeDoor() {
  while (!visitors_.empty()) Dismiss(visitors_.front());
}

Status ResumeDoor::Open(const std::string& abstract_name) {
  Result<UniqueFd> fd = ListenLink(abstract_name);
  if (!fd.ok()) return fd.status();
  listener_.assign(fd->Release());
  WaitToAccept();
  return Status::Ok();
}

void ResumeDoor::WaitToAccept() {
  listener_.async_wait(asio::posix::stream_descriptor::wait_read,
                       [this](const asio::error_code& error) {
                         if (error) return;
                         AcceptAll();
                         WaitToAccept();
                       });
}

void ResumeDoor::AcceptAll() {
  while (std::optional<LinkVisitor> accepted = AcceptLink(listener_.native_handle())) {
    if (visitors_.size() >= kMostVisitors) Dismiss(visitors_.front());
    auto visitor = std::make_shared<Visitor>(io_);
    visitor->socket.assign(accepted->socket.Release());
    visitors_.push_back(visitor);
    visitor->limit.expires_after(kPatience);
    visitor->limit.async_wait([this, visitor](const asio::error_code& error) {
      if (!error && !visitor->over) Dismiss(visitor);
    });
    WaitForEnds(visitor);
  }
}

void ResumeDoor::WaitForEnds(const VisitorPtr& visitor) {
  visitor->socket.async_wait(
      asio::posix::stream_descriptor::wait_read, [this, visitor](const asio::error_code& error) {
        if (error || visitor->over) return;
        char byte = 0;
        iovec data{&byte, 1};
        alignas(cmsghdr) std::array<char, CMSG_SPACE(kEnds * sizeof(int))> control{};
        msghdr header{};
        header.msg_iov = &data;
        header.msg_iovlen = 1;
        header.msg_control = control.data();
        header.msg_controllen = control.size();
        ssize_t got =
            ::recvmsg(visitor->socket.native_handle(), &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return WaitForEnds(visitor);
        std::vector<UniqueFd> ends = got > 0 ? DescriptorsIn(header) : std::vector<UniqueFd>();
        if (ends.size() != kEnds) return Dismiss(visitor);
        visitor->stream.input = std::move(ends[0]);
        visitor->stream.output = std::move(ends[1]);
        int input = visitor->stream.input.get();
        ::fcntl(input, F_SETFL, ::fcntl(input, F_GETFL) | O_NONBLOCK);
        asio::error_code unwatchable;  // a plain file, say
        visitor->watched.assign(::fcntl(input, F_DUPFD_CLOEXEC, 0), unwatchable);
        if (unwatchable) return Dismiss(visitor);
        WaitForKey(visitor);
      });
}

void ResumeDoor::WaitForKey(const VisitorPtr& visitor) {
  visitor->watched.async_wait(asio::posix::stream_descriptor::wait_read,
                              [this, visitor](const asio::error_code& error) {
                                if (!error && !visitor->over) ReadKey(visitor);
                              });
}

// Not a byte more than the key: what follows is the stream's.
void ResumeDoor::ReadKey(const VisitorPtr& visitor) {
  std::string bytes(key_.size() - visitor->said.size(), '\0');
  ssize_t got = ::read(visitor->stream.input.get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return WaitForKey(visitor);
  if (got <= 0) return Dismiss(visitor);
  visitor->said.append(bytes, 0, static_cast<size_t>(got));
  if (visitor->said.size() < key_.size()) return WaitForKey(visitor);
  if (!SameKey(visitor->said, key_)) return Dismiss(visitor);
  ReturnedStream stream = std::move(visitor->stream);
  stream.visitor = UniqueFd(::fcntl(visitor->socket.native_handle(), F_DUPFD_CLOEXEC, 0));
  Dismiss(visitor);
  on_return_(std::move(stream));
}

void ResumeDoor::Dismiss(const VisitorPtr& the_visitor) {
  VisitorPtr visitor = the_visitor;  // it may be the one in the list
  visitor->over = true;
  visitor->socket.close();
  visitor->watched.close();
  visitor->limit.cancel();
  visitor->stream = {};
  visitors_.remove(visitor);
}

Status SendStreamEnds(int socket, int input, int output) {
  const std::array<int, kEnds> ends = {input, output};
  char byte = 0;
  iovec data{&byte, 1};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof ends)> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  cmsghdr* c = CMSG_FIRSTHDR(&header);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof ends);
  std::memcpy(CMSG_DATA(c), ends.data(), sizeof ends);
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == 1 ? Status::Ok() : SystemError("the agent does not take the connection", errno);
}

}  // namespace hvd
