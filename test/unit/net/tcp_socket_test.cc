#include "runtime/net/tcp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "runtime/base/unique_fd.h"

namespace hvd {
namespace {

int Get(const UniqueFd& socket, int level, int option) {
  int value = -1;
  socklen_t length = sizeof value;
  ::getsockopt(socket.get(), level, option, &value, &length);
  return value;
}

TEST(TcpSocket, SendsAtOnceAndNoticesSilence) {
  UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(socket.valid());
  PrepareTcp(socket.get(), {.idle_s = 7, .interval_s = 3, .probes = 5, .sending_ms = 9000});
  EXPECT_EQ(Get(socket, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(Get(socket, SOL_SOCKET, SO_KEEPALIVE), 1);
  EXPECT_EQ(Get(socket, IPPROTO_TCP, TCP_KEEPIDLE), 7);
  EXPECT_EQ(Get(socket, IPPROTO_TCP, TCP_KEEPINTVL), 3);
  EXPECT_EQ(Get(socket, IPPROTO_TCP, TCP_KEEPCNT), 5);
  EXPECT_EQ(Get(socket, IPPROTO_TCP, TCP_USER_TIMEOUT), 9000);
}

}  // namespace
}  // namespace hvd
