// The ways to other hosts, as far as they are pure: what is typed there, what the end of a command
// means, what a shell says first, how far a host has come, and who proves itself to whom.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "launcher/agent/inspection/connectivity_probe.h"
#include "launcher/channels/bundle/remote_script.h"
#include "launcher/channels/preamble.h"
#include "launcher/channels/ssh_command.h"
#include "launcher/job/host_records/host_stages.h"
#include "launcher/wire/probe_partners.h"
#include "runtime/base/text/format.h"

namespace hvd {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(SshCommand, HasTheNameBehindAllOptions) {
  std::vector<std::string> command =
      SshCommand({.name = "h", .user = "bob", .port = 22}, true, "words", 7);
  EXPECT_EQ(command.front(), "ssh");
  EXPECT_THAT(std::vector<std::string>(command.end() - 3, command.end()),
              ElementsAre("--", "h", "words"));
  std::set<std::string> all(command.begin(), command.end());
  for (const char* word : {"BatchMode=yes", "ConnectTimeout=7", "StrictHostKeyChecking=accept-new",
                           "RemoteCommand=none", "-l", "bob", "-p", "22"})
    EXPECT_TRUE(all.contains(word)) << word;
}

TEST(RshAgentCommand, IsCutAtBlanksAndGetsHostAndWords) {
  EXPECT_THAT(RshAgentCommand(" /etc/mpi/kubexec.sh  -v ", "pod", "exec a b"),
              ElementsAre("/etc/mpi/kubexec.sh", "-v", "pod", "exec a b"));
  EXPECT_THAT(RshAgentCommand("./exec", "pod", "a b"), ElementsAre("./exec", "pod", "a b"));
}

TEST(RshAgentCommand, GivesAShellToWhatStartsAProgramInAContainer) {
  EXPECT_THAT(
      RshAgentCommand("kubectl exec -i -c main", "pod", "exec a b"),
      ElementsAre("kubectl", "exec", "-i", "-c", "main", "pod", "--", "sh", "-c", "exec a b"));
  EXPECT_THAT(
      RshAgentCommand("/usr/bin/oc -n team exec -i", "pod", "a b"),
      ElementsAre("/usr/bin/oc", "-n", "team", "exec", "-i", "pod", "--", "sh", "-c", "a b"));
  for (const char* program : {"docker", "podman", "/opt/bin/nerdctl"}) {
    EXPECT_THAT(RshAgentCommand(Format("{} exec -i", program), "c1", "a b"),
                ElementsAre(program, "exec", "-i", "c1", "sh", "-c", "a b"));
  }
  EXPECT_THAT(RshAgentCommand("kubectl ssh", "pod", "a b"),
              ElementsAre("kubectl", "ssh", "pod", "a b"));
}

CommandEnd Ended(int code, std::string said, bool connected = false) {
  return {code << 8, std::move(said), connected};
}

TEST(ReadSshEnd, TellsStageAndCureFromTheWordsOfSsh) {
  struct Row {
    const char* said;
    ChannelStage stage;
    const char* has;
  };
  const SshHost host{.name = "h", .user = "bob"};
  for (const Row& row :
       {Row{"ssh: Could not resolve hostname h: Name or service not known\r\n",
            ChannelStage::kResolve, "no address"},
        {"ssh: connect to host h port 22: Connection refused", ChannelStage::kConnect, "refused"},
        {"ssh: connect to host h port 22: Connection timed out", ChannelStage::kConnect,
         "firewall"},
        {"Host key verification failed.", ChannelStage::kHostKey, "accept-new; by hand: ssh bob@h"},
        {"@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
         ChannelStage::kHostKey, "ssh-keygen -R h"},
        {"bob@h: Permission denied (publickey).", ChannelStage::kLogin, "ssh-copy-id"},
        {"something new", ChannelStage::kConnect, "something new; try it by hand: ssh -v bob@h"}}) {
    ChannelEnd end = ReadSshEnd(host, Ended(255, row.said));
    EXPECT_EQ(end.stage, row.stage) << row.said;
    EXPECT_THAT(end.reason, HasSubstr(row.has));
  }
}

TEST(ReadSshEnd, ANameMayBeKnownLaterUnlessItNeverCanBe) {
  const SshHost host{.name = "h"};
  auto may_pass = [&](const std::string& said) {
    return ReadSshEnd(host, Ended(255, "ssh: " + said + "\r\n")).may_pass;
  };
  EXPECT_TRUE(may_pass("Could not resolve hostname h: Name or service not known"));
  EXPECT_TRUE(may_pass("Could not resolve hostname h: Temporary failure in name resolution"));
  EXPECT_FALSE(may_pass("Could not resolve hostname h.invalid: Name or service not known"));
  EXPECT_FALSE(may_pass("connect to host h port 22: Connection refused"));
}

TEST(ReadSshEnd, TellsAServerThatDoesNotAnswerFromOneThatRefuses) {
  const SshHost host{.name = "h"};
  auto no_answer = [&](const std::string& said) {
    return ReadSshEnd(host, Ended(255, said + "\r\n")).no_answer;
  };
  EXPECT_EQ(no_answer("ssh: connect to host h port 22: Connection refused"),
            "the connection was refused");
  for (const char* silent :
       {"ssh: connect to host h port 22: Connection timed out",
        "ssh: connect to host h port 22: No route to host",
        "ssh: connect to host h port 22: Network is unreachable",
        "Connection timed out during banner exchange\r\nConnection to 10.0.0.1 port 22 timed out",
        "kex_exchange_identification: Connection closed by remote host",
        "kex_exchange_identification: write: Broken pipe",
        "ssh: connect to host h port 22: Connection reset by peer",
        "kex_exchange_identification: read: Connection reset by peer\r\n"
        "Connection reset by 10.0.0.1 port 2222"})
    EXPECT_NE(no_answer(silent), "") << silent;
  for (const char* there :
       {"kex_exchange_identification: banner line contains invalid characters",
        "Host key verification failed.", "h: Permission denied (publickey).", "something new",
        "Read from remote host h: Connection reset by peer",
        "client_loop: send disconnect: Connection reset by peer",
        "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.",
        "ssh: Could not resolve hostname h: Name or service not known"})
    EXPECT_EQ(no_answer(there), "") << there;
  EXPECT_EQ(ReadSshEnd(host, Ended(255, "Connection reset", true)).no_answer, "") << "it ran";
  const ChannelEnd lost =
      ReadSshEnd(host, Ended(255, "Read from remote host h: Connection timed out\r\n"));
  EXPECT_EQ(lost.stage, ChannelStage::kExec);
  EXPECT_THAT(lost.reason, HasSubstr("the connection was lost after the login: Read from"));
}

TEST(ReadSshEnd, TellsTheAgentsOwnEnd) {
  const SshHost host{.name = "h"};
  EXPECT_EQ(ReadSshEnd(host, Ended(0, "", true)).reason, "") << "it ended well";
  EXPECT_EQ(ReadSshEnd(host, Ended(137, "", true)).reason, "the agent was ended by signal 9");
  EXPECT_TRUE(ReadSshEnd(host, Ended(137, "", true)).killed);
  EXPECT_FALSE(ReadSshEnd(host, Ended(3, "", true)).killed);
  EXPECT_THAT(ReadSshEnd(host, Ended(255, "Connection reset", true)).reason,
              HasSubstr("the connection was lost: Connection reset"));
  ChannelEnd missing = ReadSshEnd(host, Ended(127, "sh: not found\n"));
  EXPECT_EQ(missing.stage, ChannelStage::kExec);
  EXPECT_THAT(missing.reason, HasSubstr("exit code 127: sh: not found"));
}

TEST(Preamble, EndsWithTheGreetingWhereverItIsCut) {
  const std::string bytes = "Welcome!\nhvd\nhvdrun-agent 7\nrest";
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Preamble preamble(AgentGreeting("7"));
    std::string after;
    for (const std::string& part : {bytes.substr(0, cut), bytes.substr(cut)}) {
      if (preamble.over()) {
        after += part;
      } else if (std::optional<std::string> rest = preamble.Consume(part)) {
        after += *rest;
      }
    }
    EXPECT_EQ(after, "rest") << cut;
  }
}

