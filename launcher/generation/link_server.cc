#include "launcher/generation/link_server.h"

#include <sys/socket.h>

#include <optional>

#include "launcher/process/jobs/job_id.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/net/namespaces.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {

struct LinkServer::Link {
  explicit Link(asio::io_context& io) : socket(io) {}
  asio::posix::stream_descriptor socket;
  int pid = 0;
  std::optional<uint32_t> slot;  // after the hello
  bool refused = false;          // only waits for the worker to close
  bool ended = false;
  bool overrun = false;  // its worker did not read and gets nothing more
  bool waiting_to_write = false;
  std::deque<std::pair<LinkMessage, std::shared_ptr<UniqueFd>>> queued;
};

LinkServer::LinkServer(asio::io_context& io, LinkObserver& observer, uint32_t slots,
                       std::string job_key)
    : io_(io),
      observer_(observer),
      job_key_(std::move(job_key)),
      listener_(io, [this](LinkClient client) { Accept(std::move(client)); }),
      slots_(slots) {}

LinkServer::~LinkServer() = default;

size_t LinkServer::queued(uint32_t slot) const {
  return slots_[slot].link ? slots_[slot].link->queued.size() : 0;
}

size_t LinkServer::CountLinks() {
  listener_.AcceptAll();
  return open_links_;
}

void LinkServer::Accept(LinkClient client) {
  if (same_namespaces_ && !InOurNamespaces(client.pid)) return;
  auto link = std::make_shared<Link>(io_);
  link->pid = client.pid;
  link->socket.assign(client.socket.Release());
  ++open_links_;
  WaitToRead(link);
}

void LinkServer::WaitToRead(const LinkPtr& link) {
  if (link->ended) return;
  link->socket.async_wait(asio::posix::stream_descriptor::wait_read,
                          [this, link](const asio::error_code& error) {
                            if (error) return;
                            ReadAll(link);
                            WaitToRead(link);
                          });
}

void LinkServer::ReadAll(const LinkPtr& link) {
  while (!link->ended) {
    Result<ReceivedLink> received = ReceiveLink(link->socket.native_handle(), false);
    if (received.ok()) {
      Handle(link, std::move(received->message));
      continue;
    }
    if (received.status().code() == Code::kInProgress) return;
    if (received.status().code() == Code::kInvalidArgument) {
      LogWarning(Format("the link of process {} was closed because it sent {}", link->pid,
                        received.status().message()));
    }
    End(link);
  }
}

void LinkServer::Handle(const LinkPtr& link, LinkMessage message) {
  if (link->refused) return;
  if (const auto* hello = std::get_if<LinkHello>(&message)) return HandleHello(link, *hello);
  if (!link->slot) return End(link);  // nothing may come before the hello
  if (std::holds_alternative<LinkJoin>(message)) return observer_.OnJoin(*link->slot);
  if (const auto* m = std::get_if<LinkGoodbye>(&message))
    return observer_.OnGoodbye(*link->slot, *m);
  if (const auto* m = std::get_if<LinkAllocate>(&message)) return Allocate(link, m->bytes);
  if (const auto* m = std::get_if<LinkFetch>(&message)) return Fetch(link, m->segment);
  if (const auto* m = std::get_if<LinkFree>(&message)) return Free(link, m->segment);
  if (auto* m = std::get_if<LinkPut>(&message)) return observer_.OnPut(*link->slot, std::move(*m));
  if (auto* m = std::get_if<LinkGet>(&message)) return observer_.OnGet(*link->slot, std::move(*m));
  if (auto* m = std::get_if<LinkLayout>(&message))
    return observer_.OnLayout(*link->slot, std::move(m->runs));
  LogWarning(Format("the link of process {} was closed: it sent an agent's message", link->pid));
  End(link);
}

Status LinkServer::CheckHello(const Link& link, const LinkHello& hello) {
  if (link.slot) return InvalidArgument("a second hello on one link");
  if (hello.version != kLinkVersion) {
    return InvalidArgument(
        Format("libhvd.so speaks version {} of the link, hvdrun version {}; use hvdrun and "
               "libhvd.so of one release",
               hello.version, kLinkVersion));
  }
  if (!SameKey(hello.job_key, job_key_)) {
    return InvalidArgument(
        "the process does not have the key of this job; was HVD_JOB_KEY changed, or without hvdrun "
        "HVD_WORLD_SECRET?");
  }
  if (hello.slot >= slots_.size()) {
    return InvalidArgument(
        Format("there is no slot {} on this host, only {}; was HVD_SLOT changed?", hello.slot,
               slots_.size()));
  }
  // The end of a former holder may not have been noticed yet.
  Drain(hello.slot);
  if (slots_[hello.slot].link) {
    return InvalidArgument(
        Format("slot {} is in use by process {}; one process per slot may call hvd.init()",
               hello.slot, slots_[hello.slot].pid));
  }
  return observer_.OnHello(hello);
}

