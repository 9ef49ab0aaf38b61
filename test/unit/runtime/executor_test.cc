#include "runtime/core/executor.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "test/sim/sim_peers.h"
#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

// Completes a tensor after as many looks as its first dimension says, and notes what is asked of
// it.
class CountingBackend final : public Backend {
 public:
  std::string_view name() const override { return "counting"; }
  Status Prepare(const CollectiveCall& call, std::unique_ptr<OpState>* state,
                 BufferDescriptor* descriptor) override {
    if (call.count == refused) return OutOfMemory("no memory");
    auto made = std::make_unique<Looks>();
    made->left = static_cast<int64_t>(call.count);
    *state = std::move(made);
    *descriptor = {};
    return Status::Ok();
  }
  Result<bool> Start(const CollectiveCall&, OpState* state, const MemberInputs& inputs) override {
    ++started;
    cross_host_parts = inputs.inter_host == nullptr ? 0 : inputs.inter_host->part_count;
    return --static_cast<Looks*>(state)->left == 0;
  }
  Result<bool> Advance(const CollectiveCall& call, OpState* state) override {
    if (call.count == broken) return Internal("broken");
    return --static_cast<Looks*>(state)->left == 0;
  }
  bool Needs(const CollectiveCall&, const OpState*, uint32_t peer) const override {
    return peer == 1;
  }
  std::string Awaits(const CollectiveCall& call, const OpState*) const override {
    return call.count == 3 ? "for host b to answer" : "";
  }
  void Withdraw(const CollectiveCall&, const OpState*, std::string why) override {
    withdrawn = why;
  }
  void Abandon(std::unique_ptr<OpState>, bool peers_may_work) override {
    ++abandoned[peers_may_work];
  }
  void Abort(const Status&) override {}

  size_t refused = 0, broken = 0;  // the elements of such a tensor
  int started = 0;
  uint32_t cross_host_parts = 0;
  std::string withdrawn;
  std::map<bool, int> abandoned;

 private:
  struct Looks final : OpState {
    int64_t left = 0;
  };
};

class ExecutorTest : public ::testing::Test {
 protected:
  // One tensor per number, of so many elements.
  Operation* Prepared(std::vector<int64_t> elements, Status* prepared = nullptr) {
    elements_ = std::move(elements);
    RequestSpec spec = TensorOf(Collective::kAllreduce, "group", {});
    tensors_.assign(elements_.size(), spec.tensor);
    for (size_t i = 0; i < elements_.size(); ++i) tensors_[i].shape = {&elements_[i], 1};
    spec.group = tensors_;
    Operation* op = rank_.Submit(spec);
    rank_.Announce(op->name, 1);
    op->name->more_descriptors[1].resize(elements_.size() - 1);
    const Status status = executor_.Prepare(op, spec, /*caller_waits=*/false);
    if (prepared != nullptr) *prepared = status;
    return op;
  }

  std::vector<int64_t> elements_;
  std::vector<TensorSpec> tensors_;
  SimNet net_{2, 8, 256};
  SimPeers peers_{net_, 0};
  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  CountingBackend backend_;
  OneRank rank_{0, 2};
  Executor executor_{peers_, backend_, nullptr, heap_, rank_.state.rounds};
};

TEST_F(ExecutorTest, AdvancesEachTensorUntilAllAreDone) {
  Operation* op = Prepared({1, 2, 4});
  ASSERT_TRUE(executor_.Start(op, Status::Ok()).ok());
  EXPECT_EQ(backend_.started, 3);
  EXPECT_EQ(op->parts_left, 2u) << "the first was done at once";
  ASSERT_TRUE(executor_.Advance(op).ok());
  EXPECT_EQ(op->parts_left, 1u);
  ASSERT_TRUE(executor_.Advance(op).ok());
  ASSERT_TRUE(executor_.Advance(op).ok());
  EXPECT_EQ(op->parts_left, 0u);
  EXPECT_TRUE(backend_.abandoned.empty());
}

TEST_F(ExecutorTest, AGroupIsPreparedAsAWholeOrNotAtAll) {
  backend_.refused = 3;
  Status prepared;
  Operation* op = Prepared({1, 2, 3}, &prepared);
  EXPECT_EQ(prepared.code(), Code::kOutOfMemory);
  EXPECT_EQ(backend_.abandoned[false], 2);
  for (const OperationTensor& part : op->parts) EXPECT_EQ(part.state, nullptr);
}

TEST_F(ExecutorTest, AnErrorOfOneTensorIsThatOfTheOperation) {
  backend_.broken = 2;
  Operation* op = Prepared({2, 5});
  op->started = true;
  ASSERT_TRUE(executor_.Start(op, Status::Ok()).ok());
  const Status failed = executor_.Advance(op);
  EXPECT_EQ(failed.code(), Code::kInternal);
  executor_.Finish(op, failed, true);
  EXPECT_EQ(backend_.abandoned[true], 2);
}

TEST_F(ExecutorTest, AChangeOfProcessSetsMovesNoData) {
  const std::vector<uint32_t> members{0, 1};
  RequestSpec spec;
  spec.collective = Collective::kAddProcessSet;
  spec.name = NameTable::kSetsName;
  spec.members = members;
  Operation* op = rank_.Submit(spec);
  ASSERT_TRUE(executor_.Prepare(op, spec, /*caller_waits=*/false).ok());
  ASSERT_TRUE(executor_.Start(op, Status::Ok()).ok());
  EXPECT_EQ(op->parts_left, 0u);
  EXPECT_EQ(backend_.started, 0);
}

TEST_F(ExecutorTest, ADisagreementIsStartedAsOnePartWithTheOtherHosts) {
  Operation* op = Prepared({2, 3});
  Group& group = rank_.state.sets.world().group;
  group.ranks.push_back(2);  // on another host
  ASSERT_TRUE(executor_.Start(op, Mismatch("ranks disagree")).ok());
  EXPECT_EQ(backend_.started, 1);
  EXPECT_EQ(backend_.cross_host_parts, 1u);
  EXPECT_EQ(backend_.abandoned[false], 1);
  EXPECT_EQ(op->parts_left, 1u);
}

TEST_F(ExecutorTest, AsksTheBackendAboutTensorsThatAreNotDone) {
  Operation* op = Prepared({1, 3});
  EXPECT_EQ(executor_.Awaits(*op), "for its data to be moved") << "it has not started";
  op->started = true;
  ASSERT_TRUE(executor_.Start(op, Status::Ok()).ok());
  EXPECT_EQ(executor_.Awaits(*op), "for host b to answer");
  EXPECT_TRUE(executor_.Needs(*op, 1));
  EXPECT_FALSE(executor_.Needs(*op, 0));
  executor_.Withdraw(*op, "why");
  EXPECT_EQ(backend_.withdrawn, "") << "the first tensor is done";
  op->parts[1].done = true;
  EXPECT_FALSE(executor_.Needs(*op, 1));
}

}  // namespace
}  // namespace hvd::test
