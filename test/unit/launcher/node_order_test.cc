#include "launcher/channels/nodes/node_order.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

TEST(NodeOrder, IsReadAsItWasWrittenInAnyPieces) {
  const std::string text = OrderText({"echo a\nb", 0});
  for (size_t piece = 1; piece <= text.size() + 3; ++piece) {
    OrderReader reader;
    const std::string all = text + "xyz";
    bool whole = false;
    std::string rest;
    for (size_t at = 0; at < all.size(); at += piece) {
      if (whole) {
        rest += all.substr(at, piece);
      } else {
        whole = reader.Add(all.substr(at, piece));
      }
    }
    ASSERT_TRUE(whole && reader.order()) << piece;
    EXPECT_EQ(reader.order()->command, "echo a\nb");
    EXPECT_EQ(reader.rest() + rest, "xyz");
  }
}

TEST(NodeOrder, EndsWithACode) {
  OrderReader reader;
  EXPECT_TRUE(reader.Add(OrderText({std::nullopt, 75})));
  ASSERT_TRUE(reader.order());
  EXPECT_FALSE(reader.order()->command);
  EXPECT_EQ(reader.order()->code, 75);
}

TEST(NodeOrder, IsNoneInOtherBytes) {
  for (const char* text :
       {"end 256\n", "end x\n", "run 0\n", "run 9999999999\n", "run -1\n", "hello\n",
        "a line that is longer than any of these, and has no end so far"}) {
    OrderReader reader;
    EXPECT_TRUE(reader.Add(text)) << text;
    EXPECT_FALSE(reader.order()) << text;
  }
}

}  // namespace
}  // namespace hvd
