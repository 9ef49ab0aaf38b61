// AgentBootstrap against a scripted agent at the other end of a real link.
#include "runtime/bootstrap/agent_bootstrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <future>
#include <thread>

#include "test/support/deadline.h"

namespace hvd {
namespace {

using ::testing::HasSubstr;

std::string FreshName() {
  static int count = 0;
  return "hvd-test-" + std::to_string(::getpid()) + "-" + std::to_string(++count);
}

// Runs a script on a thread with each worker that connects, one after the other; joined on
// destruction.
class ScriptedAgent {
 public:
  using Script = std::function<void(ScriptedAgent&)>;

  explicit ScriptedAgent(Script script)
      : name_(FreshName()), listening_(ListenLink(name_).value()) {
    thread_ = std::thread([this, script = std::move(script)] {
      pollfd entry{listening_.get(), POLLIN, 0};
      if (::poll(&entry, 1, 60'000) == 1)
        worker_.Reset(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      script(*this);
    });
  }
  ~ScriptedAgent() { Finish(); }

  AgentAddress address() const { return {name_, 3, "key"}; }
  // Waits until the script is over.
  void Finish() {
    if (thread_.joinable()) thread_.join();
  }

  // For scripts.
  template <typename Message>
  Message Expect() {
    Result<ReceivedLink> received = ReceiveLink(worker_.get(), true);
    if (received.ok() && std::holds_alternative<Message>(received->message)) {
      return std::get<Message>(received->message);
    }
    ADD_FAILURE() << "the worker said something else: "
                  << (received.ok() ? std::to_string(received->message.index())
                                    : received.status().message());
    return Message{};
  }
  void Greet() {
    LinkHello hello = Expect<LinkHello>();
    EXPECT_EQ(hello.version, kLinkVersion);
    EXPECT_EQ(hello.slot, 3u);
    EXPECT_EQ(hello.pid, static_cast<uint32_t>(::getpid()));
    EXPECT_EQ(hello.job_key, "key");
    Expect<LinkJoin>();
  }
  void Send(const LinkMessage& message, int fd = -1) {
    EXPECT_TRUE(SendLink(worker_.get(), message, fd).ok());
  }
  // Rank 1 of 2 on one host, with a page for `local_size` ranks.
  void BeginGeneration(uint64_t generation, uint32_t local_size = 2, uint8_t elastic = 0) {
    const size_t bytes = JobPage::BytesFor(local_size);
    UniqueFd fd = CreateSharedMemory("hvd-test", bytes).value();
    Mapping memory = Mapping::Map(fd.get(), bytes).value();
    JobPage::Format(memory.data(), local_size, generation);
    Send(LinkLayout{generation, {{0, 0, 2}}});
    Send(
        LinkGeneration{
            generation, bytes, 1, 2, 1, 2, 0, 1, 1, "data key", {{"127.0.0.1"}, 0, 0}, elastic},
        fd.get());
  }
  // Rank 2 of 4 dealt out in turn to two hosts of two, after the given parts of the layout.
  void BeginGenerationOnTwoHosts(const std::vector<std::vector<RankRun>>& layout) {
    const size_t bytes = JobPage::BytesFor(2);
    UniqueFd fd = CreateSharedMemory("hvd-test", bytes).value();
    Mapping memory = Mapping::Map(fd.get(), bytes).value();
    JobPage::Format(memory.data(), 2, 5);
    for (const auto& runs : layout) Send(LinkLayout{5, runs});
    Send(LinkGeneration{5, bytes, 2, 4, 1, 2, 0, 2, 1}, fd.get());
  }
  void ExpectTheEnd() {
    EXPECT_EQ(ReceiveLink(worker_.get(), true).status().code(), Code::kAborted);
  }
  void HangUp() { worker_.Reset(); }

 private:
  std::string name_;
  UniqueFd listening_, worker_;
  std::thread thread_;
};

constexpr Duration kNoLimit{0};

TEST(AgentBootstrap, JoinsLeavesAndJoinsAgainOnOneLink) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(5);
    EXPECT_EQ(a.Expect<LinkGoodbye>().generation, 5u);
    a.Expect<LinkJoin>();
    a.Send(LinkBroken{5, "of a generation that was left"});
    a.BeginGeneration(6);
  });
  AgentBootstrap bootstrap(agent.address());
  Result<World> world = bootstrap.Join(kNoLimit);
  ASSERT_TRUE(world.ok()) << world.status().message();
  EXPECT_EQ(world->generation, 5u);
  EXPECT_EQ(world->rank, 1u);
  EXPECT_EQ(world->size, 2u);
  EXPECT_EQ(world->local_rank, 1u);
  EXPECT_EQ(world->local_size, 2u);
  EXPECT_EQ(world->cross_size, 1u);
  EXPECT_TRUE(world->homogeneous);
  EXPECT_EQ(world->page.header().generation, 5u);
  EXPECT_EQ(world->hosts, 1u);
  EXPECT_EQ(world->places, (std::vector<RankPlace>{{0, 0}, {0, 1}}));
  EXPECT_EQ(world->data_key, "data key");
  EXPECT_EQ(world->listen.addresses, std::vector<std::string>{"127.0.0.1"});
  EXPECT_TRUE(bootstrap.watched());
  bootstrap.Leave(5, SteadyNow());
  Result<World> next = bootstrap.Join(kNoLimit);
  ASSERT_TRUE(next.ok()) << next.status().message();
  EXPECT_EQ(next->generation, 6u);
}

TEST(AgentBootstrap, AJobThatGoesOnWithoutThisWorkerDismissesIt) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(5);
    a.Expect<LinkGoodbye>();
    a.Expect<LinkJoin>();
    a.Send(LinkDismissed{"host b has left the list of hosts"});
    a.Expect<LinkJoin>();
    a.BeginGeneration(7);
  });
  AgentBootstrap bootstrap(agent.address());
  ASSERT_TRUE(bootstrap.Join(kNoLimit).ok());
  bootstrap.Leave(5, SteadyNow());
  Status dismissed = bootstrap.Join(kNoLimit).status();
  EXPECT_EQ(dismissed.code(), Code::kDismissed);
  EXPECT_EQ(dismissed.message(), "host b has left the list of hosts");
  EXPECT_TRUE(bootstrap.Join(kNoLimit).ok()) << "the link stays, should the host come back";
}

