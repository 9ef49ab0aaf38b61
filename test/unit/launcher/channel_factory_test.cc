// Which client reaches a remote host, and what it is asked for.
#include <gtest/gtest.h>

#include "launcher/channels/factory/settings_channel_factory.h"

namespace hvd {
namespace {

TEST(RemoteClientOf, IsTheLibraryUnlessTheSettingsNameAProgram) {
  Settings settings;
  EXPECT_EQ(RemoteClientOf(settings), RemoteClient::kSshLibrary);
  settings.ssh_client = SshClient::kProgram;
  EXPECT_EQ(RemoteClientOf(settings), RemoteClient::kSshProgram);
  settings.launcher = RemoteLauncher::kSrun;
  EXPECT_EQ(RemoteClientOf(settings), RemoteClient::kSrun);
  settings.launcher = RemoteLauncher::kBlaunch;
  EXPECT_EQ(RemoteClientOf(settings), RemoteClient::kRshAgent);
  EXPECT_EQ(RshAgentOf(settings), "blaunch");
  settings.rsh_agent = "kubectl exec";
  EXPECT_EQ(RshAgentOf(settings), "kubectl exec");
  EXPECT_EQ(RemoteClientOf(settings), RemoteClient::kRshAgent) << "--rsh-agent wins";
}

TEST(SshHostOf, HasThePortOfTheHostListBeforeThatOfTheSettings) {
  Settings settings;
  settings.ssh_port = 2200;
  settings.ssh_identity_file = "key";
  const SshHost host = SshHostOf({.host = "a", .user = "bob"}, settings);
  EXPECT_EQ(host.name, "a");
  EXPECT_EQ(host.user, "bob");
  EXPECT_EQ(host.port, 2200);
  EXPECT_EQ(host.identity_file, "key");
  EXPECT_EQ(SshHostOf({.host = "a", .port = 22}, settings).port, 22);
}

TEST(RemoteAgentOf, IsSentOnlyWhereThisHvdrunHasABuildId) {
  Settings settings;
  const Result<std::string> build = std::string("b1"), none = Internal("no build id");
  struct Row {
    BundleUse bundle;
    const Result<std::string>& build;
    BundleUse use;
  };
  for (const Row& row : {Row{BundleUse::kAuto, build, BundleUse::kAuto},
                         {BundleUse::kAlways, build, BundleUse::kAlways},
                         {BundleUse::kNever, build, BundleUse::kNever},
                         {BundleUse::kAlways, none, BundleUse::kNever}}) {
    settings.bundle = row.bundle;
    const RemoteAgent agent = RemoteAgentOf(settings, "/usr/bin/hvdrun", "x86_64", row.build);
    EXPECT_EQ(agent.bundle, row.use) << static_cast<int>(row.bundle);
    EXPECT_EQ(agent.executable, "/usr/bin/hvdrun");
    EXPECT_EQ(agent.machine, "x86_64");
    EXPECT_EQ(agent.build_id, row.build.ok() ? "b1" : "");
  }
}

TEST(SettingsChannelFactory, MakesOneHubAndOneBundleForAllRemoteHosts) {
  Settings settings;
  settings.bundle = BundleUse::kNever;
  SettingsChannelFactory factory(
      {{.host = "here"}, {.host = "a", .remote = true}, {.host = "b", .remote = true}}, settings,
      "0123456789abcdef", "/usr/bin/hvdrun");
  asio::io_context io;
  const HostTransport local = factory.Make(io, 0);
  const HostTransport a = factory.Make(io, 1);
  const HostTransport b = factory.Make(io, 2);
  EXPECT_EQ(local.greeting, "");
  EXPECT_EQ(local.bundles, nullptr);
  EXPECT_EQ(local.side_command, nullptr) << "a local agent cannot be cut off";
  EXPECT_NE(a.greeting, b.greeting) << "each agent has an id of its own";
  EXPECT_EQ(a.bundles, b.bundles);
  EXPECT_NE(a.bundles, nullptr);
  EXPECT_TRUE(a.side_command);
}

}  // namespace
}  // namespace hvd
