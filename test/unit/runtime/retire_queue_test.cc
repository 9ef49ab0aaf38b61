#include "runtime/core/state/retire_queue.h"

#include <gtest/gtest.h>

#include "test/unit/runtime/engine_parts.h"

namespace hvd::test {
namespace {

class RetireQueueTest : public ::testing::Test {
 protected:
  // An operation that is done, submitted by this call of the application.
  Operation* Done(std::string_view name, uint64_t call) {
    Operation* op = rank_.Submit(BarrierOf(name));
    op->call = call;
    queue_.Add(op);
    return op;
  }
  TensorName* Find(std::string_view name) { return rank_.state.names.Find(0, name); }

  OneRank rank_{0, 1};
  RetireQueue queue_{rank_.state.names};
};

TEST_F(RetireQueueTest, AnOperationThatIsDoneKeepsItsName) {
  Operation* op = Done("a", 1);
  EXPECT_EQ(op->name, nullptr);
  EXPECT_EQ(op->kept_name, Find("a"));
  EXPECT_EQ(Find("a")->operation, nullptr);
  EXPECT_TRUE(Find("a")->kept);
  EXPECT_FALSE(op->retired);
}

TEST_F(RetireQueueTest, ALaterCallRetiresWhatWasSubmittedUpToIt) {
  Operation* late = Done("late", 3);
  Operation* early = Done("early", 1);
  queue_.RetireUpTo(2);
  EXPECT_TRUE(early->retired);
  EXPECT_FALSE(late->retired);
  EXPECT_EQ(Find("early"), nullptr) << "nothing refers to the name any more";
  EXPECT_TRUE(Find("late")->kept);
  queue_.RetireUpTo(3);
  EXPECT_TRUE(late->retired);
}

TEST_F(RetireQueueTest, ANameThatANumberStandsForStays) {
  Done("a", 1);
  ++Find("a")->references;
  queue_.RetireUpTo(1);
  ASSERT_NE(Find("a"), nullptr);
  EXPECT_FALSE(Find("a")->kept);
}

}  // namespace
}  // namespace hvd::test
