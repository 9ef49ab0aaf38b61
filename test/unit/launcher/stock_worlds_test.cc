// Where workers of stock Horovod meet, while a name server takes its time.
#include "launcher/driver/stock_worlds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <future>
#include <memory>
#include <vector>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

// Rank 0 on this machine, rank 1 on another one, known by its name alone.
DriverOptions WithRemote(const std::string& name) {
  DriverOptions options;
  options.plan = PlanOfPlaces({"here", name}, {0, 1});
  options.named_hosts = {{.host = "here"}, {.host = name, .remote = true}};
  options.hosts = {{false, {}}, {true, {}}};
  return options;
}

TEST(StockWorlds, ANameServerThatIsSlowKeepsNobodyWaiting) {
  asio::io_context io;
  const DriverOptions options = WithRemote("far");
  auto goes_on = std::make_shared<std::promise<void>>();
  const JobHosts hosts(options);
  StockWorlds worlds(io, options, options.plan, hosts,
                     [answer = goes_on->get_future().share()](const std::string& host) {
                       answer.wait();
                       return host == "far" ? std::string("127.0.0.2") : "";
                     });
  std::vector<std::string> said;
  worlds.Learn(0, [&] { said.emplace_back("here"); });
  EXPECT_THAT(said, ElementsAre("here")) << "this machine is known";
  worlds.Learn(1, [&] { said.emplace_back("far"); });
  asio::post(io, [&] {
    said.emplace_back("loop");
    goes_on->set_value();
  });
  io.run();
  EXPECT_THAT(said, ElementsAre("here", "loop", "far"));
  ASSERT_TRUE(worlds.Begin(options.plan.ranks).ok());
  EXPECT_THAT(worlds.AddressFor(1), StartsWith("127.0.0.2:"));
  EXPECT_EQ(worlds.AddressFor(0), worlds.AddressFor(1));
}

TEST(StockWorlds, AHostThatIsNamedByItsAddressNeedsNoQuestion) {
  asio::io_context io;
  const DriverOptions options = WithRemote("127.0.0.1");
  bool asked = false, learned = false;
  const JobHosts hosts(options);
  StockWorlds worlds(io, options, options.plan, hosts, [&](const std::string&) {
    asked = true;
    return std::string();
  });
  worlds.Learn(1, [&] { learned = true; });
  EXPECT_TRUE(learned);
  EXPECT_FALSE(asked);
  ASSERT_TRUE(worlds.Begin(options.plan.ranks).ok());
  EXPECT_THAT(worlds.AddressFor(1), StartsWith("127.0.0.1:"));
}

}  // namespace
}  // namespace hvd
