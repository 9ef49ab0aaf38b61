#include "runtime/device/shared_heap.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/api/segment_switch.h"

namespace hvd {

// Damages the lists of the first segment, while no other thread uses the heap.
struct HeapDamage {
  using Ranges = std::map<uint64_t, uint64_t>;
  static void SetFree(SharedHeap& heap, Ranges free) HVD_NO_THREAD_SAFETY_ANALYSIS {
    heap.segments_.at(0)->free = std::move(free);
  }
};

namespace {

// Gives segments until told not to, and counts.
class CountingSource final : public SegmentSource {
 public:
  Result<DataSegment> Allocate(uint64_t bytes) override {
    if (full) return OutOfMemory("this host has no memory left");
    ++allocated;
    return real_.Allocate(bytes);
  }
  Result<DataSegment> Fetch(uint32_t id) override {
    ++fetched;
    return real_.Fetch(id);
  }
  void Free(uint32_t id) override { real_.Free(id); }

  bool full = false;
  int allocated = 0, fetched = 0;

 private:
  LocalSegmentSource real_;
};

class SharedHeapTest : public ::testing::Test {
 protected:
  std::byte* Allocate(size_t bytes, bool zeroed = false) {
    return static_cast<std::byte*>(heap_.Allocate(bytes, zeroed));
  }
  CountingSource source_;
  SharedHeap heap_{source_};
};

TEST_F(SharedHeapTest, WhatAWorldLeftBehindIsFreeInTheNext) {
  std::byte* kept = Allocate(1000);
  void* freed = heap_.Allocate(1000, false, nullptr, Until::kWorldEnds);
  void* left = heap_.Allocate(1000, false, nullptr, Until::kWorldEnds);
  EXPECT_TRUE(heap_.Free(freed));
  std::byte* again = Allocate(1000);  // in the place of the freed, but for good
  EXPECT_EQ(again, freed);
  heap_.ReclaimWorld();
  EXPECT_FALSE(heap_.Free(left)) << "it is free already";
  EXPECT_TRUE(heap_.Free(kept));
  EXPECT_TRUE(heap_.Free(again));
  heap_.ReclaimWorld();
  constexpr size_t kSegment = size_t{4} << 20;
  EXPECT_NE(Allocate(kSegment), nullptr) << "the free parts are one again";
  EXPECT_EQ(source_.allocated, 1);
}

TEST_F(SharedHeapTest, AlignsAndKeepsApart) {
  std::set<std::byte*> seen;
  std::byte* before = nullptr;
  for (size_t bytes : {1, 63, 64, 65, 4096, 100'000}) {
    std::byte* memory = Allocate(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
    EXPECT_TRUE(seen.insert(memory).second);
    EXPECT_TRUE(before == nullptr || memory > before);
    std::memset(memory, 0xee, bytes);
    before = memory;
  }
  EXPECT_NE(Allocate(0), nullptr) << "nothing is a place of its own";
}

TEST_F(SharedHeapTest, ZeroesWhatWasUsedBefore) {
  std::byte* memory = Allocate(1000);
  std::memset(memory, 0xee, 1000);
  EXPECT_TRUE(heap_.Free(memory));
  std::byte* again = Allocate(1000, /*zeroed=*/true);
  ASSERT_EQ(again, memory) << "first fit";
  for (size_t i = 0; i < 1000; ++i) ASSERT_EQ(again[i], std::byte{0});
}

// All orders of freeing three neighbours end in one free piece that holds all of them.
TEST_F(SharedHeapTest, MergesFreeNeighbours) {
  int order[] = {0, 1, 2};
  do {
    std::byte* parts[3];
    for (std::byte*& part : parts) part = Allocate(128);
    std::byte* wall = Allocate(64);
    for (int i : order) EXPECT_TRUE(heap_.Free(parts[i]));
    std::byte* whole = Allocate(3 * 128);
    EXPECT_EQ(whole, parts[0]);
    heap_.Free(whole);
    heap_.Free(wall);
  } while (std::next_permutation(std::begin(order), std::end(order)));
  EXPECT_EQ(source_.allocated, 1);
}

TEST_F(SharedHeapTest, FreesOnlyWhatItGaveAndOnlyOnce) {
  std::byte* memory = Allocate(256);
  int local = 0;
  EXPECT_FALSE(heap_.Free(&local));
  EXPECT_FALSE(heap_.Free(nullptr));
  EXPECT_FALSE(heap_.Free(memory + 64)) << "the middle of an allocation";
  EXPECT_TRUE(heap_.Free(memory));
  EXPECT_FALSE(heap_.Free(memory));
}

TEST_F(SharedHeapTest, LocatesExactlyItsOwn) {
  std::byte* a = Allocate(100);
  std::byte* b = Allocate(100);
  std::optional<Location> at_a = heap_.Locate(a, 100), at_b = heap_.Locate(b + 3, 10);
  ASSERT_TRUE(at_a && at_b);
  EXPECT_NE(at_a->segment, 0u);
  EXPECT_EQ(at_b->segment, at_a->segment);
  EXPECT_EQ(at_b->offset - at_a->offset, static_cast<uint64_t>(b + 3 - a));
  int local = 0;
  EXPECT_FALSE(heap_.Locate(&local, sizeof local));
  EXPECT_FALSE(heap_.Locate(a, size_t{1} << 40)) << "beyond the segment";
  EXPECT_FALSE(heap_.Locate(a, SIZE_MAX));
}

TEST_F(SharedHeapTest, GrowsWithoutMovingAnything) {
  std::byte* small = Allocate(10);
  std::memset(small, 0x11, 10);
  std::byte* large = Allocate(9 << 20);
  ASSERT_NE(large, nullptr);
  std::memset(large, 0x22, 9 << 20);
  EXPECT_EQ(small[9], std::byte{0x11});
  EXPECT_EQ(source_.allocated, 2);
  EXPECT_NE(heap_.Locate(small, 10)->segment, heap_.Locate(large, 9 << 20)->segment);
  for (int i = 0; i < 1000; ++i) ASSERT_NE(Allocate(1000), nullptr);
  EXPECT_EQ(source_.allocated, 2) << "small allocations share segments";
}

TEST_F(SharedHeapTest, SaysWhyThereIsNoMemoryAndWorksOn) {
  std::byte* kept = Allocate(64);
  source_.full = true;
  Status why;
  EXPECT_EQ(heap_.Allocate(64 << 20, true, &why), nullptr);
  EXPECT_EQ(why.code(), Code::kOutOfMemory);
  EXPECT_EQ(why.message(), "this host has no memory left");
  EXPECT_EQ(heap_.Allocate(64 << 20, true), nullptr) << "the reason is optional";
  EXPECT_NE(Allocate(64), nullptr) << "what is there can still be used";
  EXPECT_TRUE(heap_.Free(kept));
  source_.full = false;
  EXPECT_NE(Allocate(8 << 20), nullptr);
}

TEST_F(SharedHeapTest, GivesPrivateMemoryWhereThatWillDo) {
  auto* shared = static_cast<std::byte*>(heap_.AllocateAnywhere(1000));
  EXPECT_TRUE(heap_.Locate(shared, 1000));
  source_.full = true;
  auto* memory = static_cast<std::byte*>(heap_.AllocateAnywhere(64 << 20));
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
  EXPECT_FALSE(heap_.Locate(memory, 1)) << "no peer can reach it";
  memory[(64 << 20) - 1] = std::byte{1};
  EXPECT_FALSE(heap_.Free(memory + 64));
  EXPECT_TRUE(heap_.Free(memory));
  EXPECT_FALSE(heap_.Free(memory));
  EXPECT_NE(heap_.AllocateAnywhere(8 << 20), nullptr) << "the heap frees what is left over";
  Status why;
  EXPECT_EQ(heap_.AllocateAnywhere(SIZE_MAX, &why), nullptr);
  EXPECT_EQ(why.code(), Code::kOutOfMemory);
}

TEST_F(SharedHeapTest, SizesBeyondAllMemoryAreRefused) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 64, SIZE_MAX - 5000, SIZE_MAX / 2}) {
    Status why;
    EXPECT_EQ(heap_.Allocate(bytes, true, &why), nullptr) << bytes;
    EXPECT_EQ(why.code(), Code::kOutOfMemory) << bytes << ": " << why.message();
  }
  EXPECT_NE(Allocate(64), nullptr);
}

TEST_F(SharedHeapTest, APeerFindsTheSameBytes) {
  SharedMemoryMap map(source_);
  std::byte* memory = Allocate(1000, true);
  Result<std::byte*> seen = map.Resolve(*heap_.Locate(memory, 1000), 1000);
  ASSERT_TRUE(seen.ok()) << seen.status().message();
  EXPECT_NE(*seen, memory) << "another mapping";
  memory[999] = std::byte{5};
  EXPECT_EQ((*seen)[999], std::byte{5});
  ASSERT_TRUE(map.Resolve(*heap_.Locate(memory + 1, 9), 9).ok());
  EXPECT_EQ(source_.fetched, 1) << "a segment is mapped once";
  map.Clear();
  ASSERT_TRUE(map.Resolve(*heap_.Locate(memory, 1), 1).ok());
  EXPECT_EQ(source_.fetched, 2);
}

TEST_F(SharedHeapTest, APeerIsNotLedOutOfASegment) {
  SharedMemoryMap map(source_);
  Location start = *heap_.Locate(Allocate(64), 64);
  constexpr uint64_t kSegment = 4 << 20;
  EXPECT_TRUE(map.Resolve({start.segment, 0}, kSegment).ok());
  EXPECT_TRUE(map.Resolve({start.segment, kSegment}, 0).ok());
  EXPECT_FALSE(map.Resolve({start.segment, 0}, kSegment + 1).ok());
  EXPECT_FALSE(map.Resolve({start.segment, kSegment}, 1).ok());
  EXPECT_FALSE(map.Resolve({start.segment, UINT64_MAX}, 2).ok());
  EXPECT_FALSE(map.Resolve({start.segment, 1}, SIZE_MAX).ok());
  EXPECT_FALSE(map.Resolve({0, 0}, 1).ok()) << "0 is nowhere";
  EXPECT_FALSE(map.Resolve({start.segment + 1, 0}, 1).ok());
}

// Memory before hvd.init() has found out with whom to share it is private; later it stays with whom
// it was shared.
TEST(SegmentSwitch, PointsElsewhereUntilMemoryIsShared) {
  LocalSegmentSource first, second;
  SegmentSwitch source;
  SharedHeap heap(source);
  Status why;
  EXPECT_EQ(heap.Allocate(100, /*zeroed=*/false, &why), nullptr);
  EXPECT_NE(why.message().find("only after hvd.init()"), std::string::npos) << why.message();
  EXPECT_TRUE(source.Point(&first));
  EXPECT_TRUE(source.Point(&second));
  EXPECT_FALSE(source.used());
  void* memory = heap.Allocate(100, /*zeroed=*/true, &why);
  ASSERT_NE(memory, nullptr) << why.message();
  EXPECT_TRUE(source.used());
  EXPECT_TRUE(source.Point(&second));
  EXPECT_FALSE(source.Point(&first));
  EXPECT_TRUE(heap.Free(memory));
}

// ---- damage

class ShortSource final : public SegmentSource {
 public:
  Result<DataSegment> Allocate(uint64_t bytes) override { return real_.Allocate(bytes / 2); }
  Result<DataSegment> Fetch(uint32_t id) override { return real_.Fetch(id); }
  void Free(uint32_t id) override {
    ++freed;
    real_.Free(id);
  }
  int freed = 0;

