#include "launcher/channels/ssh/ssh_reasons.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>

#include "launcher/channels/ssh/keys/ssh_bytes.h"
#include "launcher/channels/ssh/ssh_program.h"

namespace hvd {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

const SshPlace kPlace{"10.0.0.1 port 22", "", ""};

TEST(SshReasons, EachAddressIsNamed) {
  std::string text =
      CannotConnect({{"::1 port 22", ECONNREFUSED}, {"10.0.0.1 port 22", ETIMEDOUT}});
  EXPECT_THAT(text, AllOf(HasSubstr("::1 port 22: Connection refused"),
                          HasSubstr("10.0.0.1 port 22: Connection timed out")));
}

TEST(SshReasons, EachStageHasItsOwnWords) {
  std::vector<std::string> all;
  for (int stage = 0; stage < 6; ++stage) {
    std::string text = TookTooLong(static_cast<ChannelStage>(stage), kPlace, 20);
    EXPECT_THAT(text, HasSubstr("20 s"));
    all.push_back(text);
  }
  EXPECT_EQ(all[2], all[3]) << "the host key comes with the key exchange";
  EXPECT_NE(all[0], all[1]);
  EXPECT_NE(all[1], all[2]);
  EXPECT_NE(all[3], all[4]);
  EXPECT_NE(all[4], all[5]);
}

TEST(SshReasons, WhatForeignProgramsSayIsPrintable) {
  EXPECT_THAT(NoSshServer(kPlace, "220 \x1b[31mmail\r\n"), HasSubstr("'220 \\x1b[31mmail'"));
  EXPECT_THAT(CommandEnded(1, "", "one\ntwo\x1b[m\n"), HasSubstr("last words: one; two\\x1b[m"));
}

TEST(SshReasons, AConfigurationThatSshRefusesIsSaidInOneLine) {
  const std::string text =
      CannotReadConfig("/c line 1: Bad configuration option: x\r\n/c: one\r\n");
  EXPECT_THAT(text, HasSubstr("Bad configuration option: x; /c: one; try the same with ssh -G"));
  EXPECT_THAT(text, Not(HasSubstr("\\x0d")));
}

TEST(SshReasons, AConfigurationThatIsNotReadIsNamedOnlyWhereThereIsOne) {
  EXPECT_EQ(ConfigNotRead({}, "why"), "");
  EXPECT_THAT(ConfigNotRead({"/h/.ssh/config"}, "why"),
              HasSubstr("/h/.ssh/config is not read, because"));
  EXPECT_THAT(ConfigNotRead({"/a", "/b"}, "why"), HasSubstr("/a and /b are not read"));
}

TEST(SshReasons, OnlyMaxStartupsIsACrowd) {
  EXPECT_TRUE(IsCrowded("", ""));
  EXPECT_TRUE(IsCrowded("Exceeded MaxStartups\r\n", ""));
  EXPECT_FALSE(IsCrowded("SSH-2.0-x\r\n", ""));
  EXPECT_FALSE(IsCrowded("Not allowed at this time\r\n", ""));
  EXPECT_FALSE(IsCrowded("", "ssh: connect to host jump port 22: Connection refused"));
  EXPECT_TRUE(IsCrowded("", "kex_exchange_identification: Connection closed by remote host"));
}

TEST(SshReasons, TheCommandsNameHostPortAndFile) {
  SshConfig config;
  config.hostname = "node1";
  config.port = 2222;
  config.user_known_hosts_files = {"/home/me/.ssh/known_hosts"};
  std::string key = SshWriter().String("ssh-ed25519").String("k").Release();
  EXPECT_THAT(HostKeyRefused(config, {}, key),
              HasSubstr("ssh-keyscan -p 2222 node1 >> /home/me/.ssh/known_hosts"));
  HostKeyCheck changed{HostKeyVerdict::kChanged, "/f", 7, "ssh-rsa"};
  EXPECT_THAT(HostKeyRefused(config, changed, key),
              AllOf(HasSubstr("/f:7"), HasSubstr("ssh-keygen -R '[node1]:2222' -f /f")));
}

TEST(SshReasons, PasswordsAreNeverAskedFor) {
  SshConfig config;
  config.user = "me";
  EXPECT_THAT(LoginRefused(config, {{}, {}, {"password"}, false}),
              AllOf(HasSubstr("never asks for passwords"), Not(HasSubstr("ssh-copy-id"))));
  EXPECT_THAT(LoginRefused(config, {{"k"}, {}, {"publickey"}, false}), HasSubstr("ssh-copy-id"));
}

TEST(SshReasons, EndsOfTheCommand) {
  EXPECT_THAT(CommandEnded(0, "", "a warning\n"), IsEmpty());
  EXPECT_EQ(CommandEnded(3, "", ""), "the agent ended with exit code 3");
  EXPECT_EQ(CommandEnded(0, "KILL", ""), "the agent was ended by signal SIGKILL");
  EXPECT_TRUE(NeverStarted(127, "", false));
  EXPECT_FALSE(NeverStarted(127, "", true));
  EXPECT_FALSE(NeverStarted(0, "KILL", false));
}

// ---- what ssh is run as

TEST(SshProgram, TheHostComesAfterAllOptions) {
  SshHost host;
  host.name = "-oProxyCommand=touch /tmp/x";
  EXPECT_THAT(AskConfigCommand(host), ElementsAre("ssh", "-G", "--", host.name));
  host.user = "me";
  host.port = 2222;
  host.identity_file = "key";
  host.config_file = "file";
  EXPECT_THAT(AskConfigCommand(host), ElementsAre("ssh", "-G", "-F", "file", "-p", "2222", "-l",
                                                  "me", "-i", "key", "--", host.name));
}

TEST(SshProgram, TheLastJumpLeadsToTheHost) {
  SshConfig config;
  config.hostname = "::1";
  EXPECT_THAT(ProxyCommand(config, ""), IsEmpty());
  config.proxy_jump = "j1,u@j2:2200";
  EXPECT_THAT(ProxyCommand(config, ""), ElementsAre("ssh", "-o", "BatchMode=yes", "-J", "j1", "-W",
                                                    "[::1]:22", "--", "ssh://u@j2:2200"));
  config.proxy_jump = "j1";
  EXPECT_THAT(ProxyCommand(config, "f"), ElementsAre("ssh", "-o", "BatchMode=yes", "-F", "f", "-W",
                                                     "[::1]:22", "--", "ssh://j1"));
  config.proxy_command = "nc a 22";
  EXPECT_THAT(ProxyCommand(config, ""), ElementsAre("/bin/sh", "-c", "exec nc a 22"));
}

TEST(SshProgram, TheTailIsWhatCameLast) {
  std::string tail;
  KeepTail(tail, std::string(5000, 'a') + "b");
  EXPECT_EQ(tail.size(), 4096u);
  EXPECT_TRUE(tail.ends_with("ab"));
}

}  // namespace
}  // namespace hvd