TEST(Preamble, KeepsTheLastLineForAMessageAndHasABound) {
  Preamble preamble(AgentGreeting("7"));
  EXPECT_FALSE(preamble.Consume("one\nThis account is not available.\n"));
  EXPECT_EQ(preamble.printed(), "This account is not available.");
  EXPECT_FALSE(preamble.too_long());
  EXPECT_FALSE(preamble.Consume(std::string(Preamble::kMost, 'x')));
  EXPECT_TRUE(preamble.too_long());
  EXPECT_TRUE(Preamble("").over()) << "an agent on this machine has none";
}

TEST(Preamble, TellsTheWordsOfTheScriptFromChatter) {
  const std::string bytes = "Hi\nhvdrun-agent 8 wants tar\n... hvdrun-agent 7 wants gzip\nMore\n";
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    Preamble preamble(AgentGreeting("7"));
    std::vector<std::string> heard;
    for (const std::string& part : {bytes.substr(0, cut), bytes.substr(cut)}) {
      EXPECT_FALSE(preamble.Consume(part));
      while (std::optional<std::string> words = preamble.PopSuffix()) heard.push_back(*words);
    }
    EXPECT_THAT(heard, ElementsAre("wants gzip")) << cut << ": the other one is of another job";
    EXPECT_EQ(preamble.printed(), "More");
    EXPECT_EQ(preamble.Consume("hvdrun-agent 7\nrest"), "rest");
    EXPECT_FALSE(preamble.PopSuffix());
  }
}