 private:
  LocalSegmentSource real_;
};

TEST(SharedHeapErrors, ASegmentThatIsTooSmallIsASentence) {
  ShortSource source;
  SharedHeap heap(source);
  Status why;
  EXPECT_EQ(heap.Allocate(32 << 20, /*zeroed=*/true, &why), nullptr);
  EXPECT_NE(why.message().find("16777216 bytes where this rank asked for 33554432"),
            std::string::npos)
      << why.message();
  EXPECT_EQ(source.freed, 1);
}

using SharedHeapDeathTest = SharedHeapTest;

TEST_F(SharedHeapDeathTest, AFreeBlockThatIsInUse) {
  Allocate(64);
  HeapDamage::SetFree(heap_, {{0, 4 << 20}});
  EXPECT_DEATH(Allocate(64),
               "fresh && offset \\+ bytes <= segment.mapping.size\\(\\) does not hold");
}

TEST_F(SharedHeapDeathTest, AFreeBlockBehindTheEnd) {
  Allocate(64);
  HeapDamage::SetFree(heap_, {{4 << 20, 4096}});
  EXPECT_DEATH(Allocate(64), "segment.mapping.size\\(\\) = 1, 4194304, 64, 4194304");
}

TEST_F(SharedHeapDeathTest, FreeBlocksThatOverlap) {
  std::byte* first = Allocate(64);
  std::byte* second = Allocate(64);
  HeapDamage::SetFree(heap_, {{32, 4096}});
  EXPECT_DEATH(heap_.Free(first), "offset \\+ bytes <= next->first does not hold");
  HeapDamage::SetFree(heap_, {{0, 128}});
  EXPECT_DEATH(heap_.Free(second), "before->first \\+ before->second <= offset does not hold");
}

}  // namespace
}  // namespace hvd
