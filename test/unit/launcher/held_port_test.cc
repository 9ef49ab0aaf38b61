#include "launcher/agent/workers/held_port.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

constexpr std::string_view kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n"
    "   0: 0100007F:A0F1 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1001        0 1\n"
    "   1: 0100007F:A0F2 0100007F:1234 01 00000000:00000000 00:00000000 00000000  1002        0 2\n"
    "   2: 0200000A:A0F3 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1003        0 3\n"
    "   3: 00000000:A0F4 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4\n"
    "   4: cut off";
constexpr std::string_view kTable6 =
    "   0: 00000000000000000000000000000000:A0F1 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000  1004        0 1\n"
    "   1: 000080FE00000000000000000100000A:A0F2 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000  1005        0 1\n";

TEST(HeldPort, TheUserWhoListensIsInTheTable) {
  EXPECT_EQ(ListenerIn(kTable, "127.0.0.1", 0xA0F1), 1001u);
  EXPECT_EQ(ListenerIn(kTable, "10.0.0.2", 0xA0F1), std::nullopt) << "listens elsewhere";
  EXPECT_EQ(ListenerIn(kTable, "127.0.0.1", 0xA0F2), std::nullopt) << "connected, not listening";
  EXPECT_EQ(ListenerIn(kTable, "10.0.0.2", 0xA0F3), 1003u);
  EXPECT_EQ(ListenerIn(kTable, "10.0.0.2", 0xA0F4), 0u) << "at every address";
  EXPECT_EQ(ListenerIn(kTable, "10.0.0.2", 0xA0F5), std::nullopt);
  EXPECT_EQ(ListenerIn(kTable6, "10.0.0.2", 0xA0F1), 1004u) << "of both families";
  EXPECT_EQ(ListenerIn(kTable6, "fe80::a00:1", 0xA0F2), 1005u);
  EXPECT_EQ(ListenerIn("", "127.0.0.1", 1), std::nullopt);
}

constexpr std::string_view kConnections =
    "   0: 0100007F:1234 0100007F:A0F1 01 00000000:00000000 00:00000000 00000000  1001        0 1\n"
    "   1: 0100007F:1235 0100007F:A0F2 06 00000000:00000000 00:00000000 00000000     0        0 2\n"
    "   2: 0200000A:1236 0200000A:A0F3 08 00000000:00000000 00:00000000 00000000  1001        0 3\n"
    "   3: 0200000A:1237 0300000A:A0F4 01 00000000:00000000 00:00000000 00000000  1001        0 4\n"
    "   4: 0100007F:A0F5 0100007F:1238 01 00000000:00000000 00:00000000 00000000  1001        0 5\n"
    "   5: 0000000000000000FFFF00000200000A:1239 0000000000000000FFFF00000300000A:A0F6 01 "
    "00000000:00000000 00:00000000 00000000  1001        0 1\n";

TEST(HeldPort, AConnectionCountsWhereItsUserIsKnown) {
  EXPECT_TRUE(ConnectionIn(kConnections, "127.0.0.1", 0xA0F1, 1001));
  EXPECT_FALSE(ConnectionIn(kConnections, "127.0.0.1", 0xA0F1, 1002)) << "of somebody else";
  EXPECT_FALSE(ConnectionIn(kConnections, "127.0.0.1", 0xA0F2, 0)) << "TIME_WAIT has no owner";
  EXPECT_TRUE(ConnectionIn(kConnections, "127.0.0.1", 0xA0F3, 1001))
      << "by another address of this machine, closed by the other side";
  EXPECT_FALSE(ConnectionIn(kConnections, "127.0.0.1", 0xA0F4, 1001)) << "to another machine";
  EXPECT_TRUE(ConnectionIn(kConnections, "10.0.0.3", 0xA0F4, 1001));
  EXPECT_TRUE(ConnectionIn(kConnections, "some-name", 0xA0F4, 1001)) << "the port decides";
  EXPECT_FALSE(ConnectionIn(kConnections, "127.0.0.1", 0xA0F5, 1001)) << "the server's end";
  EXPECT_TRUE(ConnectionIn(kConnections, "10.0.0.3", 0xA0F6, 1001)) << "a socket of both families";
  EXPECT_FALSE(ConnectionIn(kTable, "127.0.0.1", 0, 1001)) << "one that listens";
}

}  // namespace
}  // namespace hvd
