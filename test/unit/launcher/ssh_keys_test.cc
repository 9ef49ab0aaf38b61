// The order in which keys are tried, the messages to an agent, and texts that are no key.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "launcher/channels/ssh/keys/agent_messages.h"
#include "launcher/channels/ssh/keys/private_key.h"
#include "launcher/channels/ssh/keys/ssh_bytes.h"
#include "launcher/channels/ssh/keys/user_keys.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Blob(const std::string& type, const std::string& rest) {
  return SshWriter().String(type).String(rest).Release();
}
const std::string kA = Blob("ssh-ed25519", "a"), kB = Blob("ssh-rsa", "b"),
                  kC = Blob("ecdsa-sha2-nistp256", "c"),
                  kSecurity = Blob("sk-ssh-ed25519@openssh.com", "s");

std::vector<std::string> Names(const LoginKeys& keys) {
  std::vector<std::string> names;
  for (const LoginKey& key : keys.keys) names.push_back(key.name);
  return names;
}

// A file whose key needs the agent.
IdentityFile Locked(const std::string& path, const std::string& blob) {
  return {path, blob, nullptr, path + " needs a passphrase", false};
}

TEST(OrderKeys, TheAgentsKeysThatAreNamedThenItsOthers) {
  LoginKeys keys = OrderKeys({Locked("two", kB)}, {{kA, "a"}, {kB, "b"}, {kC, "c"}}, false);
  EXPECT_THAT(Names(keys),
              ElementsAre("the agent's key 'b'", "the agent's key 'a'", "the agent's key 'c'"));
  EXPECT_TRUE(keys.notes.empty());
}

TEST(OrderKeys, IdentitiesOnlyLeavesTheOthersOut) {
  EXPECT_THAT(Names(OrderKeys({Locked("two", kB)}, {{kA, "a"}, {kB, "b"}}, true)),
              ElementsAre("the agent's key 'b'"));
}

TEST(OrderKeys, WhatTheAgentHasNotIsNoted) {
  LoginKeys keys = OrderKeys({Locked("two", kB)}, {{kA, "a"}}, false);
  EXPECT_THAT(keys.notes, ElementsAre("two needs a passphrase"));
}

TEST(OrderKeys, SecurityKeysAreForTheSshProgram) {
  LoginKeys keys = OrderKeys({}, {{kSecurity, "token"}, {kA, "a"}}, false);
  EXPECT_THAT(Names(keys), ElementsAre("the agent's key 'a'"));
  EXPECT_TRUE(keys.skipped_kinds);
  EXPECT_THAT(keys.notes, ElementsAre(HasSubstr("'token' is of a kind")));
}

TEST(LoginBlob, RsaGoesByTheNameOfItsAlgorithm) {
  EXPECT_EQ(LoginBlob(kA), kA);
  EXPECT_EQ(LoginBlob(kB), Blob("rsa-sha2-512", "b"));
}

TEST(PrivateKey, WhatIsNoKeyIsNone) {
  using Problem = PrivateKey::Problem;
  for (const std::string text :
       {"", "hello", "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----\n!!!!\n-----END OPENSSH PRIVATE KEY-----\n",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEA\n-----END OPENSSH PRIVATE "
        "KEY-----\n",
        "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"}) {
    PrivateKey::Parsed parsed = PrivateKey::Parse(text);
    EXPECT_EQ(parsed.key, nullptr) << text;
    EXPECT_EQ(parsed.problem, Problem::kNoKey) << text;
  }
}

TEST(AgentMessages, KeysAreAskedForAndRead) {
  EXPECT_EQ(AskForAgentKeys(), std::string("\0\0\0\1\13", 5));
  std::string answer =
      SshWriter().Byte(12).Number(2).String(kA).String("a").String(kB).String("b").Release();
  EXPECT_THAT(*ReadAgentKeys(answer), ElementsAre(AgentKey{kA, "a"}, AgentKey{kB, "b"}));
  for (size_t cut = 0; cut < answer.size(); ++cut)
    EXPECT_FALSE(ReadAgentKeys(answer.substr(0, cut))) << cut;
  EXPECT_FALSE(ReadAgentKeys("\5"));
}

TEST(AgentMessages, RsaIsSignedWithSha512) {
  std::string ask = AskAgentToSign(kB, "data");
  EXPECT_TRUE(ask.ends_with(std::string("\0\0\0\4", 4)));
  EXPECT_TRUE(AskAgentToSign(kA, "data").ends_with(std::string("\0\0\0\0", 4)));
  std::string signature = SshWriter().String("rsa-sha2-512").String("signed").Release();
  EXPECT_EQ(ReadAgentSignature(SshWriter().Byte(14).String(signature).Release()), "signed");
  EXPECT_FALSE(ReadAgentSignature("\5"));
}

TEST(AgentMessages, AMessageIsTakenWhenItIsWhole) {
  std::string framed = SshWriter().String("hello").Release();
  for (size_t cut = 0; cut < framed.size(); ++cut)
    EXPECT_FALSE(FirstAgentMessage(framed.substr(0, cut)));
  EXPECT_EQ(FirstAgentMessage(framed), "hello");
  EXPECT_EQ(FirstAgentMessage("\xff\xff\xff\xff"), "") << "no message is that long";
}

TEST(SshBytes, NumbersHaveNoSignAndNoLeadingZeros) {
  EXPECT_EQ(SshWriter().Mpint(std::string("\0\0\x7f", 3)).Release(),
            std::string("\0\0\0\1\x7f", 5));
  EXPECT_EQ(SshWriter().Mpint("\x80").Release(), std::string("\0\0\0\2\0\x80", 6));
  EXPECT_EQ(SshWriter().Mpint("").Release(), std::string("\0\0\0\0", 4));
}

}  // namespace
}  // namespace hvd
