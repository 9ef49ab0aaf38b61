// The duties of every Peers to the engine: records in order, whatever their sizes; no room while a
// reader is behind; no wake-up lost. Runs on the request rings of a job page and on the inproc
// model.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/shm/shm_peers.h"
#include "runtime/base/clock.h"
#include "runtime/segment/shared_memory.h"
#include "test/fakes/inproc/inproc_peers.h"
#include "test/fakes/world_of_threads.h"
#include "test/support/deadline.h"

namespace hvd::test {
namespace {

constexpr int64_t kLongNs = 100'000'000;  // the longest sleep there is

class PeersContract : public ::testing::TestWithParam<Transport> {
 protected:
  void Make(uint32_t size) {
    Result<UniqueFd> fd = CreateSharedMemory("hvd-test", JobPage::BytesFor(size));
    memory_ = Mapping::Map(fd->get(), JobPage::BytesFor(size)).value();
    page_ = JobPage::Format(memory_.data(), size, 1);
    group_ = std::make_unique<InprocGroup>(size, 64);
    for (uint32_t r = 0; r < size; ++r) {
      if (shm())
        ranks_.push_back(std::make_unique<ShmPeers>(page_, r));
      else
        ranks_.push_back(std::make_unique<InprocPeers>(*group_, r));
    }
  }
  void Unmake() {
    ranks_.clear();
    group_.reset();
  }
  bool shm() const { return GetParam() == Transport::kShm; }
  Peers& rank(uint32_t r) { return *ranks_[r]; }
  void Break(const std::string& text) {
    page_.Break(text);
    group_->Break(text);
  }
  void Leave(uint32_t r) {
    page_.rank(r).state.store(static_cast<uint32_t>(RankState::kLeft));
    ranks_[r]->WakeAll();
    ranks_[r].reset();
  }

  // A record whose bytes say what they are.
  static std::string Record(uint32_t number, size_t bytes) {
    std::string record(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) record[i] = static_cast<char>(number * 131 + i * 7 + 1);
    return record;
  }
  static bool Send(Peers& from, const std::string& record) {
    std::span<std::byte> room = from.Reserve(record.size());
    if (room.empty()) return false;
    EXPECT_EQ(room.size(), record.size());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(room.data()) % 8, 0u);
    std::memcpy(room.data(), record.data(), record.size());
    from.Commit();
    return true;
  }
  static bool Has(Peers& at, uint32_t from) { return !at.Peek(from).empty(); }
  static std::string Receive(Peers& at, uint32_t from) {
    std::span<const std::byte> record = at.Peek(from);
    std::string copy(reinterpret_cast<const char*>(record.data()), record.size());
    if (!record.empty()) at.Consume(from);
    return copy;
  }

  JobPage page_;

