// Connections between ranks whose hosts do not reach each other: the switch and the probe by hand,
// the ends with ranks that are played by sockets of this process.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <string>
#include <vector>

#include "launcher/overlay/relay/relay_end.h"
#include "launcher/overlay/relay/relay_plan.h"
#include "launcher/overlay/relay/relay_switch.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/mesh/mesh_connector.h"
#include "runtime/net/mesh/mesh_handshake.h"

namespace hvd {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// ---- the switch

std::string Text(const ToAgent& message) {
  if (const auto* open = std::get_if<RelayOpen>(&message))
    return "open " + std::to_string(open->rank);
  if (const auto* data = std::get_if<RelayData>(&message)) return "data " + data->bytes;
  if (const auto* credit = std::get_if<RelayCredit>(&message))
    return "credit " + std::to_string(credit->bytes);
  return std::holds_alternative<RelayClose>(message) ? "close" : "other";
}

struct Desk {
  Desk() { relay.Allow(1, 2); }
  std::vector<std::string> said;  // "to 2: data x"
  RelaySwitch relay{[this](uint32_t host, const ToAgent& message) {
    said.push_back("to " + std::to_string(host) + ": " + Text(message));
  }};
  static constexpr uint64_t kId = (uint64_t{1} << 32) | 7;
};

TEST(RelaySwitch, PassesOnWhatTheTwoEndsSayToEachOther) {
  Desk desk;
  EXPECT_TRUE(desk.relay.Handle(1, RelayOpen{Desk::kId, 2, 5}).ok());
  EXPECT_TRUE(desk.relay.Handle(1, RelayData{Desk::kId, "there"}).ok());
  EXPECT_TRUE(desk.relay.Handle(2, RelayData{Desk::kId, "back"}).ok());
  EXPECT_TRUE(desk.relay.Handle(2, RelayCredit{Desk::kId, 5}).ok());
  EXPECT_TRUE(desk.relay.Handle(2, RelayClose{Desk::kId}).ok());
  EXPECT_THAT(desk.said, ElementsAre("to 2: open 5", "to 2: data there", "to 1: data back",
                                     "to 1: credit 5", "to 1: close"));
  EXPECT_EQ(desk.relay.connections(), 0u);
  desk.said.clear();
  EXPECT_TRUE(desk.relay.Handle(1, RelayData{Desk::kId, "crossed the end"}).ok());
  EXPECT_TRUE(desk.relay.Handle(1, RelayClose{Desk::kId}).ok());
  EXPECT_THAT(desk.said, IsEmpty());
}

TEST(RelaySwitch, AThirdHostHasNoPartInAConnection) {
  Desk desk;
  EXPECT_TRUE(desk.relay.Handle(1, RelayOpen{Desk::kId, 2, 5}).ok());
  desk.said.clear();
  EXPECT_TRUE(desk.relay.Handle(3, RelayData{Desk::kId, "x"}).ok());
  EXPECT_TRUE(desk.relay.Handle(3, RelayClose{Desk::kId}).ok());
  EXPECT_THAT(desk.said, IsEmpty());
}

TEST(RelaySwitch, OnlyWaysThatAreRelayedOpenAndOnlyUnderTheirOwnNumbers) {
  Desk desk;
  EXPECT_THAT(desk.relay.Handle(1, RelayOpen{Desk::kId, 3, 5}).message(), HasSubstr("not told to"));
  const uint64_t number_of_2 = (uint64_t{2} << 32) | 1;
  EXPECT_THAT(desk.relay.Handle(2, RelayOpen{number_of_2, 1, 0}).message(),
              HasSubstr("not told to"))
      << "the other direction";
  EXPECT_THAT(desk.relay.Handle(1, RelayOpen{number_of_2, 2, 5}).message(), HasSubstr("number"));
  EXPECT_TRUE(desk.relay.Handle(1, RelayOpen{Desk::kId, 2, 5}).ok());
  EXPECT_THAT(desk.relay.Handle(1, RelayOpen{Desk::kId, 2, 5}).message(), HasSubstr("number"));
}

TEST(RelaySwitch, NoMoreThanTheWindowIsOnTheWay) {
  Desk desk;
  EXPECT_TRUE(desk.relay.Handle(1, RelayOpen{Desk::kId, 2, 5}).ok());
  const std::string piece(kRelayWindow / 4, 'x');
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(desk.relay.Handle(1, RelayData{Desk::kId, piece}).ok());
  EXPECT_THAT(desk.relay.Handle(2, RelayCredit{Desk::kId, kRelayWindow + 1}).message(),
              HasSubstr("did not get"));
  EXPECT_TRUE(desk.relay.Handle(2, RelayCredit{Desk::kId, piece.size()}).ok());
  EXPECT_TRUE(desk.relay.Handle(1, RelayData{Desk::kId, piece}).ok());
  EXPECT_THAT(desk.relay.Handle(1, RelayData{Desk::kId, "1"}).message(), HasSubstr("credit"));
}

TEST(RelaySwitch, AHostThatIsGoneEndsItsConnectionsAtTheirOtherEnds) {
  Desk desk;
  desk.relay.Allow(3, 1);
  const uint64_t from_3 = (uint64_t{3} << 32) | 1;
  EXPECT_TRUE(desk.relay.Handle(1, RelayOpen{Desk::kId, 2, 5}).ok());
  EXPECT_TRUE(desk.relay.Handle(3, RelayOpen{from_3, 1, 0}).ok());
  desk.said.clear();
  desk.relay.HostGone(1);
  EXPECT_THAT(desk.said, ElementsAre("to 2: close", "to 3: close"));
  EXPECT_EQ(desk.relay.connections(), 0u);
}

// ---- the probe

TEST(RelayProbe, MeasuresLatencyAndThenSpeedOnAWayOfAKnownSpeed) {
  ManualClock clock;
  RelayProbe probe(clock.Now());
  const Duration latency = milliseconds(2);
  const double bytes_per_ms = 10'000;  // 10 MB/s
  while (!probe.over(clock.Now())) {
    uint64_t sent = 0;
    while (size_t bytes = probe.Next(clock.Now())) sent += bytes;
    ASSERT_LE(sent, kRelayWindow);
    ASSERT_GT(sent, 0u) << "it must not wait when everything has come back";
    clock.Advance(latency +
                  std::chrono::duration_cast<Duration>(std::chrono::duration<double, std::milli>(
                      static_cast<double>(sent) / bytes_per_ms)));
    probe.Arrived(sent, clock.Now());
  }
  RelayMeasured measured = probe.result();
  EXPECT_EQ(measured.trouble, "");
  EXPECT_NEAR(static_cast<double>(measured.latency_ns), 2e6, 1e4);
  EXPECT_NEAR(static_cast<double>(measured.bytes) / static_cast<double>(measured.elapsed_ns) * 1e3,
              10, 2);
  EXPECT_LE(clock.Now() - TimePoint{}, seconds(1));
}

TEST(RelayProbe, ASlowWayIsNotFilledForSeconds) {
  ManualClock clock;
  RelayProbe probe(clock.Now());
  while (!probe.over(clock.Now())) {  // 100 kB/s
    uint64_t sent = 0;
    while (size_t bytes = probe.Next(clock.Now())) sent += bytes;
    clock.Advance(milliseconds(5) + std::chrono::microseconds(10 * sent));
    probe.Arrived(sent, clock.Now());
  }
  EXPECT_LE(clock.Now() - TimePoint{}, seconds(2));
  EXPECT_GT(probe.result().bytes, 0u);
}

TEST(RelayProbe, NothingThatComesBackIsATroubleInTheEnd) {
  ManualClock clock;
  RelayProbe probe(clock.Now());
  EXPECT_EQ(probe.Next(clock.Now()), 1u);
  EXPECT_EQ(probe.Next(clock.Now()), 0u);
  clock.Advance(RelayProbe::kLimit - milliseconds(1));
  EXPECT_FALSE(probe.over(clock.Now()));
  clock.Advance(milliseconds(1));
  EXPECT_TRUE(probe.over(clock.Now()));
  EXPECT_THAT(probe.result().trouble, HasSubstr("in 10 s"));
}

// ---- the plan

BlockedRoute Way(uint32_t from, uint32_t to) {
  return {from,
          to,
          "it cannot reach it (refused)" + std::string(kReachAdvice),
          {to, 1'000'000, 1'000'000'000, 3'400'000, ""},
          true};
}

TEST(RelayPlan, TheWarningSaysWhoAndWhyAndHowFastOnce) {
  const std::vector<std::string> names = {"a", "b", "c", "d"};
  std::string both = RelayWarning({Way(1, 2), Way(2, 1)}, names, 4);
  EXPECT_THAT(both, HasSubstr("hosts b and c do not reach each other. The data"));
  EXPECT_THAT(both,
              HasSubstr("at 2.0 MB/s in all (measured; 3.4 ms there and back). Host b says: it "
                        "cannot reach it (refused). To make it faster"));
  EXPECT_THAT(RelayWarning({Way(2, 1)}, names, 4),
              HasSubstr("host c does not reach host b. The data"));
  EXPECT_THAT(
      RelayWarning({Way(0, 1), Way(1, 0), Way(0, 3)}, names, 4),
      HasSubstr("hosts a and b do not reach each other; and host a does not reach host d."));
  std::vector<BlockedRoute> all;
  for (uint32_t from = 0; from < 4; ++from) {
    for (uint32_t to = 0; to < 4; ++to) {
      if (from != to) all.push_back(Way(from, to));
    }
  }
  EXPECT_THAT(RelayWarning(all, names, 4),
              HasSubstr("none of the 4 hosts reaches another. The data"));
  all.pop_back();
  EXPECT_THAT(RelayWarning(all, names, 4), HasSubstr("; and 2 more pairs. The data"));
}

TEST(RelayPlan, RelayedWhereEveryPairWasTriedAndNotWithoutThat) {
  EXPECT_EQ(ReasonNotRelayed(true, 16), "");
  EXPECT_THAT(ReasonNotRelayed(true, 17), HasSubstr("more than 16 hosts"));
  EXPECT_THAT(ReasonNotRelayed(false, 2), HasSubstr("--relay never"));
  std::string trouble = TroubleOfBlocked({Way(0, 1), Way(1, 0), Way(0, 2)}, 0, "why not");
  EXPECT_EQ(trouble, "it cannot reach it (refused); it cannot reach it (refused)" +
                         std::string(kReachAdvice) + "; why not");
}

// ---- the ends

int ConnectTo(const std::string& endpoint) {
  Result<MeshAddress> address = ParseMeshEndpoint(endpoint);
  EXPECT_TRUE(address.ok());
  int fd = ::socket(address->family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  (void)::connect(fd, address->get(), address->length);
  return fd;
}

// Two agents, the switch between them, and what ranks 0 (here, on host 0) and 1 (there, on host 1)
// do.
struct World {
  static constexpr const char* kKey = "the key of the job";

  World() {
    relay.Allow(0, 1);
    for (RelayEnd* end : {&here, &there}) {
      end->SetWorld(kKey, {{0, 0}, {1, 0}});
      end->BeginGeneration(3);
    }
    Result<MeshListener> opened = OpenMeshListener({{"127.0.0.1"}, 0, 0}, 1);
    EXPECT_TRUE(opened.ok());
    listener = std::move(*opened);
    record = EncodeMeshRecord(listener.record);
    there.NoteEntry(3, "mesh.1", record);
  }

  // A message of host `from` goes through the switch, after the call it was said in, as over a
  // stream.
  RelayEnd::Send From(uint32_t from) {
    return [this, from](const ToDriver& message) {
      asio::post(io, [this, from, message] {
        if (const auto* m = std::get_if<RelayOpen>(&message)) Check(relay.Handle(from, *m));
        if (const auto* m = std::get_if<RelayData>(&message)) Check(relay.Handle(from, *m));
        if (const auto* m = std::get_if<RelayClose>(&message)) Check(relay.Handle(from, *m));
        if (const auto* m = std::get_if<RelayCredit>(&message)) Check(relay.Handle(from, *m));
        if (const auto* m = std::get_if<RelayMeasured>(&message)) measured.push_back(*m);
      });
    };
  }
  void Check(const Status& status) { EXPECT_TRUE(status.ok()) << status.message(); }
  void Deliver(uint32_t to, const ToAgent& message) {
    RelayEnd& end = to == 0 ? here : there;
    if (const auto* m = std::get_if<RelayOpen>(&message)) end.Handle(*m);
    if (const auto* m = std::get_if<RelayData>(&message)) end.Handle(*m);
    if (const auto* m = std::get_if<RelayClose>(&message)) end.Handle(*m);
    if (const auto* m = std::get_if<RelayCredit>(&message)) end.Handle(*m);
  }
  // Runs the agents until it is so.
  bool Until(const std::function<bool()>& condition) {
    bool met = false;
    for (int turn = 0; turn < 5000 && !(met = condition()); ++turn) {
      io.restart();
      io.run_for(milliseconds(2));
    }
    return met;
  }
  // A connection from rank 0 to rank 1, from the hello on.
  void Connect() {
    here.Use({0, {1}});
    ASSERT_TRUE(Until([&] { return !measured.empty(); }));
    Result<MeshRecord> told = DecodeMeshRecord(here.ValueFor(3, "mesh.1", record));
    ASSERT_TRUE(told.ok());
    EXPECT_EQ(told->machine, ThisMachine());
    rank_0.Reset(ConnectTo(told->endpoints.at(0)));
    MeshInitiator initiator({kKey, 3, 0}, 1);
    hello = initiator.hello();
    ASSERT_TRUE(Until([&] { return Send(rank_0, hello) == hello.size(); }));
    ASSERT_TRUE(Until([&] {
      rank_1.Reset(::accept4(listener.sockets[0].get(), nullptr, nullptr, SOCK_NONBLOCK));
      return rank_1.valid();
    }));
    EXPECT_EQ(ReadSome(rank_1, hello.size()), hello) << "the hello is the rank's to check";
  }
  static size_t Send(const UniqueFd& fd, const std::string& bytes) {
    ssize_t sent = ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    return sent < 0 ? 0 : static_cast<size_t>(sent);
  }
  // Exactly so many bytes, or what came before the end.
  std::string ReadSome(const UniqueFd& fd, size_t count) {
    std::string all;
    ended = false;
    Until([&] {
      std::string bytes(count - all.size(), '\0');
      ssize_t got = ::recv(fd.get(), bytes.data(), bytes.size(), 0);
      if (got > 0) all.append(bytes, 0, static_cast<size_t>(got));
      ended = got == 0 || (got < 0 && errno == ECONNRESET);
      return ended || all.size() == count;
    });
    return all;
  }
  bool Ends(const UniqueFd& fd) {
    ReadSome(fd, 1);
    return ended;
  }

  asio::io_context io;
  std::vector<RelayMeasured> measured;
  RelaySwitch relay{[this](uint32_t to, const ToAgent& message) { Deliver(to, message); }};
  RelayEnd here{io, From(0)}, there{io, From(1)};
  MeshListener listener;
  std::string record, hello;
  UniqueFd rank_0, rank_1;
  bool ended = false;
};

TEST(RelayEnd, ARankMeetsAnotherThroughTheDriverAndTheWayIsMeasured) {
  World world;
  world.Connect();
  EXPECT_GT(world.measured.at(0).bytes, 0u);
  EXPECT_GT(world.measured.at(0).latency_ns, 0);
  EXPECT_EQ(world.measured.at(0).host, 1u);
  EXPECT_EQ(World::Send(world.rank_1, "welcome"), 7u);
  EXPECT_EQ(world.ReadSome(world.rank_0, 7), "welcome");
  EXPECT_EQ(World::Send(world.rank_0, "thanks"), 6u);
  EXPECT_EQ(world.ReadSome(world.rank_1, 6), "thanks");
  EXPECT_EQ(world.relay.connections(), 1u);
}

TEST(RelayEnd, ManyBytesArriveInOrderAndNoMoreThanTheWindowIsOnTheWay) {
  World world;
  world.Connect();
  constexpr size_t kBytes = 8 << 20;
  std::string sent(kBytes, '\0');
  for (size_t i = 0; i < kBytes; ++i) sent[i] = static_cast<char>(i * 31 + i / 997);
  std::string got;
  size_t used = 0;
  EXPECT_TRUE(world.Until([&] {
    used += World::Send(world.rank_0, sent.substr(used, 100'000));
    if (used > kBytes / 4 && got.size() + 500'000 < used) {  // a slow reader
      std::string bytes(50'000, '\0');
      ssize_t n = ::recv(world.rank_1.get(), bytes.data(), bytes.size(), 0);
      if (n > 0) got.append(bytes, 0, static_cast<size_t>(n));
    }
    return used == kBytes;
  }));
  got += world.ReadSome(world.rank_1, kBytes - got.size());
  EXPECT_TRUE(got == sent);  // the switch has checked the window
}

TEST(RelayEnd, AnEndIsPassedOnBehindTheLastBytes) {
  for (bool opener_ends : {true, false}) {
    World world;
    world.Connect();
    UniqueFd& one = opener_ends ? world.rank_0 : world.rank_1;
    UniqueFd& other = opener_ends ? world.rank_1 : world.rank_0;
    EXPECT_EQ(World::Send(one, "bye"), 3u);
    one.Reset();
    EXPECT_EQ(world.ReadSome(other, 3), "bye");
    EXPECT_TRUE(world.Ends(other));
    EXPECT_EQ(world.relay.connections(), 0u);
  }
}

TEST(RelayEnd, ALostHostEndsTheConnection) {
  World world;
  world.Connect();
  world.relay.HostGone(1);
  EXPECT_TRUE(world.Ends(world.rank_0));
}

TEST(RelayEnd, WhoCannotProveTheKeyIsClosedOnAndNobodyHearsOfIt) {
  World world;
  world.here.Use({0, {1}});
  ASSERT_TRUE(
      world.Until([&] { return !world.measured.empty() && world.relay.connections() == 0; }));
  Result<MeshRecord> told = DecodeMeshRecord(world.here.ValueFor(3, "mesh.1", world.record));
  for (const MeshInitiator& initiator :
       {MeshInitiator({"another key", 3, 0}, 1), MeshInitiator({World::kKey, 4, 0}, 1),
        MeshInitiator({World::kKey, 3, 0}, 2)}) {
    UniqueFd stranger(ConnectTo(told->endpoints.at(0)));
    ASSERT_TRUE(world.Until([&] { return World::Send(stranger, initiator.hello()) > 0; }));
    EXPECT_TRUE(world.Ends(stranger));
  }
  EXPECT_EQ(world.relay.connections(), 0u);
}

TEST(RelayEnd, OnlyWhatIsBlockedIsRelayedAndOnlyForTheGeneration) {
  World world;
  EXPECT_EQ(world.here.ValueFor(3, "mesh.1", world.record), world.record) << "no relay is needed";
  world.here.Use({0, {1}});
  std::string told = world.here.ValueFor(3, "mesh.1", world.record);
  EXPECT_NE(told, world.record);
  EXPECT_EQ(world.here.ValueFor(3, "mesh.1", world.record), told);
  EXPECT_EQ(world.here.ValueFor(3, "mesh.0", world.record), world.record) << "a rank of this host";
  EXPECT_EQ(world.here.ValueFor(3, "other.1", "x"), "x");
  world.here.BeginGeneration(4);
  EXPECT_EQ(world.here.ValueFor(3, "mesh.1", world.record), world.record) << "another generation";
  UniqueFd late(ConnectTo(DecodeMeshRecord(told)->endpoints.at(0)));
  EXPECT_TRUE(world.Until([&] { return World::Send(late, "x") == 0 && errno == EPIPE; }) ||
              world.Ends(late));
}

TEST(RelayEnd, ARankThatHasNoListenerIsAnEnd) {
  World world;
  world.there.BeginGeneration(4);
  world.here.Use({0, {1}});
  Result<MeshRecord> told = DecodeMeshRecord(world.here.ValueFor(3, "mesh.1", world.record));
  UniqueFd rank(ConnectTo(told->endpoints.at(0)));
  MeshInitiator initiator({World::kKey, 3, 0}, 1);
  ASSERT_TRUE(world.Until([&] { return World::Send(rank, initiator.hello()) > 0; }));
  EXPECT_TRUE(world.Ends(rank));
}

}  // namespace
}  // namespace hvd
