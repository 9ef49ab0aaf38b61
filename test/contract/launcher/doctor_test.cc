// The doctor over channels of the test: what it prints, and its exit code, when it reaches no host.
#include "launcher/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "test/contract/launcher/scripted_channel.h"

namespace hvd {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Hosts that cannot be reached, each for a reason of its own.
class UnreachableHosts final : public ChannelFactory {
 public:
  HostTransport Make(asio::io_context& io, uint32_t host) override {
    auto channel = std::make_unique<ScriptedChannel>(io, [](std::string_view) { return ""; });
    channel->FailToStart("no route " + std::to_string(host));
    HostTransport transport;
    transport.channel = std::move(channel);
    return transport;
  }
  void Add(const std::vector<HostSlots>&) override { ADD_FAILURE() << "a doctor adds no hosts"; }
};

TEST(RunDoctor, NamesTheReasonForEachHostThatItCannotReach) {
  DoctorOptions options;
  options.job_id = "0000000000000007";
  options.examination.hosts = {{"node1", true}, {"node2", true}};
  UnreachableHosts hosts;
  testing::internal::CaptureStdout();
  EXPECT_EQ(RunDoctor(std::move(options), hosts), 1);
  EXPECT_THAT(testing::internal::GetCapturedStdout(),
              AllOf(HasSubstr("node1"), HasSubstr("no route 0"), HasSubstr("node2"),
                    HasSubstr("no route 1")));
}

}  // namespace
}  // namespace hvd
