#include "runtime/bootstrap/agent_link.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/base/time_numbers.h"
#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

constexpr Duration kAnswerDeadline = std::chrono::seconds(30);
constexpr Duration kStillWaiting = std::chrono::seconds(60);
constexpr int kMaxReopened = 100;

Status NotYet() { return {Code::kInProgress, "the agent of this host has not answered yet"}; }

// Waits for something to read; kInProgress after the timeout.
Status AwaitReadable(int fd, TimePoint deadline) {
  for (;;) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyNow()).count();
    pollfd entry{fd, POLLIN, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1'000'000'000)));
    if (ready > 0) return Status::Ok();
    if (ready == 0) return NotYet();
    if (errno != EINTR) return SystemError("waiting for the agent", errno);
  }
}

}  // namespace

Status AgentLink::Connect() {
  if (socket_.valid()) return Status::Ok();
  // Otherwise the heap of this process would keep naming segments that a later link or another
  // agent does not know.
  if (shares_memory_) {
    return Aborted(
        "the agent of this host is gone, and with it the memory that this process shared; start "
        "the process again");
  }
  Result<UniqueFd> socket = connector_.Open();
  if (!socket.ok()) return socket.status();
  socket_ = std::move(*socket);
  segments_.clear();
  return Status::Ok();
}

Status AgentLink::SendLocked(const LinkMessage& message) {
  if (!socket_.valid()) return Aborted("this worker has lost its link to the agent of this host");
  Status sent = SendLink(socket_.get(), message);
  if (!sent.ok()) Lose(sent);
  return sent;
}

// A thread that sleeps on the socket closes it when it wakes: its descriptor number must not be
// reused meanwhile.
void AgentLink::Lose(Status why) {
  lost_ = std::move(why);
  if (reading_) {
    ::shutdown(socket_.get(), SHUT_RDWR);
  } else {
    socket_.Reset();
  }
}

// Until `ready`, which is called with the lock held.
Status AgentLink::Await(TimePoint deadline, const std::function<bool()>& ready) {
  while (!ready()) {
    if (!socket_.valid()) return lost_.ok() ? Aborted("the agent of this host is gone") : lost_;
    if (SteadyNow() >= deadline) return NotYet();
    if (reading_) {
      arrived_.wait_until(mutex_, deadline);
      continue;
    }
    reading_ = true;
    const int socket = socket_.get();
    mutex_.unlock();
    Status readable = AwaitReadable(socket, deadline);
    mutex_.lock();
    reading_ = false;
    if (readable.ok()) ReceiveAll();
    arrived_.notify_all();
  }
  return Status::Ok();
}

void AgentLink::ReceiveAll() {
  while (socket_.valid()) {
    Result<ReceivedLink> received = ReceiveLink(socket_.get(), /*wait=*/false);
    if (received.ok()) {
      Handle(std::move(*received));
      continue;
    }
    if (received.status().code() == Code::kInProgress) return;
    Lose(Aborted("the agent of this host is gone (" + received.status().message() + ")"));
  }
}

void AgentLink::Handle(ReceivedLink received) {
  heard_ = true;
  if (auto* generation = std::get_if<LinkGeneration>(&received.message)) {
    if (layout_generation_ != generation->generation) layout_.clear();
    begun_ =
        BegunGeneration{std::move(*generation), std::move(received.fd), std::exchange(layout_, {})};
  } else if (auto* part = std::get_if<LinkLayout>(&received.message)) {
    if (std::exchange(layout_generation_, part->generation) != part->generation) layout_.clear();
    if (layout_.size() < kMaxRanks)
      layout_.insert(layout_.end(), part->runs.begin(), part->runs.end());
  } else if (auto* broken = std::get_if<LinkBroken>(&received.message)) {
    if (broken->generation == 0) {
      cannot_begin_ = Aborted(std::move(broken->reason));
    } else {
      broken_generation_ = broken->generation;
      broken_reason_ = std::move(broken->reason);
    }
  } else if (auto* dismissed = std::get_if<LinkDismissed>(&received.message)) {
    cannot_begin_ = Status(Code::kDismissed, std::move(dismissed->reason));
  } else if (std::holds_alternative<LinkSegment>(received.message)) {
    segments_.push_back(std::move(received));
  } else if (auto* value = std::get_if<LinkValue>(&received.message)) {
    if (value->generation == generation_) values_[value->key] = std::move(value->value);
  } else if (auto* refused = std::get_if<LinkRefused>(&received.message)) {
    Lose(Aborted("the agent of this host refused this process: " + refused->reason));
  }
}