void LinkServer::HandleHello(const LinkPtr& link, const LinkHello& hello) {
  if (Status status = CheckHello(*link, hello); !status.ok()) {
    // Closing now, with unread messages of the worker, would make the kernel drop the answer.
    link->refused = true;
    return SendOn(link, LinkRefused{status.message()});
  }
  link->slot = hello.slot;
  slots_[hello.slot] = {link, link->pid};
}

void LinkServer::Allocate(const LinkPtr& link, uint64_t bytes) {
  Result<UniqueFd> fd = CreateSharedMemory("hvd-data", bytes);
  Status status = fd.ok() ? SealSize(fd->get()) : fd.status();
  if (!status.ok()) return SendOn(link, LinkSegment{0, bytes, status.message()});
  uint32_t id = next_segment_++;
  Segment& segment =
      segments_[id] = {std::make_shared<UniqueFd>(std::move(*fd)), bytes, *link->slot};
  SendOn(link, LinkSegment{id, bytes, ""}, segment.fd);
}

void LinkServer::Fetch(const LinkPtr& link, uint32_t id) {
  auto found = segments_.find(id);
  if (found == segments_.end()) {
    return SendOn(link, LinkSegment{id, 0, Format("segment {} does not exist any more", id)});
  }
  SendOn(link, LinkSegment{id, found->second.bytes, ""}, found->second.fd);
}

void LinkServer::Free(const LinkPtr& link, uint32_t id) {
  auto found = segments_.find(id);
  if (found != segments_.end() && found->second.slot == *link->slot && !found->second.ownerless)
    segments_.erase(found);
}

void LinkServer::Send(uint32_t slot, const LinkMessage& message, std::shared_ptr<UniqueFd> fd) {
  if (LinkPtr link = slots_[slot].link) SendOn(link, message, std::move(fd));
}

void LinkServer::SendOn(const LinkPtr& link, const LinkMessage& message,
                        std::shared_ptr<UniqueFd> fd) {
  if (link->ended || link->overrun) return;
  if (link->queued.empty()) {
    Status status = SendLink(link->socket.native_handle(), message, fd ? fd->get() : -1);
    // A closed peer is detected by reading.
    if (status.code() != Code::kInProgress) return;
  }
  if (link->queued.size() >= kMostQueued) {
    LogWarning(Format("process {} does not read its link; the link is closed", link->pid));
    return Overrun(link);
  }
  link->queued.emplace_back(message, std::move(fd));
  WaitToWrite(link);
}

// The sender is in the middle of an operation, so the observer gets the end from the io_context.
void LinkServer::Overrun(const LinkPtr& link) {
  link->overrun = true;
  link->queued.clear();
  ::shutdown(link->socket.native_handle(), SHUT_RDWR);
}

void LinkServer::WaitToWrite(const LinkPtr& link) {
  if (link->ended || link->waiting_to_write) return;
  link->waiting_to_write = true;
  link->socket.async_wait(
      asio::posix::stream_descriptor::wait_write, [this, link](const asio::error_code& error) {
        link->waiting_to_write = false;
        if (error) return;
        while (!link->ended && !link->queued.empty()) {
          auto& [message, fd] = link->queued.front();
          Status status = SendLink(link->socket.native_handle(), message, fd ? fd->get() : -1);
          if (status.code() == Code::kInProgress) return WaitToWrite(link);
          link->queued.pop_front();
        }
      });
}

void LinkServer::Drain(uint32_t slot) {
  if (LinkPtr link = slots_[slot].link) ReadAll(link);
}

void LinkServer::End(const LinkPtr& link) {
  if (link->ended) return;
  link->ended = true;
  link->socket.close();
  --open_links_;
  if (!link->slot) return;
  uint32_t slot = *link->slot;
  slots_[slot].link = nullptr;
  for (auto& [id, segment] : segments_) segment.ownerless |= segment.slot == slot;
  observer_.OnLinkEnd(slot);
}

void LinkServer::ForgetOwnerless() {
  std::erase_if(segments_, [](const auto& entry) { return entry.second.ownerless; });
}

}  // namespace hvd
