#include "runtime/net/link.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "runtime/base/bytes.h"
#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

constexpr size_t kMaxText = 2048;
constexpr size_t kMaxAddresses = 16, kMaxAddress = 64;

std::string_view Cut(std::string_view text) { return text.substr(0, kMaxText); }

void Write(ByteWriter& w, const LinkHello& m) {
  w.Put(m.version).Put(m.slot).Put(m.pid).PutString(Cut(m.job_key)).Put(m.rank).Put(m.size);
}
void Write(ByteWriter&, const LinkJoin&) {}
void Write(ByteWriter& w, const LinkGoodbye& m) { w.Put(m.generation).Put(m.since_ns); }
void Write(ByteWriter& w, const LinkAllocate& m) { w.Put(m.bytes); }
void Write(ByteWriter& w, const LinkFetch& m) { w.Put(m.segment); }
void Write(ByteWriter& w, const LinkFree& m) { w.Put(m.segment); }
void Write(ByteWriter& w, const LinkGeneration& m) {
  w.Put(m.generation).Put(m.page_bytes).Put(m.rank).Put(m.size).Put(m.local_rank).Put(m.local_size);
  w.Put(m.cross_rank).Put(m.cross_size).Put(m.homogeneous).PutString(Cut(m.data_key));
  size_t addresses = std::min(m.listen.addresses.size(), kMaxAddresses);
  w.Put(static_cast<uint8_t>(addresses));
  for (size_t i = 0; i < addresses; ++i)
    w.PutString(std::string_view(m.listen.addresses[i]).substr(0, kMaxAddress));
  w.Put(m.listen.first_port).Put(m.listen.last_port).Put(m.elastic);
}
void Write(ByteWriter& w, const LinkBroken& m) { w.Put(m.generation).PutString(Cut(m.reason)); }
void Write(ByteWriter& w, const LinkSegment& m) {
  w.Put(m.segment).Put(m.bytes).PutString(Cut(m.error));
}
void Write(ByteWriter& w, const LinkRefused& m) { w.PutString(Cut(m.reason)); }
void WriteEntry(ByteWriter& w, const auto& m) {
  w.Put(m.generation).PutString(std::string_view(m.key).substr(0, kMaxKvKey));
  w.PutString(std::string_view(m.value).substr(0, kMaxKvValue));
}
void Write(ByteWriter& w, const LinkPut& m) { WriteEntry(w, m); }
void Write(ByteWriter& w, const LinkGet& m) {
  w.Put(m.generation).PutString(std::string_view(m.key).substr(0, kMaxKvKey));
}
void Write(ByteWriter& w, const LinkValue& m) { WriteEntry(w, m); }
void Write(ByteWriter& w, const LinkLayout& m) {
  size_t runs = std::min(m.runs.size(), kMaxRunsPerMessage);
  w.Put(m.generation).Put(static_cast<uint16_t>(runs));
  for (size_t i = 0; i < runs; ++i)
    for (uint32_t number : m.runs[i].Numbers()) w.Put(number);
}
void Write(ByteWriter& w, const LinkDismissed& m) { w.PutString(Cut(m.reason)); }