TEST(AgentBootstrap, AnElasticWorldIsKnownAsOne) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(5);
    a.Expect<LinkGoodbye>();
    a.Expect<LinkJoin>();
    a.BeginGeneration(6, 2, 1);
  });
  AgentBootstrap bootstrap(agent.address());
  EXPECT_FALSE(bootstrap.Join(kNoLimit).value().ranks_change);
  bootstrap.Leave(5, SteadyNow());
  EXPECT_TRUE(bootstrap.Join(kNoLimit).value().ranks_change);
}

TEST(AgentBootstrap, ARefusalIsRepeatedWordForWord) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.Send(LinkRefused{"wrong job key"});
  });
  Status refused = AgentBootstrap(agent.address()).Join(kNoLimit).status();
  EXPECT_EQ(refused.code(), Code::kAborted);
  EXPECT_THAT(refused.message(), HasSubstr("refused this process: wrong job key"));
}

TEST(AgentBootstrap, AJobThatBreaksWhileJoiningSaysWhy) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.Send(LinkBroken{0, "rank 0 ended with exit code 3 before it called hvd.init()"});
  });
  Status broken = AgentBootstrap(agent.address()).Join(kNoLimit).status();
  EXPECT_EQ(broken.code(), Code::kAborted);
  EXPECT_EQ(broken.message(), "rank 0 ended with exit code 3 before it called hvd.init()");
}

TEST(AgentBootstrap, AnAgentThatGoesAwayIsNamed) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.HangUp();
  });
  AgentBootstrap bootstrap(agent.address());
  Status gone = bootstrap.Join(kNoLimit).status();
  EXPECT_EQ(gone.code(), Code::kAborted);
  EXPECT_THAT(gone.message(), HasSubstr("the agent of this host is gone"));
  bootstrap.Leave(1, SteadyNow());  // nobody to tell
  EXPECT_FALSE(bootstrap.PollAgent().ok());
}

TEST(AgentBootstrap, NoAgentAtAllIsAnErrorAtOnce) {
  Status nobody = AgentBootstrap({FreshName(), 0, "key"}).Join(kNoLimit).status();
  EXPECT_EQ(nobody.code(), Code::kAborted);
  EXPECT_THAT(nobody.message(), HasSubstr("has its job ended?"));
  EXPECT_FALSE(AgentBootstrap({"", 0, "key"}).Join(kNoLimit).ok());
  EXPECT_FALSE(AgentBootstrap({std::string(200, 'a'), 0, "key"}).Join(kNoLimit).ok());
}

TEST(AgentBootstrap, WaitsNoLongerThanAsked) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.Expect<LinkGoodbye>();  // stays until the worker has given up
  });
  AgentBootstrap bootstrap(agent.address());
  Status late = bootstrap.Join(std::chrono::milliseconds(1)).status();
  EXPECT_EQ(late.code(), Code::kAborted);
  EXPECT_EQ(late.message(), "not every rank called hvd.init() within 1 ms");
  bootstrap.Leave(0, SteadyNow());
}

