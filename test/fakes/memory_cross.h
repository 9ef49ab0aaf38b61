// Cross among threads of one process: mailboxes in memory, collectives as plain as can be. Latency can be added, by a seed,
// and an endpoint can die.
#ifndef HVD_TEST_FAKES_MEMORY_CROSS_H_
#define HVD_TEST_FAKES_MEMORY_CROSS_H_

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/backends/cross.h"

namespace hvd::test {

// What the endpoints of one world share.
class MemoryNet {
 public:
  explicit MemoryNet(uint32_t ranks, uint32_t seed = 0) : random_(seed), delays_(seed != 0) {
    woken_.resize(ranks);
    sent_bytes_.resize(ranks);
  }

  void Put(uint32_t from, uint32_t to, uint64_t tag, std::string bytes) {
    Linger();
    std::lock_guard lock(mutex_);
    sent_bytes_[from] += bytes.size();
    boxes_[{to, tag}].push_back({from, std::move(bytes)});
    changed_.notify_all();
  }

  Result<CrossMessage> Take(uint32_t from, uint32_t to, uint64_t tag, TimePoint deadline,
                            bool wakeable) {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (!aborted_.ok()) return aborted_;
      auto& box = boxes_[{to, tag}];
      for (auto message = box.begin(); message != box.end(); ++message) {
        if (from != kAnyLeader && message->from != from) continue;
        CrossMessage taken = std::move(*message);
        box.erase(message);
        if (box.empty()) boxes_.erase({to, tag});
        return taken;
      }
      if (wakeable && std::exchange(woken_[to], uint8_t{0}) != 0)
        return Status(Code::kInProgress, "woken");
      const Duration left = deadline - SteadyNow();
      if (left <= Duration::zero()) return Status(Code::kInProgress, "the deadline passed");
      changed_.wait_for(lock, left);
    }
  }

  void Wake(uint32_t rank) {
    std::lock_guard lock(mutex_);
    woken_[rank] = 1;
    changed_.notify_all();
  }

  void Abort(const Status& why) {
    std::lock_guard lock(mutex_);
    if (aborted_.ok()) aborted_ = why;
    changed_.notify_all();
  }

  size_t sent_bytes(uint32_t rank) {
    std::lock_guard lock(mutex_);
    return sent_bytes_[rank];
  }

 private:
  void Linger() {
    if (!delays_) return;
    std::unique_lock lock(mutex_);
    const uint32_t turns = random_() % 20;
    lock.unlock();
    for (uint32_t i = 0; i < turns; ++i) std::this_thread::yield();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<uint32_t, uint64_t>, std::deque<CrossMessage>> boxes_;  // by (to, tag)
  std::vector<uint8_t> woken_;
  std::vector<size_t> sent_bytes_;
  Status aborted_;
  std::mt19937 random_;
  const bool delays_;
};

class MemoryCross final : public Cross {
 public:
  MemoryCross(MemoryNet& net, uint32_t rank) : net_(net), rank_(rank) {}

  std::string_view name() const override { return "memory"; }

  Status Allreduce(const CrossCall& call, CrossArithmetic arithmetic, void* data,
                   size_t count) override {
    const size_t bytes = count * SizeOf(arithmetic.dtype);
    std::vector<size_t> each(call.group.leaders.size(), bytes);
    std::string all(bytes * each.size(), '\0');
    if (Status got = Allgatherv(call, data, each, all.data()); !got.ok()) return got;
    std::vector<const void*> inputs;
    for (size_t i = 0; i < each.size(); ++i) inputs.push_back(all.data() + i * bytes);
    ReduceRange({arithmetic.dtype, arithmetic.arithmetic}, inputs, {&data, 1}, 0, count);
    return Status::Ok();
  }

  Status Broadcast(const CrossCall& call, uint32_t root, void* data, size_t bytes) override {
    if (call.group.index != root) return Fetch(call, root, data, bytes);
    for (uint32_t i = 0; i < call.group.leaders.size(); ++i) {
      if (i != root) Give(call, i, data, bytes);
    }
    return Status::Ok();
  }

  Status Allgatherv(const CrossCall& call, const void* input, std::span<const size_t> bytes,
                    void* output) override {
    const uint32_t self = call.group.index;
    for (uint32_t i = 0; i < bytes.size(); ++i) {
      if (i != self) Give(call, i, input, bytes[self]);
    }
    auto* at = static_cast<std::byte*>(output);
    for (uint32_t i = 0; i < bytes.size(); at += bytes[i++]) {
      if (i == self) {
        if (at != input && bytes[i] != 0) std::memmove(at, input, bytes[i]);
      } else if (Status got = Fetch(call, i, at, bytes[i]); !got.ok()) {
        return got;
      }
    }
    return Status::Ok();
  }

  Status Alltoallv(const CrossCall& call, const void* input, std::span<const size_t> send_bytes,
                   void* output, std::span<const size_t> receive_bytes) override {
    const uint32_t self = call.group.index;
    const auto* from = static_cast<const std::byte*>(input);
    const std::byte* own = from;
    for (uint32_t i = 0; i < send_bytes.size(); from += send_bytes[i++]) {
      if (i != self) Give(call, i, from, send_bytes[i]);
      if (i == self) own = from;
    }
    auto* at = static_cast<std::byte*>(output);
    for (uint32_t i = 0; i < receive_bytes.size(); at += receive_bytes[i++]) {
      if (i == self) {
        if (receive_bytes[i] != 0) std::memcpy(at, own, receive_bytes[i]);
      } else if (Status got = Fetch(call, i, at, receive_bytes[i]); !got.ok()) {
        return got;
      }
    }
    return Status::Ok();
  }

  Status Reducescatterv(const CrossCall&, CrossArithmetic, const void*, std::span<const size_t>,
                        void*) override {
    return Unsupported("the memory cross scatters nothing");
  }

  Status Send(uint32_t rank, uint64_t tag, std::span<const std::byte> bytes, TimePoint) override {
    if (bytes.size() > kMaxCrossMessage) return InvalidArgument("a message is too long");
    net_.Put(rank_, rank, tag, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    return Status::Ok();
  }
  Result<CrossMessage> Receive(uint32_t rank, uint64_t tag, TimePoint deadline) override {
    return net_.Take(rank, rank_, tag, deadline, /*wakeable=*/true);
  }
  void Wake() override { net_.Wake(rank_); }
  void Abort(const Status& why) override { net_.Abort(why); }

 private:
  void Give(const CrossCall& call, uint32_t index, const void* data, size_t bytes) {
    std::string copy(bytes, '\0');
    if (bytes != 0) std::memcpy(copy.data(), data, bytes);
    net_.Put(rank_, call.group.leaders[index], call.tag, std::move(copy));
  }
  Status Fetch(const CrossCall& call, uint32_t index, void* data, size_t bytes) {
    Result<CrossMessage> got =
        net_.Take(call.group.leaders[index], rank_, call.tag, call.deadline, /*wakeable=*/false);
    if (!got.ok()) return got.status();
    if (got->bytes.size() != bytes) return Internal("leaders disagree about a size");
    if (bytes != 0) std::memcpy(data, got->bytes.data(), bytes);
    return Status::Ok();
  }

  MemoryNet& net_;
  const uint32_t rank_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_MEMORY_CROSS_H_
