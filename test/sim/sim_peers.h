// Peers of many ranks in one thread, where a scheduler decides when each rank gets to see each
// record. Tests only.
#ifndef HVD_TEST_SIM_SIM_PEERS_H_
#define HVD_TEST_SIM_SIM_PEERS_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "runtime/backends/peers.h"

namespace hvd::test {

// The state that the ranks share. Counts everything that happens, so that a world that stands still
// is noticed.
class SimNet {
 public:
  // A rank may be at most `capacity` records ahead of its slowest reader.
  SimNet(uint32_t size, size_t capacity, size_t max_record)
      : size_(size), capacity_(capacity), max_record_(max_record), writers_(size), told_(size) {
    for (Writer& writer : writers_) writer.readers.resize(size);
  }

  // Shows the reader one more record of the writer; false when there is none.
  bool Deliver(uint32_t writer, uint32_t reader) {
    Reader& seen = writers_[writer].readers[reader];
    if (writer == reader || seen.shown == writers_[writer].end) return false;
    ++seen.shown;
    ++events_;
    return true;
  }
  void DeliverAll() {
    for (uint32_t w = 0; w < size_; ++w) {
      for (uint32_t r = 0; r < size_; ++r) {
        while (Deliver(w, r)) {
        }
      }
    }
    for (uint32_t r = 0; r < size_; ++r) Notify(r);
  }

  void Break(std::string text) { broken_text_ = std::move(text); }
  // Lets the rank see that the world is broken, if it is.
  void Notify(uint32_t rank) {
    if (broken_text_.empty() || told_[rank]) return;
    told_[rank] = true;
    ++events_;
  }
  void Leave(uint32_t rank) {
    writers_[rank].left = true;
    ++events_;
  }

  uint64_t events() const { return events_; }

 private:
  friend class SimPeers;
  using Record = std::vector<std::byte>;
  struct Reader {
    uint64_t shown = 0, read = 0;  // positions in the writer's stream
  };
  struct Writer {
    std::deque<Record> records;  // [begin, end) of the stream
    uint64_t begin = 0, end = 0;
    std::vector<Reader> readers;
    bool left = false;
  };

  const uint32_t size_;
  const size_t capacity_, max_record_;
  std::vector<Writer> writers_;
  std::vector<bool> told_;
  std::string broken_text_;
  uint64_t events_ = 0;
};

class SimPeers final : public Peers {
 public:
  SimPeers(SimNet& net, uint32_t rank) : net_(net), rank_(rank) {}

  uint32_t rank() const override { return rank_; }
  uint32_t size() const override { return net_.size_; }
  size_t max_record() const override { return net_.max_record_; }

  std::span<std::byte> Reserve(size_t bytes) override {
    SimNet::Writer& own = net_.writers_[rank_];
    uint64_t slowest = own.end;
    for (uint32_t r = 0; r < net_.size_; ++r) {
      if (r != rank_ && !net_.writers_[r].left) slowest = std::min(slowest, own.readers[r].read);
    }
    while (own.begin < slowest) {
      own.records.pop_front();
      ++own.begin;
    }
    if (own.end - slowest >= net_.capacity_) return {};
    reserved_.assign(bytes, std::byte{0});
    return reserved_;
  }
  void Commit() override {
    SimNet::Writer& own = net_.writers_[rank_];
    own.records.push_back(reserved_);
    ++own.end;
    ++net_.events_;
  }

  std::span<const std::byte> Peek(uint32_t peer) override {
    const SimNet::Writer& writer = net_.writers_[peer];
    const SimNet::Reader& seen = writer.readers[rank_];
    if (seen.read == seen.shown) return {};
    return writer.records[seen.read - writer.begin];
  }
  void Consume(uint32_t peer) override {
    ++net_.writers_[peer].readers[rank_].read;
    ++net_.events_;
  }

  bool broken() const override { return net_.told_[rank_]; }
  std::string broken_text() const override { return net_.broken_text_; }
  bool HasLeft(uint32_t peer) const override {
    const SimNet::Writer& writer = net_.writers_[peer];
    return writer.left && writer.readers[rank_].shown == writer.end;
  }

  void WakeAll() override {}
  void Nudge() override {}
  void WakeSelf() override {}
  void NoteSubmitted(uint32_t, std::string_view) override {}
  void NoteFailed() override {}
  void NoteSleeping(int64_t) override {}
  uint32_t AnnounceSleep() override { return 0; }
  void Sleep(uint32_t, int64_t) override {}
  void EndSleep() override {}

 private:
  SimNet& net_;
  const uint32_t rank_;
  std::vector<std::byte> reserved_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_SIM_PEERS_H_
