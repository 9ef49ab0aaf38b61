// Events that are caused while another one is handled.
#include "launcher/driver/event_queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hvd {
namespace {

TEST(EventQueue, WhatAnEventCausesIsHandledAfterAllOfIt) {
  std::vector<std::string> handled;
  EventQueue* queue = nullptr;
  EventQueue events([&](const JobEvent& event) {
    if (const auto* lost = std::get_if<AgentLost>(&event)) {
      handled.push_back("lost " + lost->reason);
    } else {
      queue->Push(AgentLost{0, "a"});
      queue->Push(AgentLost{1, "b"});
      handled.push_back("begun");
    }
  });
  queue = &events;
  events.Push(Begun{});
  EXPECT_THAT(handled, testing::ElementsAre("begun", "lost a", "lost b"));
  events.Push(AgentLost{2, "c"});
  EXPECT_EQ(handled.back(), "lost c");
}

}  // namespace
}  // namespace hvd
