// Ranks that nobody of ours started, with the real adopting agent: they find it, form worlds of one
// and of several hosts, and hear of each other's ends. A rank is an AgentBootstrap; all of them
// live in this process.
#include "launcher/external/adopt/adopt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/bootstrap/adopted_agent_connector.h"
#include "runtime/bootstrap/agent_bootstrap.h"
#include "test/fakes/http_kv_server.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

const Duration kLong = kDeadline;

std::string FreshJob() {
  static int count = 0;
  return "adopt_test " + std::to_string(::getpid()) + " " + std::to_string(++count);
}

// Ranks of one job, dealt out to its hosts in turn. Several hosts without a store know where all
// ranks are.
class Job {
 public:
  explicit Job(uint32_t size, uint32_t hosts = 1, std::string store = "",
               std::string name = FreshJob(), std::string hvdrun = HVDRUN_PATH)
      : name_(std::move(name)) {
    std::vector<RankPlace> places;
    for (uint32_t rank = 0; rank < size; ++rank) places.push_back({rank % hosts, rank / hosts});
    for (uint32_t rank = 0; rank < size; ++rank) {
      ExternalRank r{"a test",     name_, "host" + std::to_string(rank % hosts),
                     rank,         size,  rank / hosts,
                     size / hosts, store};
      if (hosts > 1 && store.empty()) r.layout = RunsOf(places);
      ranks_.push_back(r);
      bootstraps_.push_back(Make(r, hvdrun));
    }
  }

  static std::unique_ptr<AgentBootstrap> Make(const ExternalRank& rank,
                                              const std::string& hvdrun = HVDRUN_PATH) {
    return std::make_unique<AgentBootstrap>(std::make_unique<AdoptedAgentConnector>(rank, hvdrun));
  }

  // All at once.
  std::vector<Result<World>> Join() {
    std::vector<Result<World>> worlds;
    for (size_t rank = 0; rank < ranks_.size(); ++rank) worlds.emplace_back(Internal("no answer"));
    Each([&](uint32_t rank) { worlds[rank] = at(rank).Join(kLong); });
    return worlds;
  }
  // The rank is known to its agent, and does not wait for a world.
  void Meet(uint32_t rank) { EXPECT_TRUE(at(rank).segments().Allocate(4096).ok()); }
  void Leave(uint64_t generation) {
    Each([&](uint32_t rank) { at(rank).Leave(generation, SteadyNow()); });
  }
  // The process of the rank is gone.
  void Kill(uint32_t rank) { bootstraps_[rank].reset(); }
  void Each(const std::function<void(uint32_t)>& act) {
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < ranks_.size(); ++rank) threads.emplace_back(act, rank);
    for (std::thread& thread : threads) thread.join();
  }
  AgentBootstrap& at(uint32_t rank) { return *bootstraps_[rank]; }
  const ExternalRank& rank(uint32_t rank) const { return ranks_[rank]; }
  const std::string& name() const { return name_; }

  // Whether the agents have ended once no rank is left.
  bool AgentsEnd() {
    for (auto& bootstrap : bootstraps_) bootstrap.reset();
    return std::all_of(ranks_.begin(), ranks_.end(), [](const ExternalRank& rank) {
      std::string address = AdoptAddress(AdoptedJobId(rank), ::geteuid());
      TimePoint deadline = SteadyNow() + kLong;
      while (SteadyNow() < deadline) {
        Result<UniqueFd> listener = ListenLinkIfFree(address);
        if (listener.ok() && listener->valid()) return true;
        ::sched_yield();
      }
      return false;
    });
  }

 private:
  std::string name_;
  std::vector<ExternalRank> ranks_;
  std::vector<std::unique_ptr<AgentBootstrap>> bootstraps_;
};

void ExpectWorld(const std::vector<Result<World>>& worlds, uint64_t generation, uint32_t hosts) {
  for (uint32_t rank = 0; rank < worlds.size(); ++rank) {
    ASSERT_TRUE(worlds[rank].ok()) << worlds[rank].status().message();
    const World& world = worlds[rank].value();
    EXPECT_EQ(world.generation, generation);
    EXPECT_EQ(world.rank, rank);
    EXPECT_EQ(world.size, worlds.size());
    EXPECT_EQ(world.hosts, hosts);
    EXPECT_EQ(world.local_rank, rank / hosts);
    EXPECT_EQ(world.local_size, worlds.size() / hosts);
    EXPECT_EQ(world.cross_rank, rank % hosts);
    EXPECT_EQ(world.cross_size, hosts);
    EXPECT_TRUE(world.homogeneous);
    EXPECT_EQ(world.page.header().generation, generation);
    for (uint32_t peer = 0; peer < worlds.size(); ++peer)
      EXPECT_EQ(world.places[peer], (RankPlace{peer % hosts, peer / hosts}));
  }
}

