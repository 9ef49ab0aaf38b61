// Which frame goes next, and the frames kept until the other side has them.
#include "runtime/net/send_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hvd {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The payloads of all that may go now.
std::vector<std::string> TakeAll(SendQueue& queue) {
  std::vector<std::string> taken;
  while (const QueuedFrame* frame = queue.NextToSend()) taken.push_back(frame->payload);
  return taken;
}

std::vector<uint64_t> Kept(const SendQueue& queue) {
  std::vector<uint64_t> numbers;
  for (const QueuedFrame& frame : queue.unacknowledged()) numbers.push_back(frame.sequence);
  return numbers;
}

TEST(SendQueue, HasNothingAtFirst) {
  SendQueue queue;
  EXPECT_EQ(queue.NextToSend(), nullptr);
  EXPECT_TRUE(queue.AllAcknowledged());
  EXPECT_FALSE(queue.holds_logs());
}

TEST(SendQueue, ControlOvertakesLogsAndBulk) {
  SendQueue queue;
  queue.AllowLogs(100);
  queue.AddLog("l", 1);
  queue.AddBulk("b", 1);
  queue.AddControl("c", 1);
  EXPECT_THAT(TakeAll(queue), ElementsAre("c", "b", "l"));
}

TEST(SendQueue, BulkAndLogsTakeTurns) {
  SendQueue queue;
  queue.AllowLogs(100);
  for (const char* text : {"l1", "l2"}) queue.AddLog(text, 0);
  for (const char* text : {"b1", "b2", "b3", "b4"}) queue.AddBulk(text, 0);
  EXPECT_THAT(TakeAll(queue), ElementsAre("b1", "l1", "b2", "l2", "b3", "b4"));
}

TEST(SendQueue, LogsGoAsFarAsTheyAreAllowed) {
  SendQueue queue;
  queue.AddLog("1234", 0);
  queue.AddLog("5678", 0);
  EXPECT_THAT(TakeAll(queue), IsEmpty());
  queue.AllowLogs(7);
  EXPECT_THAT(TakeAll(queue), ElementsAre("1234")) << "a piece goes whole or not at all";
  EXPECT_TRUE(queue.holds_logs());
  queue.AllowLogs(5);
  queue.AddBulk("b", 0);
  EXPECT_THAT(TakeAll(queue), ElementsAre("b")) << "bulk needs no credit";
  queue.AllowLogs(8);
  EXPECT_THAT(TakeAll(queue), ElementsAre("5678"));
  EXPECT_FALSE(queue.holds_logs());
}

TEST(SendQueue, LongControlIsCutIntoFrames) {
  SendQueue queue;
  queue.AddControl(std::string(2 * kMaxFramePayload + 1, 'c'), 3);
  std::vector<size_t> bytes;
  std::vector<bool> more;
  while (const QueuedFrame* frame = queue.NextToSend()) {
    bytes.push_back(frame->payload.size());
    more.push_back(frame->more);
    EXPECT_EQ(frame->generation, 3U);
    EXPECT_EQ(frame->type, FrameType::kControl);
  }
  EXPECT_THAT(bytes, ElementsAre(kMaxFramePayload, kMaxFramePayload, 1));
  EXPECT_THAT(more, ElementsAre(true, true, false));
}

TEST(SendQueue, EmptyControlIsAFrame) {
  SendQueue queue;
  queue.AddControl("", 0);
  EXPECT_THAT(TakeAll(queue), ElementsAre(""));
}

TEST(SendQueue, NumbersAreGivenInTheOrderOfTheWire) {
  SendQueue queue;
  queue.AddBulk("b", 0);
  EXPECT_EQ(queue.NextToSend()->sequence, 1U);
  queue.AddBulk("later", 0);
  queue.AddControl("c", 0);
  EXPECT_EQ(queue.NextToSend()->sequence, 2U);
  EXPECT_EQ(queue.NextToSend()->payload, "later");
  EXPECT_THAT(Kept(queue), ElementsAre(1, 2, 3));
}

TEST(SendQueue, WhatIsAcknowledgedIsForgotten) {
  SendQueue queue;
  for (const char* text : {"a", "b", "c"}) queue.AddControl(text, 0);
  TakeAll(queue);
  EXPECT_TRUE(queue.Acknowledge(2).ok());
  EXPECT_THAT(Kept(queue), ElementsAre(3));
  EXPECT_TRUE(queue.Acknowledge(1).ok()) << "an acknowledgement that comes late";
  EXPECT_FALSE(queue.AllAcknowledged());
  EXPECT_TRUE(queue.Acknowledge(3).ok());
  EXPECT_TRUE(queue.AllAcknowledged());
}

TEST(SendQueue, WhatWasNeverSentCannotBeAcknowledged) {
  SendQueue queue;
  queue.AddControl("a", 0);
  EXPECT_EQ(queue.Acknowledge(1).code(), Code::kInvalidArgument);
  TakeAll(queue);
  EXPECT_TRUE(queue.Acknowledge(1).ok());
}

TEST(SendQueue, BulkThatWasNotSentCountsForNothing) {
  SendQueue queue;
  queue.AddBulk("b", 0);
  EXPECT_TRUE(queue.AllAcknowledged());
  queue.AddLog("l", 0);
  EXPECT_FALSE(queue.AllAcknowledged());
}

}  // namespace
}  // namespace hvd
