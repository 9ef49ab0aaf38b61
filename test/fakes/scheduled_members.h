// Members of one group in one thread, without engines: a seeded scheduler moves one member of one
// operation at a time through Prepare, Start and Advance, so that every order can happen and every
// run can be repeated.
//
// A member looks many times while it waits for others to come. The scheduler is as unkind as an
// engine may be: payloads are gone after Start, inputs and outputs are overwritten as soon as their
// owner is done.
#ifndef HVD_TEST_FAKES_SCHEDULED_MEMBERS_H_
#define HVD_TEST_FAKES_SCHEDULED_MEMBERS_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/backends/hosts/hosts_backend.h"
#include "runtime/backends/shm/shm_backend.h"
#include "test/fakes/inproc/inproc_backend.h"
#include "test/fakes/inproc/inproc_inter_host_comm.h"

namespace hvd::test {

// kHosts: what a rank uses in a world over several hosts, for a group of one of them.
enum class Kind { kShm, kInproc, kHosts };
using Bytes = std::vector<std::byte>;

// One rank's way to shared memory, which can be closed.
class DoorToSegments final : public SegmentSource {
 public:
  explicit DoorToSegments(SegmentSource& segments) : segments_(segments) {}
  Result<DataSegment> Allocate(uint64_t bytes) override {
    if (closed) return OutOfMemory("this host has no shared memory left");
    return segments_.Allocate(bytes);
  }
  Result<DataSegment> Fetch(uint32_t id) override { return segments_.Fetch(id); }
  void Free(uint32_t id) override { segments_.Free(id); }
  bool closed = false;

 private:
  SegmentSource& segments_;
};

// The memory and the backend of one rank.
struct Member {
  Member(Kind kind, SegmentSource& segments, InprocInterHostHub& hub, HostMap map)
      : door(segments), heap(door), peer_memory(segments), comm(hub, map.rank) {
    if (kind == Kind::kInproc) {
      backend = std::make_unique<InprocBackend>(heap);
      return;
    }
    backend = std::make_unique<ShmBackend>(heap, peer_memory, /*chunk_kib=*/0, /*tuned=*/nullptr,
                                           /*peers=*/nullptr, /*ring_from=*/0, /*stream_from=*/0);
    if (kind == Kind::kShm) return;
    one_host = std::move(backend);
    HostLeaderOptions options;
    options.map = std::move(map);
    options.wake_host = [] {};
    options.broken = [] { return std::nullopt; };
    backend = std::make_unique<HostsBackend>(*one_host, heap, peer_memory, comm,
                                             HostsBackend::Options{std::move(options), [] {}});
  }
  DoorToSegments door;
  SharedHeap heap;
  SharedMemoryMap peer_memory;
  InprocInterHostComm comm;
  std::unique_ptr<Backend> one_host;  // of kHosts
  std::unique_ptr<Backend> backend;
  Group group;
};

// One member's part of one operation.
struct Part {
  enum class Stage { kNew, kPrepared, kStarted, kDone };
  CollectiveCall call;
  CollectiveResult result;
  std::unique_ptr<OpState> state;
  BufferDescriptor descriptor;
  Bytes payload;
  std::vector<int64_t> splits;
  Stage stage = Stage::kNew;
  Bytes output;  // as it was when the part was done
  Status status;
  size_t output_bytes = 0;
};

struct Operation {
  std::vector<Part> parts;  // by member
  std::vector<uint8_t> joined;

  bool Takes(size_t member) const { return joined.empty() || joined[member] == 0; }
  bool Done() const {
    for (size_t m = 0; m < parts.size(); ++m) {
      if (Takes(m) && parts[m].stage != Part::Stage::kDone) return false;
    }
    return true;
  }
};

class ScheduledMembers {
 public:
  // The members are the ranks 1, 3, 5, ... of a larger world, whose last rank has another host.
  ScheduledMembers(Kind kind, uint32_t members) {
    std::vector<uint32_t> host_of(2 * members + 1, 0);
    host_of.back() = 1;
    for (uint32_t m = 0; m < members; ++m) {
      members_.push_back(
          std::make_unique<Member>(kind, segments_, hub_, HostMap{host_of, 2 * m + 1}));
      Group& group = members_[m]->group;
      group.id = 1;
      group.index = group.local_index = m;
      for (uint32_t k = 0; k < members; ++k) {
        group.ranks.push_back(2 * k + 1);
        group.local.push_back(2 * k + 1);
        group.local_to_group.push_back(k);
      }
    }
  }

  uint32_t size() const { return static_cast<uint32_t>(members_.size()); }
  Member& member(size_t m) { return *members_[m]; }