TEST(Adopt, RanksOfOneHostFormWorldAfterWorldWithOneAgent) {
  Job job(4);
  for (uint64_t generation = 1; generation <= 20; ++generation) {
    ExpectWorld(job.Join(), generation, 1);
    job.Leave(generation);
  }
  EXPECT_TRUE(job.AgentsEnd());
}

// As a rank that won the election, and is off its core before it listens.
TEST(Adopt, AWinnerThatIsHeldUpIsWaitedFor) {
  Job job(2);
  const std::string name = AdoptAddress(AdoptedJobId(job.rank(0)), ::geteuid());
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  name.copy(address.sun_path + 1, sizeof address.sun_path - 1);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  UniqueFd winner(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  ASSERT_EQ(::bind(winner.get(), reinterpret_cast<const sockaddr*>(&address), length), 0);
  std::thread held_up([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    winner.Reset();
  });
  ExpectWorld(job.Join(), 1, 1);
  held_up.join();
  EXPECT_TRUE(job.AgentsEnd());
}

// A process of its own, with which this one takes turns: it does `first`, and ends where `Release`
// says so.
class OtherProcess {
 public:
  explicit OtherProcess(const std::function<void()>& first) {
    EXPECT_EQ(::pipe(done_.data()), 0);
    EXPECT_EQ(::pipe(release_.data()), 0);
    pid_ = ::fork();
    if (pid_ != 0) {
      ::close(release_[0]);
      ::close(done_[1]);
      return;
    }
    ::close(release_[1]);
    first();
    char byte = 0;
    (void)!::write(done_[1], &byte, 1);
    (void)!::read(release_[0], &byte, 1);
    ::_exit(0);
  }
  ~OtherProcess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    ::close(release_[1]);
    ::close(done_[0]);
  }
  OtherProcess(const OtherProcess&) = delete;

  // `first` is done.
  void Await() const {
    char byte = 0;
    EXPECT_EQ(::read(done_[0], &byte, 1), 1);
  }
  // It ends, and nothing of it is left.
  void Release() {
    EXPECT_EQ(::write(release_[1], "", 1), 1);
    EXPECT_EQ(::waitpid(pid_, nullptr, 0), pid_);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  std::array<int, 2> done_{}, release_{};
};

// A second script in the same ranks: the one that started the agent is gone, the agent is not.
TEST(Adopt, ARankMayComeWhenTheOneThatStartedTheAgentIsGone) {
  Job job(2);
  OtherProcess starter([&] { job.Meet(0); });
  starter.Await();
  job.Meet(1);  // keeps the agent
  starter.Release();
  ExpectWorld(job.Join(), 1, 1);
  EXPECT_TRUE(job.AgentsEnd());
}

// The process that is to be the agent, which does not go on before it can read from `go`.
void StartAgentLate(const ExternalRank& rank, int go) {
  const std::string id = AdoptedJobId(rank);
  UniqueFd listener(ListenLinkIfFree(AdoptAddress(id, ::geteuid()))->Release());
  if (::fork() != 0) return;
  char byte = 0;
  (void)!::read(go, &byte, 1);
  ::dup2(listener.get(), STDIN_FILENO);
  std::vector<std::string> arguments = AdoptArguments(rank, id);
  std::vector<char*> argv = {const_cast<char*>(HVDRUN_PATH)};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  ::execv(HVDRUN_PATH, argv.data());
  ::_exit(1);
}

// A launcher kills the rank that started the agent, which is off its core before it takes over.
TEST(Adopt, AnAgentThatIsHeldUpIsWaitedFor) {
  Job job(2);
  std::array<int, 2> go{};
  ASSERT_EQ(::pipe(go.data()), 0);
  OtherProcess starter([&] { StartAgentLate(job.rank(0), go[0]); });
  starter.Await();
  starter.Release();
  std::thread held_up([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    EXPECT_EQ(::write(go[1], "", 1), 1);
  });
  ExpectWorld(job.Join(), 1, 1);
  held_up.join();
  EXPECT_TRUE(job.AgentsEnd());
  ::close(go[0]);
  ::close(go[1]);
}

TEST(Adopt, JobsSideBySideNeverMeet) {
  Job a(2), b(3);
  std::vector<Result<World>> of_a;
  std::thread joins([&] { of_a = a.Join(); });
  ExpectWorld(b.Join(), 1, 1);
  joins.join();
  ExpectWorld(of_a, 1, 1);
  EXPECT_TRUE(a.AgentsEnd() && b.AgentsEnd());
}

TEST(Adopt, ADeathBreaksTheWorldOfTheOthers) {
  Job job(3);
  std::vector<Result<World>> worlds = job.Join();
  ExpectWorld(worlds, 1, 1);
  std::thread waits([&] {
    Status broken = job.at(0).directory().Get("never", kLong).status();
    EXPECT_EQ(broken.code(), Code::kAborted);
    EXPECT_THAT(broken.message(),
                MatchesRegex("rank 1 on host host0 \\(pid [0-9]+\\) died in the middle of the job, "
                             "without hvd.shutdown\\(\\)"));
  });
  job.Kill(1);
  waits.join();
  EXPECT_TRUE(worlds[2]->page.broken());
  Status again = job.at(0).Join(kLong).status();
  EXPECT_THAT(again.message(), HasSubstr("so the world of 3 cannot form again"));
  EXPECT_TRUE(job.AgentsEnd());
}

TEST(Adopt, WhoWaitsForARankThatEndsIsTold) {
  Job job(3);  // the third never comes
  job.Meet(0);
  std::thread waits([&] {
    EXPECT_THAT(job.at(0).Join(kLong).status().message(),
                MatchesRegex("rank 1 on host host0 \\(pid [0-9]+\\) ended while it waited in "
                             "hvd.init\\(\\), so the world of 3 cannot form"));
  });
  EXPECT_THAT(job.at(1).Join(std::chrono::milliseconds(1)).status().message(),
              HasSubstr("not every rank called hvd.init() within 1 ms"));
  job.Kill(1);
  waits.join();
  EXPECT_TRUE(job.AgentsEnd());
}

TEST(Adopt, ANewProcessMayTakeThePlaceOfOneThatLeft) {
  Job job(2);
  ExpectWorld(job.Join(), 1, 1);
  job.Leave(1);
  job.Kill(1);
  auto successor = Job::Make(job.rank(1));
  Result<World> world = Internal("did not join");
  std::thread joins([&] { world = successor->Join(kLong); });
  Result<World> other = job.at(0).Join(kLong);
  joins.join();
  ASSERT_TRUE(world.ok() && other.ok()) << world.status().message() << other.status().message();
  EXPECT_EQ(world->generation, 2u);
  successor->Leave(2, SteadyNow());
  successor.reset();
  EXPECT_TRUE(job.AgentsEnd());
}

TEST(Adopt, WhatALauncherGotWrongIsRefused) {
  Job job(2);
  job.Meet(0);
  ExternalRank wrong_size = job.rank(1), twice = job.rank(1), same_slot = job.rank(1);
  wrong_size.size = 3;
  twice.rank = 0;
  same_slot.local_rank = 0;
  EXPECT_THAT(Job::Make(wrong_size)->Join(kLong).status().message(),
              HasSubstr("rank 1 of 3, but the world has 2 ranks"));
  EXPECT_THAT(Job::Make(twice)->Join(kLong).status().message(),
              HasSubstr("there is a rank 0 already, process"));
  EXPECT_THAT(Job::Make(same_slot)->Join(kLong).status().message(),
              HasSubstr("slot 0 is in use by process"));
  ExpectWorld(job.Join(), 1, 1);
  EXPECT_TRUE(job.AgentsEnd());
}

TEST(Adopt, WithoutHvdrunThereIsASentence) {
  Job job(2, 1, "", FreshJob(), "/nonexistent/hvdrun");
  for (const Result<World>& world : job.Join()) {
    EXPECT_THAT(world.status().message(), HasSubstr("/nonexistent/hvdrun"));
    EXPECT_THAT(world.status().message(), HasSubstr("set HVD_HVDRUN"));
  }
  Job broken(2, 1, "", FreshJob(), "/bin/false");
  for (const Result<World>& world : broken.Join())
    EXPECT_THAT(world.status().message(), HasSubstr("ended at once with status 1"));
}

TEST(Adopt, HostsMeetByAKeyValueServer) {
  HttpKvServer server;
  Job job(4, 2, server.server());
  for (uint64_t generation = 1; generation <= 5; ++generation) {
    std::vector<Result<World>> worlds = job.Join();
    ExpectWorld(worlds, generation, 2);
    std::string key = worlds[0]->data_key;
    EXPECT_EQ(key.size(), 64u);
    for (const Result<World>& world : worlds) {
      EXPECT_EQ(world->data_key, key);
      EXPECT_EQ(world->listen.addresses, std::vector<std::string>{"127.0.0.1"});
    }
    job.Leave(generation);
  }
  EXPECT_TRUE(job.AgentsEnd());
}

TEST(Adopt, HostsWhoseRanksKnowWhereAllAreNeedNoServer) {
  Job job(6, 3);
  for (uint64_t generation = 1; generation <= 3; ++generation) {
    ExpectWorld(job.Join(), generation, 3);
    job.Leave(generation);
  }
  EXPECT_TRUE(job.AgentsEnd());
}

// Hosts that differ from their neighbours make a run each, so that it takes several messages.
TEST(Adopt, ALongLayoutArrivesWhole) {
  constexpr uint32_t kHosts = 3 * kMaxRunsPerMessage + 1;
  std::vector<RankPlace> places;
  for (uint32_t host = 0; host < kHosts; ++host) {
    for (uint32_t local_rank = 0; local_rank <= host % 2; ++local_rank) {
      places.push_back({host, local_rank});
    }
  }
  const auto size = static_cast<uint32_t>(places.size());
  ExternalRank rank{"a test", FreshJob(), "", size - 1, size, 0, 1, ""};
  rank.layout = RunsOf(places);
  Result<World> world = Job::Make(rank)->Join(kLong);
  ASSERT_TRUE(world.ok()) << world.status().message();
  EXPECT_EQ(world->places, places);
  EXPECT_EQ(world->hosts, kHosts);
  EXPECT_EQ(world->cross_rank, kHosts - 1);
}

TEST(Adopt, ALayoutThatCannotBeIsRefused) {
  using Runs = std::vector<RankRun>;
  for (const Runs& runs : {Runs{}, Runs{{0, 0, 3}}, Runs{{0, 0, 2}}, Runs{{7, 0, 1}, {0, 0, 1}}}) {
    ExternalRank rank{"a test", FreshJob(), "", 1, 2, 0, 1, ""};
    rank.layout = runs;
    Result<World> world = Job::Make(rank)->Join(kLong);
    ASSERT_FALSE(world.ok());
    EXPECT_THAT(world.status().message(), HasSubstr("rank 1 sent a layout"));
  }
}

TEST(Adopt, TheDirectoryReachesOtherHosts) {
  HttpKvServer server;
  Job job(4, 2, server.server());
  for (uint64_t generation = 1; generation <= 2; ++generation) {
    ExpectWorld(job.Join(), generation, 2);
    std::string value(3000, static_cast<char>(generation));
    job.Each([&](uint32_t rank) {
      KvStore& directory = job.at(rank).directory();
      if (rank == 3) {
        EXPECT_TRUE(directory.Put("address/3", value).ok());
      }
      EXPECT_EQ(directory.Get("address/3", kLong).value(), value);
    });
    job.Leave(generation);
  }
  EXPECT_TRUE(job.AgentsEnd());
}

TEST(Adopt, ADeathBreaksTheWorldOnOtherHosts) {
  HttpKvServer server;
  Job job(4, 2, server.server());
  ExpectWorld(job.Join(), 1, 2);
  std::thread waits([&] {
    EXPECT_THAT(job.at(0).directory().Get("never", kLong).status().message(),
                ContainsRegex("on host host1 \\(pid [0-9]+\\) died in the middle of the job"));
  });
  job.Kill(3);
  waits.join();
  EXPECT_TRUE(job.AgentsEnd());
}

TEST(Adopt, WhatAnEarlierJobLeftInTheServerIsPassedOver) {
  HttpKvServer server;
  std::string name = FreshJob();
  for (int round = 0; round < 3; ++round) {
    Job job(4, 2, server.server(), name);
    ExpectWorld(job.Join(), 1, 2);
    job.Leave(1);
    EXPECT_TRUE(job.AgentsEnd());
  }
}

}  // namespace
}  // namespace hvd