TEST(AgentBootstrap, RefusesAWorldWithoutItsPage) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.Send(LinkLayout{5, {{0, 0, 2}}});
    a.Send(LinkGeneration{5, 4096, 1, 2, 1, 2, 0, 1, 1});
  });
  EXPECT_THAT(AgentBootstrap(agent.address()).Join(kNoLimit).status().message(),
              HasSubstr("without its job page"));
}

TEST(AgentBootstrap, RefusesAPageForAnotherNumberOfRanks) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(5, 3);
  });
  EXPECT_THAT(AgentBootstrap(agent.address()).Join(kNoLimit).status().message(),
              HasSubstr("another number of ranks"));
}

TEST(AgentBootstrap, KnowsWhereTheRanksOfOtherHostsAre) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGenerationOnTwoHosts({{{0, 0, 1}, {1, 0, 1}}, {{0, 1, 1}, {1, 1, 1}}});
  });
  AgentBootstrap bootstrap(agent.address());
  Result<World> world = bootstrap.Join(kNoLimit);
  ASSERT_TRUE(world.ok()) << world.status().message();
  EXPECT_EQ(world->hosts, 2u);
  EXPECT_EQ(world->host(), 0u);
  EXPECT_EQ(world->places, (std::vector<RankPlace>{{0, 0}, {1, 0}, {0, 1}, {1, 1}}));
}

TEST(AgentBootstrap, RefusesALayoutThatDoesNotFitItsPlace) {
  using Layout = std::vector<std::vector<RankRun>>;
  for (const Layout& layout :
       {Layout{}, Layout{{{0, 0, 2}}}, Layout{{{0, 0, 2}, {1, 0, 2}}},
        Layout{{{0, 0, 1}, {1, 0, 1}, {0, 1, 2}}}, Layout{{{0, 0, 1}, {2, 0, 1}, {0, 1, 1}}}}) {
    ScriptedAgent agent([&](ScriptedAgent& a) {
      a.Greet();
      a.BeginGenerationOnTwoHosts(layout);
      EXPECT_EQ(a.Expect<LinkGoodbye>().generation, 5u);
    });
    AgentBootstrap bootstrap(agent.address());
    EXPECT_THAT(bootstrap.Join(kNoLimit).status().message(), HasSubstr("the agent sent a layout"));
  }
}

const Duration kLong = kDeadline;

TEST(AgentBootstrap, TheDirectoryPutsAndGets) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(5);
    LinkPut put = a.Expect<LinkPut>();
    EXPECT_EQ(put.generation, 5u);
    EXPECT_EQ(put.key + "=" + put.value, "mine=1");
    EXPECT_EQ(a.Expect<LinkGet>().key, "other");
    a.Send(LinkValue{4, "other", "of an older generation"});
    a.Send(LinkValue{5, "other", "2"});
  });
  AgentBootstrap bootstrap(agent.address());
  EXPECT_EQ(bootstrap.directory().Put("mine", "1").code(), Code::kAborted) << "no generation yet";
  ASSERT_TRUE(bootstrap.Join(kNoLimit).ok());
  EXPECT_TRUE(bootstrap.directory().Put("mine", "1").ok());
  EXPECT_EQ(bootstrap.directory().Get("other", kLong).value(), "2");
  EXPECT_EQ(bootstrap.directory().Get("other", kLong).value(), "2") << "known, nobody is asked";
  EXPECT_EQ(bootstrap.directory().Put("", "1").code(), Code::kInvalidArgument);
  EXPECT_EQ(bootstrap.directory().Put("k", std::string(kMaxKvValue + 1, 'v')).code(),
            Code::kInvalidArgument);
  EXPECT_EQ(bootstrap.directory().Get("a b", kLong).status().code(), Code::kInvalidArgument);
}

TEST(AgentBootstrap, AGetEndsAtItsDeadlineOrWithTheGeneration) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(5);
    a.Expect<LinkGet>();
    a.Expect<LinkGet>();
    a.Send(LinkBroken{5, "rank 0 died"});
  });
  AgentBootstrap bootstrap(agent.address());
  ASSERT_TRUE(bootstrap.Join(kNoLimit).ok());
  KvStore& directory = bootstrap.directory();
  EXPECT_EQ(directory.Get("k", std::chrono::milliseconds(1)).status().code(), Code::kInProgress);
  Status broken = directory.Get("k", kLong).status();
  EXPECT_EQ(broken.code(), Code::kAborted);
  EXPECT_EQ(broken.message(), "rank 0 died");
  EXPECT_EQ(directory.Put("k", "v").message(), "rank 0 died");
}

