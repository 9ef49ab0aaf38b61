// DriverConnection over a socket whose other end is of the test.
#include "launcher/agent/driver_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <asio/io_context.hpp>
#include <string>
#include <utility>
#include <vector>

#include "test/support/deadline.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const char* const kJobId = "0000000000000007";

struct RecordedDriver final : DriverConnectionOwner {
  void OnDriverMessage(ToAgent) override { ADD_FAILURE() << "nothing was sent"; }
  void OnDriverMessagesOver() override {}
  void OnDriverFlushed() override {}
  void OnDriverTick() override {}
  void OnDriverAway(const std::string& reason) override { away.push_back(reason); }
  void OnDriverGone(const std::string& reason) override { gone.push_back(reason); }

  std::vector<std::string> away, gone;
};

class DriverConnectionTest : public ::testing::Test {
 protected:
  DriverConnectionTest() : connection_(io_, kJobId, owner_) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    far_ = UniqueFd(ends[1]);
    UniqueFd output(::dup(ends[0]));
    connection_.Open(UniqueFd(ends[0]), std::move(output));
  }
  template <typename Condition>
  bool RunUntil(Condition condition) {
    const TimePoint deadline = SteadyNow() + kDeadline;
    while (!condition() && SteadyNow() < deadline) {
      io_.restart();
      io_.run_one_for(std::chrono::milliseconds(10));
    }
    return condition();
  }

  asio::io_context io_{1};
  RecordedDriver owner_;
  DriverConnection connection_;
  UniqueFd far_;
};

TEST_F(DriverConnectionTest, ADriverThatIsNotAwaitedIsGoneWithItsConnection) {
  far_.Reset();
  ASSERT_TRUE(RunUntil([&] { return !owner_.gone.empty(); }));
  EXPECT_THAT(owner_.gone, ElementsAre("the stream to the driver ended"));
  EXPECT_THAT(owner_.away, IsEmpty());
}

}  // namespace
}  // namespace hvd
