#include "runtime/core/agent_bootstrap.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr Duration kAnswerDeadline = std::chrono::seconds(30);
constexpr Duration kStillWaiting = std::chrono::seconds(60);

// Waits for something to read; kInProgress after the timeout.
Status AwaitReadable(int fd, Duration timeout) {
  const TimePoint deadline = SteadyNow() + timeout;
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyNow()).count();
    pollfd entry{fd, POLLIN, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000'000)));
    if (ready > 0) return Status::Ok();
    if (ready == 0) return {Code::kInProgress, "the agent of this host has not answered yet"};
    if (errno != EINTR) return SystemError("waiting for the agent", errno);
  }
}

}  // namespace

Status AttachPage(UniqueFd fd, uint64_t bytes, World* world) {
  if (!fd.valid()) return Internal("the agent sent a world without its job page");
  Result<Mapping> memory = Mapping::Map(fd.get(), bytes);
  if (!memory.ok()) return memory.status();
  Result<JobPage> page = JobPage::View(memory->data(), memory->size());
  if (!page.ok()) return page.status();
  if (page->local_size() != world->local_size || world->local_rank >= world->local_size) {
    return Internal("the agent's job page is for another number of ranks");
  }
  world->page = *page;
  world->page_memory = std::move(*memory);
  world->page_fd = std::move(fd);
  return Status::Ok();
}

Status AgentBootstrap::Connect() {
  if (socket_.valid()) return Status::Ok();
  Result<UniqueFd> socket = ConnectLink(address_.name);
  if (!socket.ok()) return socket.status();
  socket_ = std::move(*socket);
  LinkHello hello;
  hello.slot = address_.slot;
  hello.pid = static_cast<uint32_t>(::getpid());
  hello.job_key = address_.job_key;
  return Say(hello);
}

Status AgentBootstrap::Say(const LinkMessage& message) {
  if (!socket_.valid()) return Aborted("this worker has lost its link to the agent of this host");
  Status sent = SendLink(socket_.get(), message);
  if (!sent.ok()) socket_.Reset();
  return sent;
}

// One message; refusals and a lost agent become errors.
Result<ReceivedLink> AgentBootstrap::Hear(Duration timeout) {
  if (!socket_.valid()) return Aborted("this worker has lost its link to the agent of this host");
  if (Status readable = AwaitReadable(socket_.get(), timeout); !readable.ok()) return readable;
  Result<ReceivedLink> received = ReceiveLink(socket_.get(), /*wait=*/true);
  if (!received.ok()) {
    socket_.Reset();
    return Aborted("the agent of this host is gone (" + received.status().message() + ")");
  }
  if (auto* refused = std::get_if<LinkRefused>(&received->message)) {
    socket_.Reset();
    return Aborted("the agent of this host refused this process: " + refused->reason);
  }
  return received;
}

Result<World> AgentBootstrap::Join(Duration timeout) {
  std::lock_guard lock(mutex_);
  if (Status connected = Connect(); !connected.ok()) return connected;
  if (Status said = Say(LinkJoin{}); !said.ok()) return said;
  return AwaitEpoch(timeout);
}

Result<World> AgentBootstrap::AwaitEpoch(Duration timeout) {
  const TimePoint start = SteadyNow();
  for (;;) {
    const Duration waited = SteadyNow() - start;
    const bool limited = timeout.count() > 0;
    if (limited && waited >= timeout) {
      return Aborted(
          "not every rank called hvd.init() within " +
          std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(timeout).count()) +
          " ms");
    }
    Result<ReceivedLink> received =
        Hear(limited ? std::min(timeout - waited, kStillWaiting) : kStillWaiting);
    if (received.status().code() == Code::kInProgress) {
      LogWarning("slot " + std::to_string(address_.slot) +
                 " still waits for the other ranks to call hvd.init()");
      continue;
    }
    if (!received.ok()) return received.status();
    if (auto* broken = std::get_if<LinkBroken>(&received->message)) {
      if (broken->epoch == 0) return Aborted(broken->reason);
      continue;  // of an epoch this process has left
    }
    auto* epoch = std::get_if<LinkEpoch>(&received->message);
    if (epoch == nullptr) continue;
    World world;
    world.epoch = epoch->epoch;
    world.rank = epoch->rank;
    world.size = epoch->size;
    world.local_rank = epoch->local_rank;
    world.local_size = epoch->local_size;
    world.cross_rank = epoch->cross_rank;
    world.cross_size = epoch->cross_size;
    world.homogeneous = epoch->homogeneous != 0;
    Status attached = AttachPage(std::move(received->fd), epoch->page_bytes, &world);
    if (!attached.ok()) return attached;
    return world;
  }
}

void AgentBootstrap::Leave(uint64_t epoch) {
  std::lock_guard lock(mutex_);
  if (socket_.valid()) (void)Say(LinkGoodbye{epoch});  // if the agent is gone, so is the epoch
}

Status AgentBootstrap::Attend() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return Status::Ok();
  while (socket_.valid()) {
    Result<ReceivedLink> received = ReceiveLink(socket_.get(), /*wait=*/false);
    if (received.ok()) continue;  // what the agent says unasked stands in the job page as well
    if (received.status().code() == Code::kInProgress) return Status::Ok();
    socket_.Reset();
  }
  return Aborted("the agent of this host is gone");
}

// The answer to a request for a segment, of this number unless it is 0.
Result<DataSegment> AgentBootstrap::AwaitSegment(uint32_t wanted) {
  for (;;) {
    Result<ReceivedLink> received = Hear(kAnswerDeadline);
    if (received.status().code() == Code::kInProgress) {
      // A later answer must not be taken for that to a later question.
      socket_.Reset();
      return Aborted(
          "the agent of this host did not answer for 30 s; it is stopped, or its host is "
          "overloaded");
    }
    if (!received.ok()) return received.status();
    auto* segment = std::get_if<LinkSegment>(&received->message);
    if (segment == nullptr) continue;
    if (wanted != 0 && segment->segment != wanted) {
      return Internal("the agent sent data segment " + std::to_string(segment->segment) +
                      " instead of " + std::to_string(wanted));
    }
    if (!received->fd.valid()) return OutOfMemory(segment->error);
    return DataSegment{segment->segment, segment->bytes, std::move(received->fd)};
  }
}

Result<DataSegment> AgentBootstrap::Allocate(uint64_t bytes) {
  std::lock_guard lock(mutex_);
  if (Status connected = Connect(); !connected.ok()) return connected;
  if (Status said = Say(LinkAllocate{bytes}); !said.ok()) return said;
  return AwaitSegment(0);
}

Result<DataSegment> AgentBootstrap::Fetch(uint32_t id) {
  std::lock_guard lock(mutex_);
  if (Status connected = Connect(); !connected.ok()) return connected;
  if (Status said = Say(LinkFetch{id}); !said.ok()) return said;
  return AwaitSegment(id);
}

void AgentBootstrap::Free(uint32_t id) {
  std::lock_guard lock(mutex_);
  if (socket_.valid()) (void)Say(LinkFree{id});
}

}  // namespace hvd