TEST(StageLimits, AreReadByName) {
  Result<StageLimits> limits = StageLimits::Parse("connect=20,login=60");
  ASSERT_TRUE(limits.ok());
  EXPECT_EQ(limits->at(HostStage::kConnect), seconds(20));
  EXPECT_EQ(limits->at(HostStage::kLogin), seconds(60));
  EXPECT_EQ(limits->at(HostStage::kResolve), StageLimits::Default().at(HostStage::kResolve));
  EXPECT_TRUE(StageLimits::Parse("").ok());
  for (const char* bad : {"knock=1", "connect", "connect=", "connect=0", "connect=1x", "=3", ","})
    EXPECT_FALSE(StageLimits::Parse(bad).ok()) << bad;
}

TEST(HostStages, CountsAndNamesWhoIsSlow) {
  HostStages stages(3, StageLimits::Default());
  TimePoint now{};
  stages.Begin(now);
  stages.Enter(0, HostStage::kReady, now);
  stages.Enter(1, HostStage::kLogin, now);
  EXPECT_EQ(stages.Counts(), "1 ready, 1 logging in, 1 resolving its name");
  now += seconds(10);
  EXPECT_EQ(stages.PopSlow({"a", "b", "c"}, now),
            "c: resolving its name for 10 s; b: logging in for 10 s");
  EXPECT_EQ(stages.PopSlow({"a", "b", "c"}, now), "") << "said once";
  stages.Enter(1, HostStage::kConnect, now);
  now += seconds(10);
  stages.Expire(now);
  EXPECT_EQ(stages.stage(1), HostStage::kFailed) << "a connection has 10 s";
  EXPECT_EQ(stages.stage(2), HostStage::kFailed) << "a name has 20 s";
}

const HostTrouble kNoName{HostStage::kResolve, "its name cannot be resolved"};

// As a client reports it that begins with the name again and again.
TEST(HostStages, ANameThatIsNotKnownYetIsNamedSoonAndHasItsLimitInAll) {
  HostStages stages(2, StageLimits::Default());
  TimePoint now{};
  stages.Begin(now);
  stages.Enter(1, HostStage::kConnect, now);
  std::string slow;
  for (int second = 0; second < 20; ++second, now += seconds(1)) {
    stages.Enter(0, HostStage::kConnect, now);  // the ssh program does not say which it does
    stages.Trouble(0, kNoName, now);
    if (second == 3) stages.Enter(1, HostStage::kReady, now);
    stages.Expire(now);
    ASSERT_EQ(stages.stage(0), HostStage::kResolve) << second;
    if (std::string more = stages.PopSlow({"a", "b"}, now); !more.empty())
      slow += std::to_string(second) + ": " + more;
  }
  EXPECT_EQ(slow, "2: a: no DNS answer yet for 2 s") << "once";
  EXPECT_EQ(stages.NextExpiry(), now);
  stages.Expire(now);
  EXPECT_EQ(stages.TroubleOf(0),
            "resolving its name: its name cannot be resolved; it was tried again for 20 s, and "
            "--stage-timeouts resolve=N allows more seconds");
}

// As a client reports it whose connections are refused, or closed at once.
TEST(HostStages, AServerThatIsNotThereYetIsNamedWithItsReasonAndHasItsLimitInAll) {
  StageLimits limits = StageLimits::Default();
  limits.at(HostStage::kConnect) = seconds(100);
  HostStages stages(3, limits);
  TimePoint now{};
  stages.Begin(now);
  stages.Enter(2, HostStage::kReady, now);
  std::string slow;
  for (int second = 0; second < 100; ++second, now += seconds(1)) {
    for (uint32_t host : {0u, 1u}) {
      stages.Enter(host, second % 2 == 0 ? HostStage::kConnect : HostStage::kKeyExchange, now);
      const std::string address = host == 0 ? "10.0.0.1" : "10.0.0.2";
      stages.Trouble(
          host, {HostStage::kConnect, "none to " + address, "the connection was refused"}, now);
    }
    stages.Expire(now);
    ASSERT_EQ(stages.stage(0), HostStage::kConnect) << second;
    if (std::string more = stages.PopSlow({"a", "b", "c"}, now); !more.empty())
      slow += std::to_string(second) + ": " + more + "\n";
  }
  EXPECT_EQ(slow,
            "2: a, b: no sshd yet for 2 s: the connection was refused\n"
            "60: a, b: no sshd yet for 60 s: the connection was refused\n");
  stages.Expire(now);
  EXPECT_EQ(stages.TroubleOf(0),
            "connecting: none to 10.0.0.1; it was tried again for 100 s, and --stage-timeouts "
            "connect=N allows more seconds");
}

