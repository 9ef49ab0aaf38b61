#include "test/fakes/inproc/inproc_inter_host_comm.h"

#include <algorithm>
#include <cstring>

namespace hvd {
namespace {

std::string BytesAt(const void* data, size_t bytes) {
  return bytes == 0 ? std::string() : std::string(static_cast<const char*>(data), bytes);
}

Status Unlike(uint32_t rank, size_t came, size_t expected) {
  return Mismatch("rank " + std::to_string(rank) + " sent " + std::to_string(came) +
                  " bytes where " + std::to_string(expected) + " were expected");
}

void AddUp(const ReduceSpec& spec, const std::vector<std::string>& parts, void* output,
           size_t count) {
  std::vector<const void*> inputs;
  for (const std::string& part : parts) inputs.push_back(part.data());
  ReduceRange(spec, inputs, {&output, 1}, 0, count);
}

// The bytes at `data`, cut as `sizes` say.
std::vector<std::string> Cut(const void* data, std::span<const size_t> sizes, size_t unit = 1) {
  std::vector<std::string> pieces;
  const char* next = static_cast<const char*>(data);
  for (size_t size : sizes) {
    pieces.push_back(BytesAt(next, size * unit));
    next += size * unit;
  }
  return pieces;
}

}  // namespace

InprocInterHostComm::~InprocInterHostComm() {
  std::lock_guard lock(hub_.mutex_);
  hub_.left_.emplace(rank_, Aborted("rank " + std::to_string(rank_) + " has left"));
  hub_.changed_.notify_all();
}

Status InprocInterHostComm::Put(uint32_t rank, uint64_t tag, bool collective, std::string bytes) {
  if (hub_.on_send_) hub_.on_send_(rank_, bytes.size());
  std::lock_guard lock(hub_.mutex_);
  if (!hub_.aborted_.ok()) return hub_.aborted_;
  if (auto left = hub_.left_.find(rank); left != hub_.left_.end()) return left->second;
  hub_.boxes_[{rank, tag, collective}].push_back({rank_, std::move(bytes)});
  hub_.changed_.notify_all();
  return Status::Ok();
}

Result<InterHostMessage> InprocInterHostComm::Take(uint32_t rank, uint64_t tag, bool collective,
                                                   TimePoint deadline) {
  std::unique_lock lock(hub_.mutex_);
  while (true) {
    if (!hub_.aborted_.ok()) return hub_.aborted_;
    std::deque<InterHostMessage>& box = hub_.boxes_[{rank_, tag, collective}];
    auto at = std::find_if(box.begin(), box.end(), [&](const InterHostMessage& message) {
      return rank == kAnyLeader || message.from == rank;
    });
    if (at != box.end()) {
      InterHostMessage message = std::move(*at);
      box.erase(at);
      if (box.empty()) hub_.boxes_.erase({rank_, tag, collective});
      return message;
    }
    if (auto left = hub_.left_.find(rank); left != hub_.left_.end()) return left->second;
    bool woken = wake_ && !collective;
    if (woken) wake_ = false;
    if (woken || SteadyNow() >= deadline) return Status(Code::kInProgress, "no message came");
    hub_.changed_.wait_until(lock, deadline);
  }
}

Result<std::vector<std::string>> InprocInterHostComm::Exchange(
    const InterHostCall& call, const std::vector<std::string>& pieces) {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i == call.group.index) continue;
    Status put = Put(call.group.leaders[i], call.tag, true, pieces[i]);
    if (!put.ok()) return put;
  }
  std::vector<std::string> got(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (i == call.group.index) {
      got[i] = pieces[i];
      continue;
    }
    Result<InterHostMessage> message =
        Take(call.group.leaders[i], call.tag, true, After(SteadyNow(), call.idle_limit));
    if (!message.ok()) return message.status();
    got[i] = std::move(message->bytes);
  }
  return got;
}

Status InprocInterHostComm::Allreduce(const InterHostCall& call, const ReduceSpec& spec,
                                      const void* input, void* output, size_t count) {
  const size_t some = count / 3;  // an InterHostComm may choose any parts
  if (call.copies != nullptr) {
    call.copies->Fill(0, some);
    call.copies->Fill(some, count - some);
  }
  std::string own = BytesAt(input, count * SizeOf(spec.dtype));
  Result<std::vector<std::string>> parts =
      Exchange(call, std::vector<std::string>(call.group.leaders.size(), own));
  if (!parts.ok()) return parts.status();
  for (size_t i = 0; i < parts->size(); ++i) {
    size_t came = (*parts)[i].size();
    if (came != own.size()) return Unlike(call.group.leaders[i], came, own.size());
  }
  AddUp(spec, *parts, output, count);
  if (call.copies != nullptr) {
    call.copies->Deliver(some, count - some);
    call.copies->Deliver(0, some);
  }
  return Status::Ok();
}