Result<BegunGeneration> AgentLink::Join(Duration timeout) {
  MutexLock lock(mutex_);
  const TimePoint start = SteadyNow();
  for (int attempt = 0;; ++attempt) {
    begun_.reset();
    cannot_begin_.reset();
    heard_ = false;
    HVD_RETURN_IF_ERROR(Connect());
    Status sent = SendLocked(LinkJoin{});
    Result<BegunGeneration> begun = sent.ok() ? AwaitGeneration(start, timeout) : sent;
    bool again = !begun.ok() && !socket_.valid() && !heard_ && connector_.Reopens();
    if (!again || attempt == kMaxReopened) return begun;
  }
}

Result<BegunGeneration> AgentLink::AwaitGeneration(TimePoint start, Duration timeout) {
  const bool limited = timeout.count() > 0;
  for (;;) {
    TimePoint deadline = SteadyNow() + kStillWaiting;
    if (limited) deadline = std::min(deadline, start + timeout);
    Status status =
        Await(deadline, [this]() HVD_REQUIRES(mutex_) { return begun_ || cannot_begin_; });
    if (cannot_begin_) return *cannot_begin_;
    if (status.ok()) {
      generation_ = begun_->generation.generation;
      values_.clear();
      return *std::exchange(begun_, std::nullopt);
    }
    if (status.code() != Code::kInProgress) return status;
    if (limited && SteadyNow() >= start + timeout) {
      return Aborted(
          Format("not every rank called hvd.init() within {} ms", MillisecondsOf(timeout)));
    }
    LogWarning(connector_.who() + " still waits for the other ranks to call hvd.init()");
  }
}

void AgentLink::Leave(uint64_t generation, TimePoint since) {
  MutexLock lock(mutex_);
  if (generation_ == generation) generation_ = 0;
  arrived_.notify_all();
  if (!socket_.valid()) return;  // if the agent is gone, so is the generation
  (void)SendLocked(LinkGoodbye{generation, static_cast<uint64_t>(NanosecondsOf(since))});
}

Result<ReceivedLink> AgentLink::AskForSegment(const LinkMessage& question) {
  MutexLock one_at_a_time(asking_);
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(Connect());
  HVD_RETURN_IF_ERROR(SendLocked(question));
  Status status = Await(SteadyNow() + kAnswerDeadline,
                        [this]() HVD_REQUIRES(mutex_) { return !segments_.empty(); });
  if (status.code() == Code::kInProgress) {
    // A late answer must not be taken for the answer to a later question.
    Lose(
        Aborted("the agent of this host did not answer for 30 s; it is stopped, or its host is "
                "overloaded"));
    return lost_;
  }
  if (!status.ok()) return status;
  ReceivedLink answer = std::move(segments_.front());
  segments_.pop_front();
  shares_memory_ |= std::holds_alternative<LinkAllocate>(question) && answer.fd.valid();
  return answer;
}

Status AgentLink::Send(const LinkMessage& message) {
  MutexLock lock(mutex_);
  return SendLocked(message);
}

Status AgentLink::CheckGeneration() const {
  if (generation_ == 0) return Aborted("this rank is in no world; its directory is gone");
  if (broken_generation_ == generation_) return Aborted(broken_reason_);
  return Status::Ok();
}

Status AgentLink::Put(const std::string& key, const std::string& value) {
  HVD_RETURN_IF_ERROR(CheckKvKey(key));
  if (value.size() > kMaxKvValue) {
    return InvalidArgument(
        Format("a value of the directory has at most {} bytes; that of {} has {}", kMaxKvValue, key,
               value.size()));
  }
  MutexLock lock(mutex_);
  HVD_RETURN_IF_ERROR(CheckGeneration());
  return SendLocked(LinkPut{generation_, key, value});
}

Result<std::string> AgentLink::Get(const std::string& key, Duration timeout) {
  HVD_RETURN_IF_ERROR(CheckKvKey(key));
  MutexLock lock(mutex_);
  const uint64_t generation = generation_;
  HVD_RETURN_IF_ERROR(CheckGeneration());
  if (!values_.contains(key)) {
    if (Status sent = SendLocked(LinkGet{generation, key}); !sent.ok()) return sent;
  }
  Status status = Await(SteadyNow() + timeout, [&]() HVD_REQUIRES(mutex_) {
    return values_.contains(key) || generation_ != generation || broken_generation_ == generation;
  });
  if (status.code() == Code::kInProgress) {
    return Status(Code::kInProgress, Format("no rank has put '{}' into the directory within {} ms",
                                            key, MillisecondsOf(timeout)));
  }
  if (!status.ok()) return status;
  if (generation_ != generation) return Aborted("this rank has left the world that it asked in");
  if (auto found = values_.find(key); found != values_.end()) return found->second;
  return CheckGeneration();
}

Status AgentLink::PollAgent() {
  if (!mutex_.try_lock()) return Status::Ok();
  MutexLock lock(mutex_, std::adopt_lock);
  if (reading_) return Status::Ok();
  ReceiveAll();
  arrived_.notify_all();
  return socket_.valid() ? Status::Ok() : Aborted("the agent of this host is gone");
}

}  // namespace hvd