void Read(ByteReader& r, LinkHello& m) {
  m.version = r.Get<uint32_t>();
  if (r.ok() && m.version != kLinkVersion) {
    (void)r.Rest();  // whatever it is
    return;
  }
  m.slot = r.Get<uint32_t>();
  m.pid = r.Get<uint32_t>();
  m.job_key = r.GetString();
  m.rank = r.Get<uint32_t>();
  m.size = r.Get<uint32_t>();
}
void Read(ByteReader&, LinkJoin&) {}
void Read(ByteReader& r, LinkGoodbye& m) {
  m.generation = r.Get<uint64_t>();
  m.since_ns = r.Get<uint64_t>();
}
void Read(ByteReader& r, LinkAllocate& m) { m.bytes = r.Get<uint64_t>(); }
void Read(ByteReader& r, LinkFetch& m) { m.segment = r.Get<uint32_t>(); }
void Read(ByteReader& r, LinkFree& m) { m.segment = r.Get<uint32_t>(); }
void Read(ByteReader& r, LinkGeneration& m) {
  m.generation = r.Get<uint64_t>();
  m.page_bytes = r.Get<uint64_t>();
  for (uint32_t* field :
       {&m.rank, &m.size, &m.local_rank, &m.local_size, &m.cross_rank, &m.cross_size}) {
    *field = r.Get<uint32_t>();
  }
  m.homogeneous = r.Get<uint8_t>();
  m.data_key = r.GetString();
  m.listen.addresses.resize(r.Get<uint8_t>());
  for (std::string& address : m.listen.addresses) address = r.GetString();
  m.listen.first_port = r.Get<uint16_t>();
  m.listen.last_port = r.Get<uint16_t>();
  m.elastic = r.Get<uint8_t>();
}
void Read(ByteReader& r, LinkBroken& m) {
  m.generation = r.Get<uint64_t>();
  m.reason = r.GetString();
}
void Read(ByteReader& r, LinkSegment& m) {
  m.segment = r.Get<uint32_t>();
  m.bytes = r.Get<uint64_t>();
  m.error = r.GetString();
}
void Read(ByteReader& r, LinkRefused& m) { m.reason = r.GetString(); }
void ReadEntry(ByteReader& r, auto& m) {
  m.generation = r.Get<uint64_t>();
  m.key = r.GetString();
  m.value = r.GetString();
}
void Read(ByteReader& r, LinkPut& m) { ReadEntry(r, m); }
void Read(ByteReader& r, LinkGet& m) {
  m.generation = r.Get<uint64_t>();
  m.key = r.GetString();
}
void Read(ByteReader& r, LinkValue& m) { ReadEntry(r, m); }
void Read(ByteReader& r, LinkLayout& m) {
  m.generation = r.Get<uint64_t>();
  auto count = r.Get<uint16_t>();
  for (uint16_t i = 0; i < count && r.ok(); ++i) {
    std::array<uint32_t, 4> numbers{};
    for (uint32_t& number : numbers) number = r.Get<uint32_t>();
    m.runs.push_back(RankRun::Of(numbers));
  }
}
void Read(ByteReader& r, LinkDismissed& m) { m.reason = r.GetString(); }

// The type byte of a message is its place in the variant.
template <size_t I = 0>
Result<LinkMessage> DecodeAs(size_t type, ByteReader& reader) {
  if constexpr (I == std::variant_size_v<LinkMessage>) {
    return InvalidArgument("unknown type " + std::to_string(type) + " of a link message");
  } else {
    if (type != I) return DecodeAs<I + 1>(type, reader);
    std::variant_alternative_t<I, LinkMessage> message;
    Read(reader, message);
    if (!reader.AtEnd()) return InvalidArgument("a link message of a wrong length");
    return LinkMessage(std::move(message));
  }
}

Result<sockaddr_un> AbstractAddress(const std::string& name, socklen_t* length) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.empty() || name.size() > sizeof address.sun_path - 1) {
    return InvalidArgument("the agent's address has " + std::to_string(name.size()) +
                           " bytes; 1 to 107 are possible");
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
    return Aborted("the process at the agent's address runs as user " + std::to_string(peer->uid) +
                   ", not as this user; not talking to it");
  }
  return Status::Ok();
}

UniqueFd TakeDescriptor(msghdr& header) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(c), sizeof fd);
    return UniqueFd(fd);
  }
  return UniqueFd();
}

}  // namespace

std::string EncodeLink(const LinkMessage& message) {
  ByteWriter writer;
  writer.Put(static_cast<uint8_t>(message.index()));
  std::visit([&](const auto& m) { Write(writer, m); }, message);
  return writer.Take();
}

Result<LinkMessage> DecodeLink(std::string_view bytes) {
  ByteReader reader(bytes);
  auto type = reader.Get<uint8_t>();
  if (!reader.ok()) return InvalidArgument("an empty link message");
  return DecodeAs(type, reader);
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
  if (Status peer = CheckPeer(fd->get()); !peer.ok()) return peer;
  return fd;
}

std::optional<LinkClient> AcceptLink(int listener) {
  for (;;) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) return std::nullopt;
    const std::optional<ucred> peer = PeerOf(socket.get());
    if (peer && IsTrusted(*peer)) return LinkClient{std::move(socket), peer->pid};
  }
}

Result<UniqueFd> ConnectLink(const std::string& abstract_name) {
  Result<UniqueFd> fd = ConnectLinkIfAny(abstract_name);
  if (!fd.ok() || fd->valid()) return fd;
  return Aborted("nobody listens at the agent's address @" + abstract_name +
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
  UniqueFd fd = TakeDescriptor(header);
  if (got == 0) return Aborted("the other end closed the link");
  if ((header.msg_flags & MSG_TRUNC) != 0) return InvalidArgument("a link message too long");
  Result<LinkMessage> message = DecodeLink({bytes.data(), static_cast<size_t>(got)});
  if (!message.ok()) return message.status();
  return ReceivedLink{std::move(*message), std::move(fd)};
}

}  // namespace hvd