// This leader's part is on its way when it begins; the others' parts come one after the other.
class InprocInterHostComm::Sum final : public InterHostSum {
 public:
  Sum(InprocInterHostComm& comm, const InterHostCall& call, const ReduceSpec& spec,
      const void* input, void* output, size_t count)
      : comm_(comm),
        call_(call),
        spec_(spec),
        output_(output),
        count_(count),
        parts_(call.group.leaders.size()) {
    const std::string own = BytesAt(input, count * SizeOf(spec.dtype));
    parts_[call.group.index] = own;
    for (size_t i = 0; i < parts_.size() && put_.ok(); ++i) {
      if (i != call.group.index) put_ = comm.Put(call.group.leaders[i], call.tag, true, own);
    }
  }
  Status Continue(TimePoint deadline) override {
    if (!put_.ok()) return put_;
    for (; next_ < parts_.size(); ++next_) {
      if (next_ == call_.group.index) continue;
      Result<InterHostMessage> message =
          comm_.Take(call_.group.leaders[next_], call_.tag, true, deadline);
      if (!message.ok()) return message.status();
      const size_t own = parts_[call_.group.index].size();
      if (message->bytes.size() != own) return Unlike(message->from, message->bytes.size(), own);
      parts_[next_] = std::move(message->bytes);
    }
    AddUp(spec_, parts_, output_, count_);
    return Status::Ok();
  }

 private:
  InprocInterHostComm& comm_;
  const InterHostCall call_;
  const ReduceSpec spec_;
  void* const output_;
  const size_t count_;
  std::vector<std::string> parts_;
  size_t next_ = 0;
  Status put_;
};

std::unique_ptr<InterHostSum> InprocInterHostComm::BeginSum(const InterHostCall& call,
                                                            const ReduceSpec& spec,
                                                            const void* input, void* output,
                                                            size_t count) {
  return std::make_unique<Sum>(*this, call, spec, input, output, count);
}

Status InprocInterHostComm::Post(uint32_t rank, uint64_t tag, MessageBytes bytes) {
  if (bytes.size() > kMaxInterHostMessage) return InvalidArgument("a message that is too long");
  return Put(rank, tag, false, std::string(bytes.view()));
}

Status InprocInterHostComm::Broadcast(const InterHostCall& call, uint32_t root, void* data,
                                      size_t bytes) {
  std::vector<std::string> pieces(call.group.leaders.size());
  if (call.group.index == root) std::fill(pieces.begin(), pieces.end(), BytesAt(data, bytes));
  Result<std::vector<std::string>> got = Exchange(call, pieces);
  if (!got.ok()) return got.status();
  const std::string& came = (*got)[root];
  if (came.size() != bytes) return Unlike(call.group.leaders[root], came.size(), bytes);
  if (bytes > 0) std::memcpy(data, came.data(), bytes);
  return Status::Ok();
}

Status InprocInterHostComm::Allgatherv(const InterHostCall& call, const void* input,
                                       std::span<const size_t> bytes, void* output) {
  std::vector<std::string> pieces(call.group.leaders.size(),
                                  BytesAt(input, bytes[call.group.index]));
  Result<std::vector<std::string>> got = Exchange(call, pieces);
  if (!got.ok()) return got.status();
  char* next = static_cast<char*>(output);
  for (size_t i = 0; i < got->size(); ++i) {
    const std::string& came = (*got)[i];
    if (came.size() != bytes[i]) return Unlike(call.group.leaders[i], came.size(), bytes[i]);
    if (!came.empty()) std::memcpy(next, came.data(), came.size());
    next += came.size();
  }
  return Status::Ok();
}

Status InprocInterHostComm::Alltoallv(const InterHostCall& call, const void* input,
                                      std::span<const size_t> send_bytes, void* output,
                                      std::span<const size_t> receive_bytes) {
  Result<std::vector<std::string>> got = Exchange(call, Cut(input, send_bytes));
  if (!got.ok()) return got.status();
  char* next = static_cast<char*>(output);
  for (size_t i = 0; i < got->size(); ++i) {
    const std::string& came = (*got)[i];
    if (came.size() != receive_bytes[i]) {
      return Unlike(call.group.leaders[i], came.size(), receive_bytes[i]);
    }
    if (!came.empty()) std::memcpy(next, came.data(), came.size());
    next += came.size();
  }
  return Status::Ok();
}

Status InprocInterHostComm::Reducescatterv(const InterHostCall& call, const ReduceSpec& spec,
                                           const void* input, std::span<const size_t> counts,
                                           void* output) {
  Result<std::vector<std::string>> parts = Exchange(call, Cut(input, counts, SizeOf(spec.dtype)));
  if (!parts.ok()) return parts.status();
  size_t own = (*parts)[call.group.index].size();
  for (size_t i = 0; i < parts->size(); ++i) {
    size_t came = (*parts)[i].size();
    if (came != own) return Unlike(call.group.leaders[i], came, own);
  }
  if (own > 0) AddUp(spec, *parts, output, counts[call.group.index]);
  return Status::Ok();
}

Status InprocInterHostComm::Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes,
                                 TimePoint) {
  if (bytes.size() > kMaxInterHostMessage) {
    return InvalidArgument("a small message of " + std::to_string(bytes.size()) +
                           " bytes; at most " + std::to_string(kMaxInterHostMessage) +
                           " are allowed");
  }
  return Put(rank, tag, false, BytesAt(bytes.data(), bytes.size()));
}

Result<InterHostMessage> InprocInterHostComm::Receive(uint32_t rank, uint64_t tag,
                                                      TimePoint deadline) {
  return Take(rank, tag, false, deadline);
}

void InprocInterHostComm::Wake() {
  std::lock_guard lock(hub_.mutex_);
  wake_ = true;
  hub_.changed_.notify_all();
}

void InprocInterHostComm::Abort(const Status& why) {
  std::lock_guard lock(hub_.mutex_);
  if (hub_.aborted_.ok()) hub_.aborted_ = why;
  hub_.changed_.notify_all();
}

}  // namespace hvd