  // Runs all operations to their ends. `late` does nothing but Prepare until nobody else can go on.
  void Run(std::vector<Operation>& operations, uint32_t seed, std::optional<uint32_t> late = {}) {
    std::mt19937 random(seed);
    int idle = 0;
    while (!std::all_of(operations.begin(), operations.end(),
                        [](const Operation& op) { return op.Done(); })) {
      Operation& operation = operations[random() % operations.size()];
      const uint32_t m = random() % size();
      Part& part = operation.parts[m];
      if (!operation.Takes(m) || part.stage == Part::Stage::kDone) continue;
      if (late == m && part.stage != Part::Stage::kNew) {
        if (++idle < 5000) continue;
        ExpectOthersNeedOnly(operations, m);
        late.reset();
      }
      if (!Step(operation, m)) return;
      ASSERT_LT(++steps_, 3'000'000) << "no end";
    }
  }

 private:
  // A member that has not ended without the late one must say that it needs it.
  void ExpectOthersNeedOnly(std::vector<Operation>& operations, uint32_t late) {
    for (Operation& operation : operations) {
      for (uint32_t m = 0; m < size(); ++m) {
        Part& part = operation.parts[m];
        if (m == late || !operation.Takes(m) || part.stage == Part::Stage::kDone) continue;
        ASSERT_EQ(part.stage, Part::Stage::kStarted);
        EXPECT_TRUE(members_[m]->backend->Needs(part.call, part.state.get(), 2 * late + 1));
        EXPECT_FALSE(members_[m]->backend->Needs(part.call, part.state.get(), 2 * m + 1));
        EXPECT_FALSE(members_[m]->backend->Needs(part.call, part.state.get(), 2 * late));
        EXPECT_EQ(members_[m]->backend->Awaits(part.call, part.state.get()),
                  "for rank " + std::to_string(2 * late + 1) + " to finish its part");
      }
    }
  }

  bool Step(Operation& operation, uint32_t m) {
    Part& part = operation.parts[m];
    Backend& backend = *members_[m]->backend;
    Result<bool> done = false;
    switch (part.stage) {
      case Part::Stage::kNew: {
        if (part.call.collective == Collective::kAlltoall && part.splits.empty()) {
          part.splits.assign(size(), part.call.rows / size());
        }
        part.call.group = &members_[m]->group;
        part.call.result = &part.result;
        part.call.splits = part.splits.empty() ? nullptr : part.splits.data();
        Status prepared = backend.Prepare(part.call, &part.state, &part.descriptor);
        EXPECT_TRUE(prepared.ok()) << prepared.message();
        if (!prepared.ok()) return false;
        part.payload.assign(part.descriptor.payload.begin(), part.descriptor.payload.end());
        part.stage = Part::Stage::kPrepared;
        return true;
      }
      case Part::Stage::kPrepared: {
        for (size_t k = 0; k < operation.parts.size(); ++k) {
          if (!operation.Takes(k) || operation.parts[k].stage != Part::Stage::kNew) continue;
          for (int look = 0; look < 60; ++look) backend.WorkAhead(part.call, part.state.get());
          return true;
        }
        done = Start(operation, m);
        part.stage = Part::Stage::kStarted;
        break;
      }
      case Part::Stage::kStarted: done = backend.Advance(part.call, part.state.get()); break;
      case Part::Stage::kDone: return true;
    }
    EXPECT_TRUE(done.ok()) << done.status().message();
    if (!done.ok()) return false;
    if (*done) Finish(m, &part);
    return true;
  }

  Result<bool> Start(Operation& operation, uint32_t m) {
    Part& part = operation.parts[m];
    std::vector<Bytes> payloads(size());
    std::vector<BufferDescriptor> descriptors(size());
    std::vector<Extent> extents;
    for (uint32_t k = 0; k < size(); ++k) {
      Part& other = operation.parts[k];
      descriptors[k].words = other.descriptor.words;
      payloads[k] = other.payload;
      if (!payloads[k].empty()) descriptors[k].payload = payloads[k];
    }
    const Collective collective = part.call.collective;
    if (collective == Collective::kAllgather || collective == Collective::kAlltoall) {
      for (Part& other : operation.parts) extents.push_back({other.call.rows, other.splits});
    }
    return members_[m]->backend->Start(part.call, part.state.get(),
                                       {descriptors, extents, operation.joined});
  }

  void Finish(uint32_t m, Part* part) {
    part->state.reset();
    part->stage = Part::Stage::kDone;
    void* output = part->call.output != nullptr ? part->call.output : part->result.made_output;
    const CollectiveCall& call = part->call;
    if (call.collective == Collective::kAllreduce || call.collective == Collective::kBroadcast) {
      part->output_bytes = call.bytes();
    } else {
      part->output_bytes = static_cast<size_t>(part->result.rows) * call.row_bytes();
    }
    if (part->output_bytes != 0) {
      part->output.resize(part->output_bytes);
      std::memcpy(part->output.data(), output, part->output_bytes);
      std::memset(output, 0xa5, part->output_bytes);
    }
    if (call.bytes() != 0) std::memset(const_cast<void*>(call.input), 0x5a, call.bytes());
    if (part->result.made_output != nullptr) {
      EXPECT_TRUE(members_[m]->heap.Free(part->result.made_output));
    }
  }

  LocalSegmentSource segments_;
  InprocInterHostHub hub_;
  std::vector<std::unique_ptr<Member>> members_;
  int steps_ = 0;
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_SCHEDULED_MEMBERS_H_
