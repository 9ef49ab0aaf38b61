// The consequences of the end of an operation.
#include "runtime/core/completion.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

// Counts what the end of an operation makes of it; there is nobody else.
class NotedPeers final : public Peers {
 public:
  uint32_t rank() const override { return 0; }
  uint32_t size() const override { return 2; }
  size_t max_record() const override { return 256; }
  std::span<std::byte> Reserve(size_t) override { return {}; }  // never room
  void Commit() override {}
  std::span<const std::byte> Peek(uint32_t) override { return {}; }
  void Consume(uint32_t) override {}
  bool broken() const override { return false; }
  std::string broken_text() const override { return ""; }
  bool HasLeft(uint32_t) const override { return false; }
  void WakeAll() override {}
  void Nudge() override {}
  void WakeSelf() override { ++woken; }
  void NoteSubmitted(uint32_t, std::string_view) override {}
  void NoteSleeping(int64_t) override {}
  void NoteFailed() override { ++failed; }
  uint32_t AnnounceSleep() override { return 0; }
  void Sleep(uint32_t, int64_t) override {}
  void EndSleep() override {}

  int woken = 0, failed = 0;
};

class NotedBackend final : public Backend {
 public:
  std::string_view name() const override { return "noted"; }
  Status Prepare(const CollectiveCall&, std::unique_ptr<OpState>*, BufferDescriptor*) override {
    return Status::Ok();
  }
  Result<bool> Start(const CollectiveCall&, OpState*, const MemberInputs&) override {
    return false;
  }
  Result<bool> Advance(const CollectiveCall&, OpState*) override { return false; }
  bool Needs(const CollectiveCall&, const OpState*, uint32_t) const override { return false; }
  std::string Awaits(const CollectiveCall&, const OpState*) const override { return ""; }
  void Withdraw(const CollectiveCall&, const OpState*, std::string why) override {
    withdrawn.push_back(why);
  }
  void Abandon(std::unique_ptr<OpState>, bool) override {}
  void Abort(const Status&) override {}

  std::vector<std::string> withdrawn;
};

class CompletionTest : public ::testing::Test {
 protected:
  Operation* Barrier(const std::string& name) { return rank_.Submit(BarrierOf(name)); }
  // A barrier of the set instead of the world.
  Operation* BarrierIn(ProcessSet& set, const std::string& name) {
    Operation* op = Barrier(name);
    --op->set->in_flight;
    op->set = op->name->set = &set;
    ++set.in_flight;
    return op;
  }
  Operation* Removal(const ProcessSet& set) {
    RequestSpec spec;
    spec.collective = Collective::kRemoveProcessSet;
    spec.name = NameTable::kSetsName;
    spec.process_set = set.group.id;
    return rank_.Submit(spec);
  }

  NotedPeers peers_;
  NotedBackend backend_;
  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  OneRank rank_{0, 2};
  Executor executor_{peers_, backend_, nullptr, heap_, rank_.state.rounds};
  Outbox outbox_{peers_, rank_.state.names};
  TraceLog trace_{Recorder()};
  Completion completion_{peers_, rank_.state, executor_, outbox_, trace_};
};

TEST_F(CompletionTest, AnOperationThatIsOverKeepsItsNameUntilItIsRetired) {
  Operation* op = Barrier("b");
  TensorName* name = op->name;
  completion_.Complete(op, Status::Ok(), false);
  EXPECT_TRUE(op->done);
  EXPECT_TRUE(op->status.ok());
  EXPECT_EQ(op->set, nullptr);
  EXPECT_EQ(op->kept_name, name);
  EXPECT_EQ(rank_.state.sets.world().in_flight, 0U);
  EXPECT_EQ(rank_.state.last_finished.count, 1U);
  EXPECT_STREQ(rank_.state.last_finished.name, "b");
}

TEST_F(CompletionTest, ThreadsThatSleepAreWoken) {
  completion_.Complete(Barrier("a"), Status::Ok(), false);
  EXPECT_EQ(peers_.woken, 0);
  completion_.BeginSleep();
  completion_.Complete(Barrier("b"), Status::Ok(), false);
  EXPECT_EQ(peers_.woken, 1);
  completion_.EndSleep();
  completion_.Complete(Barrier("c"), Status::Ok(), false);
  EXPECT_EQ(peers_.woken, 1);
}

TEST_F(CompletionTest, OnlyAFailureOfAnOpenEngineIsThatOfOthers) {
  completion_.Complete(Barrier("a"), InvalidArgument("its own fault"), false);
  EXPECT_EQ(peers_.failed, 0);
  completion_.Complete(Barrier("b"), Aborted("a rank died"), false);
  EXPECT_EQ(peers_.failed, 1);
  completion_.Close(Aborted("this rank leaves"));
  completion_.Complete(Barrier("c"), completion_.closed(), false);
  EXPECT_EQ(peers_.failed, 1);
}

TEST_F(CompletionTest, TheFirstReasonStays) {
  EXPECT_TRUE(completion_.closed().ok());
  completion_.Close(Aborted("first"));
  completion_.Close(Aborted("second"));
  EXPECT_EQ(completion_.closed().message(), "first");
}

TEST_F(CompletionTest, ASetThatAllAgreedAboutIsAdded) {
  const std::vector<uint32_t> members = {0};
  RequestSpec spec;
  spec.collective = Collective::kAddProcessSet;
  spec.name = NameTable::kSetsName;
  spec.members = members;
  Operation* refused = rank_.Submit(spec);
  completion_.Complete(refused, Aborted("no"), false);
  EXPECT_EQ(rank_.state.sets.Find(1), nullptr);
  rank_.state.finished.RetireUpTo(0);
  Operation* added = rank_.Submit(spec);
  completion_.Complete(added, Status::Ok(), false);
  EXPECT_EQ(added->answer, 1);
  ASSERT_NE(rank_.state.sets.Find(1), nullptr);
}

TEST_F(CompletionTest, TheRemovalOfASetEndsWhatWaitsForIt) {
  ProcessSet& set = rank_.state.sets.Add(std::vector<uint32_t>{0});
  const int32_t id = set.group.id;
  Operation* waits = BarrierIn(set, "waits");
  waits->sent = false;
  outbox_.Announce(waits);
  ASSERT_TRUE(outbox_.has_unsent());
  Operation* runs = BarrierIn(set, "runs");
  runs->started = true;
  Operation* other = Barrier("other");
  set.removing = true;
  completion_.Complete(Removal(set), Status::Ok(), false);
  EXPECT_EQ(waits->status.message(), "process set 1 was removed before 'waits' was complete");
  EXPECT_FALSE(outbox_.has_unsent());
  EXPECT_FALSE(runs->done) << "it ends by itself";
  EXPECT_EQ(backend_.withdrawn,
            std::vector<std::string>{"process set 1 was removed before 'runs' was complete"});
  EXPECT_FALSE(other->done);
  EXPECT_EQ(rank_.state.sets.Find(id), nullptr);
}

TEST_F(CompletionTest, ASetWhoseRemovalWasRefusedStays) {
  ProcessSet& set = rank_.state.sets.Add(std::vector<uint32_t>{0});
  set.removing = true;
  completion_.Complete(Removal(set), InvalidArgument("no"), false);
  EXPECT_FALSE(set.removing);
  EXPECT_EQ(rank_.state.sets.Find(set.group.id), &set);
}

}  // namespace
}  // namespace hvd::test