TEST(HostStages, ANameIsNotWaitedForWhenAnotherHostHasFailed) {
  HostStages stages(3, StageLimits::Default());
  TimePoint now{};
  stages.Begin(now);
  stages.Trouble(1, kNoName, now);
  stages.Fail(0, "refused", now);
  now += HostStages::kSettle;
  stages.Expire(now);
  EXPECT_TRUE(stages.Lost(now));
  EXPECT_EQ(stages.Report({"a", "b", "c"}),
            "2 of 3 hosts cannot be used, so nothing was started.\n"
            "  a: resolving its name: refused\n"
            "  b: resolving its name: its name cannot be resolved\n"
            "  c: still resolving its name\n");
}

TEST(HostStages, ANameThatIsKnownInTheEndIsForgotten) {
  HostStages stages(1, StageLimits::Default());
  TimePoint now{};
  stages.Begin(now);
  stages.Trouble(0, kNoName, now);
  EXPECT_TRUE(stages.tried_again(0));
  now += seconds(19);
  stages.PopSlow({"a"}, now);
  stages.Enter(0, HostStage::kConnect, now);
  EXPECT_FALSE(stages.tried_again(0));
  now += seconds(10);
  stages.Expire(now);
  EXPECT_THAT(stages.TroubleOf(0), HasSubstr("connecting: it took longer than 10 s"));
}

TEST(HostStages, AnUnknownNameMayHaveAShorterLimit) {
  StageLimits limits = StageLimits::Default();
  limits.unknown_name = seconds(3);
  HostStages stages(2, limits);
  TimePoint now{};
  stages.Begin(now);
  stages.Trouble(0, kNoName, now);
  now += seconds(3);
  stages.Expire(now);
  EXPECT_THAT(stages.TroubleOf(0),
              HasSubstr("its name cannot be resolved; it was tried again for 3 s"));
  EXPECT_EQ(stages.stage(1), HostStage::kResolve) << "its name server has not answered";
}

TEST(HostStages, AHostThatIsSentSomethingHasTimeAsLongAsItMoves) {
  HostStages stages(1, StageLimits::Default());
  TimePoint now{};
  stages.Begin(now);
  for (int i = 0; i < 300; ++i, now += seconds(1)) {
    stages.Enter(0, HostStage::kBundle, now);
    stages.Expire(now);
    ASSERT_EQ(stages.stage(0), HostStage::kBundle);
    EXPECT_EQ(stages.PopSlow({"a"}, now), i == 1 ? "hvdrun is being sent to a" : "");
  }
  stages.Expire(now + seconds(58));
  EXPECT_EQ(stages.stage(0), HostStage::kBundle);
  stages.Expire(now + seconds(59));
  EXPECT_EQ(stages.stage(0), HostStage::kFailed);
  EXPECT_THAT(stages.Report({"a"}), HasSubstr("--stage-timeouts bundle=N"));
}

TEST(HostNames, AreCutWhenThereAreMany) {
  std::vector<std::string> names;
  for (int i = 0; i < 20; ++i) names.push_back("n" + std::to_string(i));
  EXPECT_THAT(HostNames(names), HasSubstr("n15 and 4 more"));
}

TEST(ProbePartners, AreSymmetricAndFew) {
  EXPECT_THAT(ProbePartners(1, 3), ElementsAre(0, 2));
  EXPECT_TRUE(ProbePartners(0, 1).empty());
  for (uint32_t hosts : {16u, 17u, 100u, 1000u}) {
    for (uint32_t host : {0u, 1u, hosts / 2, hosts - 1}) {
      std::vector<uint32_t> partners = ProbePartners(host, hosts);
      EXPECT_LE(partners.size(), 20u);
      for (uint32_t other : partners) {
        EXPECT_NE(other, host);
        std::vector<uint32_t> back = ProbePartners(other, hosts);
        EXPECT_TRUE(std::find(back.begin(), back.end(), host) != back.end()) << host << other;
      }
    }
  }
}

}  // namespace
}  // namespace hvd
