#include "runtime/net/link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/text/format.h"
#include "runtime/net/fields.h"
#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

constexpr size_t kMaxText = 2048;
constexpr size_t kMaxAddresses = 16, kMaxAddress = 64;

template <typename Text>
CutText<Text> Cut(Text& text) {
  return {text, kMaxText};
}

}  // namespace

void Fields(auto& f, MaybeConst<LinkHello> auto& m) {
  f(m.version);
  if (m.version != kLinkVersion && f.SkipRest()) return;
  f(m.slot, m.pid, Cut(m.job_key), m.rank, m.size);
}
void Fields(auto&, MaybeConst<LinkJoin> auto&) {}
void Fields(auto& f, MaybeConst<LinkGoodbye> auto& m) { f(m.generation, m.since_ns); }
void Fields(auto& f, MaybeConst<LinkAllocate> auto& m) { f(m.bytes); }
void Fields(auto& f, MaybeConst<LinkFetch> auto& m) { f(m.segment); }
void Fields(auto& f, MaybeConst<LinkFree> auto& m) { f(m.segment); }
void Fields(auto& f, MaybeConst<ListenHints> auto& m) {
  f(CutTo<uint8_t>(m.addresses, kMaxAddresses,
                   [](auto& each, auto& address) { each(CutText(address, kMaxAddress)); }),
    m.first_port, m.last_port);
}
void Fields(auto& f, MaybeConst<LinkGeneration> auto& m) {
  f(m.generation, m.page_bytes, m.rank, m.size, m.local_rank, m.local_size, m.cross_rank,
    m.cross_size, m.homogeneous, Cut(m.data_key), m.listen, m.ranks_change);
}
void Fields(auto& f, MaybeConst<LinkBroken> auto& m) { f(m.generation, Cut(m.reason)); }
void Fields(auto& f, MaybeConst<LinkSegment> auto& m) { f(m.segment, m.bytes, Cut(m.error)); }
void Fields(auto& f, MaybeConst<LinkRefused> auto& m) { f(Cut(m.reason)); }
void Fields(auto& f, MaybeConst<LinkPut> auto& m) {
  f(m.generation, CutText(m.key, kMaxKvKey), CutText(m.value, kMaxKvValue));
}
void Fields(auto& f, MaybeConst<LinkGet> auto& m) { f(m.generation, CutText(m.key, kMaxKvKey)); }
void Fields(auto& f, MaybeConst<LinkValue> auto& m) {
  f(m.generation, CutText(m.key, kMaxKvKey), CutText(m.value, kMaxKvValue));
}
void Fields(auto& f, MaybeConst<LinkLayout> auto& m) {
  f(m.generation, CutTo<uint16_t>(m.runs, kMaxRunsPerMessage));
}
void Fields(auto& f, MaybeConst<LinkDismissed> auto& m) { f(Cut(m.reason)); }

namespace {

Result<sockaddr_un> AbstractAddress(const std::string& name, socklen_t* length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof address.sun_path - 1) {
    return InvalidArgument(
        Format("the agent's address has {} bytes; 1 to 107 are possible", name.size()));
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

Result<UniqueFd> UnixSocket(int flags) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0));
  if (!fd.valid()) return SystemError("making a unix socket", errno);
  return fd;
}

std::optional<ucred> PeerOf(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  return peer;
}

bool IsTrusted(const ucred& peer) { return peer.uid == ::geteuid() || peer.uid == 0; }

Status CheckPeer(int socket) {
  const std::optional<ucred> peer = PeerOf(socket);
  if (!peer) return SystemError("asking who the agent is", errno);
  if (!IsTrusted(*peer)) {
    return Aborted(Format(
        "the process at the agent's address runs as user {}, not as this user; not talking to it",
        peer->uid));
  }
  return Status::Ok();
}

UniqueFd DescriptorIn(msghdr& header) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return UniqueFd(fd);
  }
  return UniqueFd();
}

}  // namespace

std::string EncodeLink(const LinkMessage& message) { return EncodeMessage(message); }

Result<LinkMessage> DecodeLink(std::string_view bytes) {
  return DecodeMessage<LinkMessage>(bytes, "link message");
}