 private:
  Mapping memory_;
  std::unique_ptr<InprocGroup> group_;
  std::vector<std::unique_ptr<Peers>> ranks_;
};

TEST_P(PeersContract, KnowsWhoIsWho) {
  Make(3);
  for (uint32_t r = 0; r < 3; ++r) {
    EXPECT_EQ(rank(r).rank(), r);
    EXPECT_EQ(rank(r).size(), 3u);
    EXPECT_GE(rank(r).max_record(), 65536u) << "the longest name with its head and a payload";
    EXPECT_FALSE(rank(r).broken());
    for (uint32_t peer = 0; peer < 3; ++peer) EXPECT_FALSE(rank(r).HasLeft(peer));
  }
}

TEST_P(PeersContract, EveryPeerHearsEveryStreamInOrder) {
  Make(3);
  for (uint32_t number = 0; number < 500; ++number) {
    for (uint32_t from = 0; from < 3; ++from)
      ASSERT_TRUE(Send(rank(from), Record(number + from, 100 + from)));
    if (number % 7 != 6) continue;  // the readers are behind by a different number each time
    for (uint32_t at = 0; at < 3; ++at) {
      for (uint32_t from = 0; from < 3; ++from) {
        if (at == from) continue;
        for (uint32_t n = number - 6; n <= number; ++n)
          ASSERT_EQ(Receive(rank(at), from), Record(n + from, 100 + from));
        ASSERT_FALSE(Has(rank(at), from));
      }
    }
  }
}

TEST_P(PeersContract, PeekShowsTheSameRecordUntilItIsConsumed) {
  Make(2);
  ASSERT_TRUE(Send(rank(0), Record(1, 10)));
  ASSERT_TRUE(Send(rank(0), Record(2, 20)));
  EXPECT_EQ(rank(1).Peek(0).data(), rank(1).Peek(0).data());
  EXPECT_EQ(rank(1).Peek(0).size(), 10u);
  rank(1).Consume(0);
  EXPECT_EQ(rank(1).Peek(0).size(), 20u);
}

TEST_P(PeersContract, WhatIsReservedAndNotCommittedIsNotThere) {
  Make(2);
  std::span<std::byte> room = rank(0).Reserve(1000);
  std::memset(room.data(), 1, room.size());
  EXPECT_FALSE(Has(rank(1), 0));
  room = rank(0).Reserve(8);  // one's mind may change
  std::memset(room.data(), 2, room.size());
  rank(0).Commit();
  EXPECT_EQ(Receive(rank(1), 0), std::string(8, 2));
}

// All sizes, in an order that puts the end of the ring at every place of a record.
TEST_P(PeersContract, EverySizeTravelsAcrossTheEndOfTheRing) {
  Make(2);
  const size_t largest = rank(0).max_record();
  std::vector<size_t> sizes;
  for (size_t size = 1; size <= 200; ++size) sizes.push_back(size);
  for (size_t size = 256; size <= largest; size *= 2)
    sizes.insert(sizes.end(), {size - 17, size - 16, size - 1, size});
  for (int i = 0; i < 12; ++i)
    sizes.insert(sizes.end(), {largest, largest - 64 * i, largest / 3 + i});
  std::mt19937 random(20240611);
  uint32_t sent = 0, received = 0;
  for (int round = 0; round < 6; ++round) {
    std::shuffle(sizes.begin(), sizes.end(), random);
    for (size_t size : sizes) {
      while (!Send(rank(0), Record(sent, size))) {
        ASSERT_LT(received, sent) << "an empty ring has room for " << size;
        std::string got = Receive(rank(1), 0);
        ASSERT_EQ(got, Record(received, got.size()));
        ++received;
      }
      ++sent;
      if (random() % 3 == 0) {
        std::string got = Receive(rank(1), 0);
        ASSERT_EQ(got, Record(received, got.size()));
        ++received;
      }
      if (random() % 50 == 0) {
        for (; received < sent; ++received) {
          std::string got = Receive(rank(1), 0);
          ASSERT_EQ(got, Record(received, got.size()));
        }
        ASSERT_FALSE(Has(rank(1), 0)) << "old bytes were taken for a record";
      }
    }
  }
}

// Payloads made of frames: of the word before the last record, and of positions of this place in
// the next turn.
TEST_P(PeersContract, PayloadIsNeverTakenForARecord) {
  Make(2);
  std::mt19937 random(5);
  const std::byte* ring = page_.ring(0).data();
  const uint64_t ring_bytes = page_.ring(0).size();
  uint64_t turn = 0, before = 0, last_frame = 0;
  for (int i = 0; i < 3000; ++i) {
    const size_t size = 8 * (1 + random() % (i % 10 == 0 ? rank(0).max_record() / 8 : 100));
    std::span<std::byte> room = rank(0).Reserve(size);
    ASSERT_FALSE(room.empty());
    const uint64_t offset = shm() ? static_cast<uint64_t>(room.data() - ring) : 0;
    if (offset < before) ++turn;
    before = offset;
    for (size_t at = 0; at < size; at += 8) {
      uint64_t word = (turn + 1) * ring_bytes + offset + at + at / 8 % 2;
      if (at % 32 == 0) word = last_frame;
      std::memcpy(room.data() + at, &word, 8);
    }
    ASSERT_FALSE(Has(rank(1), 0)) << "record " << i << " was seen before it was committed";
    rank(0).Commit();
    if (shm()) std::memcpy(&last_frame, room.data() - 16, 8);
    ASSERT_EQ(rank(1).Peek(0).size(), size);
    rank(1).Consume(0);
    ASSERT_FALSE(Has(rank(1), 0)) << "payload was taken for a record after record " << i;
  }
}

TEST_P(PeersContract, AFullStreamHasRoomAgainWhenTheSlowestReaderHasRead) {
  for (size_t size : {size_t{40}, size_t{5000}, size_t{65536}}) {
    SCOPED_TRACE(size);
    Unmake();
    Make(3);
    uint32_t sent = 0;
    while (Send(rank(0), Record(sent, size))) ASSERT_LT(++sent, 1'000'000u);
    ASSERT_GT(sent, 0u);
    EXPECT_TRUE(rank(0).Reserve(size).empty()) << "asking again changes nothing";
    for (uint32_t n = 0; n < sent; ++n) ASSERT_EQ(Receive(rank(1), 0), Record(n, size));
    EXPECT_TRUE(rank(0).Reserve(size).empty()) << "rank 2 has not read";
    EXPECT_TRUE(Send(rank(1), Record(9, size))) << "the streams are independent";
    uint32_t read = 0;
    while (!Send(rank(0), Record(sent, size))) {
      ASSERT_LT(read, sent) << "an empty ring has room";
      ASSERT_EQ(Receive(rank(2), 0), Record(read++, size));
    }
    for (; read <= sent; ++read) ASSERT_EQ(Receive(rank(2), 0), Record(read, size));
    EXPECT_EQ(Receive(rank(1), 0), Record(sent, size));
    EXPECT_FALSE(Has(rank(1), 0) || Has(rank(2), 0));
  }
}

// Every way in which a peer can do something after the announcement ends the sleep. If each were
// lost, the sleeps of one case would last 20 s.
TEST_P(PeersContract, WhatHappensAfterTheAnnouncementEndsTheSleep) {
  Make(2);
  const std::pair<const char*, std::function<void()>> cases[] = {
      {"a record",
       [&] {
         EXPECT_TRUE(Send(rank(1), "x"));
         Receive(rank(0), 1);
       }},
      {"WakeAll", [&] { rank(1).WakeAll(); }},
      {"Nudge", [&] { rank(1).Nudge(); }},
      {"WakeSelf", [&] { rank(0).WakeSelf(); }},
      {"broken", [&] { Break("over"); }},
  };
  for (const auto& [what, act] : cases) {
    const bool once = std::string(what) == "broken";
    const TimePoint start = SteadyNow();
    for (int i = 0; i < (once ? 1 : 200); ++i) {
      uint32_t token = rank(0).AnnounceSleep();
      act();
      rank(0).Sleep(token, kLongNs);
      rank(0).EndSleep();
    }
    EXPECT_LT(SteadyNow() - start, Scaled(std::chrono::seconds(10))) << what;
  }
}

TEST_P(PeersContract, AnAnnouncementMayBeTakenBack) {
  Make(2);
  for (int i = 0; i < 100; ++i) {
    rank(0).AnnounceSleep();
    rank(0).EndSleep();
  }
  uint32_t token = rank(0).AnnounceSleep();
  rank(0).Sleep(token, 0);
  rank(0).EndSleep();
  EXPECT_TRUE(Send(rank(1), "x"));
  EXPECT_EQ(Receive(rank(0), 1), "x");
}

// Two ranks that answer each other and sleep in between; a lost wake-up costs 100 ms, all of them
// would take 8 minutes.
TEST_P(PeersContract, NoWakeUpIsLostBetweenThreads) {
  Make(2);
  constexpr uint32_t kRounds = 5000;
  auto await = [&](uint32_t at, uint32_t from) -> std::string {
    while (!Has(rank(at), from)) {
      uint32_t token = rank(at).AnnounceSleep();
      if (!Has(rank(at), from)) rank(at).Sleep(token, kLongNs);
      rank(at).EndSleep();
    }
    return Receive(rank(at), from);
  };
  const TimePoint start = SteadyNow();
  std::thread other([&] {
    for (uint32_t n = 0; n < kRounds; ++n) {
      ASSERT_EQ(await(1, 0), Record(n, 9));
      ASSERT_TRUE(Send(rank(1), Record(n, 17)));
    }
  });
  for (uint32_t n = 0; n < kRounds; ++n) {
    ASSERT_TRUE(Send(rank(0), Record(n, 9)));
    ASSERT_EQ(await(0, 1), Record(n, 17));
  }
  other.join();
  EXPECT_LT(SteadyNow() - start, kDeadline);
}

// A writer that is faster than its readers: the stream fills again and again.
TEST_P(PeersContract, AWriterAndItsReadersRunAtOnce) {
  Make(3);
  constexpr uint32_t kRecords = 4000;
  auto size_of = [](uint32_t n) { return n % 97 == 0 ? size_t{65536} : 1 + n % 700; };
  std::vector<std::thread> readers;
  for (uint32_t at : {1u, 2u}) {
    readers.emplace_back([&, at] {
      for (uint32_t n = 0; n < kRecords; ++n) {
        while (!Has(rank(at), 0)) std::this_thread::yield();
        ASSERT_EQ(Receive(rank(at), 0), Record(n, size_of(n)));
      }
    });
  }
  for (uint32_t n = 0; n < kRecords; ++n) {
    while (!Send(rank(0), Record(n, size_of(n)))) std::this_thread::yield();
  }
  for (std::thread& reader : readers) reader.join();
}

TEST_P(PeersContract, ABreakIsSeenByAllWithTheFirstReason) {
  Make(3);
  ASSERT_TRUE(Send(rank(0), "last words"));
  Break("rank 2 (pid 4711) died");
  Break("the job ends");
  for (uint32_t r = 0; r < 3; ++r) {
    EXPECT_TRUE(rank(r).broken());
    EXPECT_EQ(rank(r).broken_text(), "rank 2 (pid 4711) died");
  }
}

TEST_P(PeersContract, WhatALeaverSaidCanStillBeHeard) {
  Make(3);
  ASSERT_TRUE(Send(rank(0), "last words"));
  Leave(0);
  for (uint32_t r : {1u, 2u}) {
    EXPECT_TRUE(rank(r).HasLeft(0));
    EXPECT_FALSE(rank(r).HasLeft(3 - r));
    EXPECT_FALSE(rank(r).broken()) << "a goodbye is no death";
    EXPECT_EQ(Receive(rank(r), 0), "last words");
    EXPECT_FALSE(Has(rank(r), 0));
  }
}

TEST_P(PeersContract, ARankAloneHasRoomForever) {
  Make(1);
  for (uint32_t n = 0; n < 2000; ++n) ASSERT_TRUE(Send(rank(0), Record(n, 5000)));
}

INSTANTIATE_TEST_SUITE_P(, PeersContract, ::testing::Values(Transport::kShm, Transport::kInproc),
                         [](const auto& tested) {
                           return tested.param == Transport::kShm ? "Shm" : "Inproc";
                         });

}  // namespace
}  // namespace hvd::test
