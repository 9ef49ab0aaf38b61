// The agent's socket against a process of another user.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>

#include "runtime/net/link.h"

namespace hvd {
namespace {

TEST(LinkFork, TheDoorIsShutForOtherUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can come as another user";
  const std::string name = "hvd.link_test." + std::to_string(::getpid());
  // We are the stranger's host: not root, which may open everything.
  constexpr uid_t kHost = 65'533, kStranger = 65'534;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::seteuid(kHost) != 0) ::_exit(2);
    Result<UniqueFd> listener = ListenLink(name);
    if (!listener.ok() || ::seteuid(0) != 0 || ::seteuid(kStranger) != 0) ::_exit(3);
    Result<UniqueFd> stranger = ConnectLink(name);
    if (::seteuid(0) != 0 || ::seteuid(kHost) != 0) ::_exit(4);
    // It sees that the host is none of its own; the host sees the same of it.
    ::_exit(stranger.ok() || AcceptLink(listener->get()).ok() ? 5 : 0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace hvd
