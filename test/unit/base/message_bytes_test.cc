#include "runtime/base/message_bytes.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hvd {
namespace {

TEST(MessageBytes, TakesAHeadWithoutMovingTheRest) {
  MessageBytes bytes(/*room=*/4, /*bytes=*/64);
  EXPECT_TRUE(bytes.empty());
  bytes.Append("pay");
  bytes.Append("load");
  const char* const payload = bytes.view().data();
  bytes.Push("abc");
  EXPECT_EQ(bytes, "abcpayload");
  EXPECT_EQ(bytes.view().data() + 3, payload);
}

TEST(MessageBytes, GrowsInFrontWhereThereIsTooLittleRoom) {
  MessageBytes bytes(/*room=*/2, /*bytes=*/0);
  bytes.Append("load");
  bytes.Push("longer than the room: ");
  EXPECT_EQ(bytes, "longer than the room: load");
  bytes.Push(">");
  EXPECT_EQ(bytes, ">longer than the room: load");
}

TEST(MessageBytes, LosesItsHeadWithoutMovingTheRest) {
  MessageBytes bytes(std::string("head:load"));
  const char* const payload = bytes.view().data() + 5;
  bytes.Pull(5);
  EXPECT_EQ(bytes, "load");
  EXPECT_EQ(bytes.view().data(), payload);
  bytes.Pull(4);
  EXPECT_TRUE(bytes.empty());
}

TEST(MessageBytes, IsEmptyOnceItIsMovedAway) {
  for (const std::string& text : {std::string("short"), std::string(100, 'x')}) {
    MessageBytes bytes(/*room=*/8, text.size());
    bytes.Append(text);
    MessageBytes copy = bytes, moved = std::move(bytes);
    EXPECT_TRUE(bytes.empty());  // NOLINT
    EXPECT_EQ(moved, copy);
    copy = std::move(moved);
    EXPECT_TRUE(moved.empty());  // NOLINT
    EXPECT_EQ(copy, text);
  }
}

}  // namespace
}  // namespace hvd