TEST(AgentBootstrap, WhoWaitsForAnEntryHoldsNobodyUp) {
  std::promise<void> somebody_waits;
  ScriptedAgent agent([&](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(5);
    EXPECT_EQ(a.Expect<LinkGet>().key, "k");
    somebody_waits.set_value();
    UniqueFd fd = CreateSharedMemory("hvd-test", 4096).value();
    a.Expect<LinkAllocate>();
    a.Send(LinkSegment{1, 4096, ""}, fd.get());
    EXPECT_EQ(a.Expect<LinkPut>().key, "k");
    a.Send(LinkValue{5, "k", "v"});
  });
  AgentBootstrap bootstrap(agent.address());
  ASSERT_TRUE(bootstrap.Join(kNoLimit).ok());
  KvStore& directory = bootstrap.directory();
  std::thread waits([&] { EXPECT_EQ(directory.Get("k", kLong).value(), "v"); });
  somebody_waits.get_future().wait();
  EXPECT_TRUE(bootstrap.segments().Allocate(4096).ok());
  EXPECT_TRUE(directory.Put("k", "v").ok());
  waits.join();
}

TEST(AgentBootstrap, GetsFetchesAndFreesSegments) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Expect<LinkHello>();
    UniqueFd fd = CreateSharedMemory("hvd-test", 8192).value();
    EXPECT_EQ(a.Expect<LinkAllocate>().bytes, 8192u);
    a.Send(LinkSegment{4, 8192, ""}, fd.get());
    EXPECT_EQ(a.Expect<LinkFetch>().segment, 4u);
    a.Send(LinkBroken{1, "said in between"});
    a.Send(LinkSegment{4, 8192, ""}, fd.get());
    a.Expect<LinkFetch>();
    a.Send(LinkSegment{9, 0, "no data segment 9"});
    EXPECT_EQ(a.Expect<LinkFree>().segment, 4u);
  });
  AgentBootstrap bootstrap(agent.address());
  SegmentSource& segments = bootstrap.segments();
  Result<DataSegment> own = segments.Allocate(8192);
  ASSERT_TRUE(own.ok()) << own.status().message();
  EXPECT_EQ(own->id, 4u);
  EXPECT_EQ(own->bytes, 8192u);
  Result<DataSegment> fetched = segments.Fetch(4);
  ASSERT_TRUE(fetched.ok()) << fetched.status().message();
  Mapping a = Mapping::Map(own->fd.get(), 8192).value(),
          b = Mapping::Map(fetched->fd.get(), 8192).value();
  a.data()[0] = std::byte{1};
  EXPECT_EQ(b.data()[0], std::byte{1});
  Result<DataSegment> missing = segments.Fetch(9);
  EXPECT_EQ(missing.status().code(), Code::kOutOfMemory);
  EXPECT_EQ(missing.status().message(), "no data segment 9");
  segments.Free(4);
}

TEST(AgentBootstrap, SharedMemoryDoesNotOutliveItsAgent) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Expect<LinkHello>();
    UniqueFd fd = CreateSharedMemory("hvd-test", 4096).value();
    a.Expect<LinkAllocate>();
    a.Send(LinkSegment{1, 4096, ""}, fd.get());
    a.HangUp();
  });
  AgentBootstrap bootstrap(agent.address());
  ASSERT_TRUE(bootstrap.segments().Allocate(4096).ok());
  agent.Finish();
  EXPECT_FALSE(bootstrap.PollAgent().ok());
  EXPECT_THAT(bootstrap.Join(kNoLimit).status().message(), HasSubstr("start the process again"));
}

TEST(AgentBootstrap, AttendsWithoutBlockingAndSeesTheEnd) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(1);
    EXPECT_EQ(a.Expect<LinkGoodbye>().generation, 1u);
    a.HangUp();
  });
  AgentBootstrap bootstrap(agent.address());
  ASSERT_TRUE(bootstrap.Join(kNoLimit).ok());
  EXPECT_TRUE(bootstrap.PollAgent().ok());
  bootstrap.Leave(1, SteadyNow());
  agent.Finish();
  Status gone = bootstrap.PollAgent();
  EXPECT_EQ(gone.code(), Code::kAborted);
  EXPECT_THAT(gone.message(), HasSubstr("the agent of this host is gone"));
}

TEST(AgentBootstrap, AForkedChildLetsGoOfTheLink) {
  ScriptedAgent agent([](ScriptedAgent& a) {
    a.Greet();
    a.BeginGeneration(1);
    a.ExpectTheEnd();
  });
  AgentBootstrap bootstrap(agent.address());
  ASSERT_TRUE(bootstrap.Join(kNoLimit).ok());
  bootstrap.CloseAfterFork();
  bootstrap.Leave(1, SteadyNow());
  EXPECT_FALSE(bootstrap.PollAgent().ok());
}

}  // namespace
}  // namespace hvd