Result<UniqueFd> ListenLinkIfFree(const std::string& abstract_name) {
  socklen_t length = 0;
  Result<sockaddr_un> address = AbstractAddress(abstract_name, &length);
  if (!address.ok()) return address.status();
  Result<UniqueFd> fd = UnixSocket(SOCK_NONBLOCK);
  if (!fd.ok()) return fd;
  const std::string what = "listening for workers at @" + abstract_name;
  if (::bind(fd->get(), reinterpret_cast<sockaddr*>(&*address), length) != 0) {
    if (errno == EADDRINUSE) return UniqueFd();
    return SystemError(what, errno);
  }
  if (::listen(fd->get(), SOMAXCONN) != 0) return SystemError(what, errno);
  return fd;
}

// The kernel records the listener's credentials at listen(), and shows them to those who connect.
Status ListenInOwnName(int listener) {
  if (::listen(listener, SOMAXCONN) == 0) return Status::Ok();
  return SystemError("listening for workers in place of another process", errno);
}

Result<UniqueFd> ListenLink(const std::string& abstract_name) {
  Result<UniqueFd> fd = ListenLinkIfFree(abstract_name);
  if (fd.ok() && !fd->valid())
    return SystemError("listening for workers at @" + abstract_name, EADDRINUSE);
  return fd;
}

Result<UniqueFd> ConnectLinkIfAny(const std::string& abstract_name) {
  socklen_t length = 0;
  Result<sockaddr_un> address = AbstractAddress(abstract_name, &length);
  if (!address.ok()) return address.status();
  Result<UniqueFd> fd = UnixSocket(0);
  if (!fd.ok()) return fd;
  int rc = 0;
  do {
    rc = ::connect(fd->get(), reinterpret_cast<sockaddr*>(&*address), length);
  } while (rc != 0 && errno == EINTR);
  if (rc != 0 && errno == ECONNREFUSED) return UniqueFd();
  if (rc != 0)
    return Aborted(SystemError("connecting to the agent at @" + abstract_name, errno).message());
  HVD_RETURN_IF_ERROR(CheckPeer(fd->get()));
  return fd;
}

Result<LinkClient> AcceptLink(int listener) {
  for (;;) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN) return Status(Code::kInProgress, "no connection yet");
      return SystemError("accepting a process of this host", errno);
    }
    const std::optional<ucred> peer = PeerOf(socket.get());
    if (peer && IsTrusted(*peer)) return LinkClient{std::move(socket), peer->pid};
  }
}

Result<UniqueFd> ConnectLink(const std::string& abstract_name) {
  Result<UniqueFd> fd = ConnectLinkIfAny(abstract_name);
  if (!fd.ok() || fd->valid()) return fd;
  return Aborted("no process listens at the agent's address @" + abstract_name +
                 "; has its job ended?");
}

Status SendLink(int socket, const LinkMessage& message, int fd) {
  std::string bytes = EncodeLink(message);
  iovec data{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  if (fd >= 0) {
    header.msg_control = control.data();
    header.msg_controllen = control.size();
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return Status::Ok();
  if (errno == EAGAIN) return {Code::kInProgress, "the link is full"};
  return Aborted(SystemError("sending on the link", errno).message());
}

Result<ReceivedLink> ReceiveLink(int socket, bool wait) {
  std::array<char, kMaxLinkMessage> bytes;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
  iovec data{bytes.data(), bytes.size()};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC | (wait ? 0 : MSG_DONTWAIT));
  } while (got < 0 && errno == EINTR);
  if (got < 0 && errno == EAGAIN) return Status(Code::kInProgress, "no message yet");
  if (got < 0) return Aborted(SystemError("receiving on the link", errno).message());
  UniqueFd fd = DescriptorIn(header);
  if (got == 0) return Aborted("the other end closed the link");
  if ((header.msg_flags & MSG_TRUNC) != 0) return InvalidArgument("a link message too long");
  Result<LinkMessage> message = DecodeLink({bytes.data(), static_cast<size_t>(got)});
  if (!message.ok()) return message.status();
  return ReceivedLink{std::move(*message), std::move(fd)};
}

}  // namespace hvd
