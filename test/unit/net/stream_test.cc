#include "runtime/net/stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

StreamOptions Options(uint64_t window = 1 << 20) {
  StreamOptions options;
  options.job = 99;
  options.log_window_bytes = window;
  return options;
}

// Two ends and the connection between them, moved by hand.
struct Pair {
  explicit Pair(uint64_t window = 1 << 20) : a(Options(window)), b(Options(window)) { Connect(); }

  void Connect() {
    a.Attach(clock.Now());
    b.Attach(clock.Now());
  }
  void Cut() {
    a.Detach();
    b.Detach();
  }
  // Moves at most `limit` bytes one way; returns how many went.
  size_t Move(Stream& from, Stream& to, size_t limit) {
    std::string bytes(from.Outgoing().substr(0, limit));
    from.Consume(bytes.size());
    Status status = to.Receive(bytes, clock.Now());
    EXPECT_TRUE(status.ok()) << status.message();
    return bytes.size();
  }
  void MoveAll() {
    while (Move(a, b, SIZE_MAX) + Move(b, a, SIZE_MAX) > 0) {
    }
  }
  static std::vector<std::string> Received(Stream& stream) {
    std::vector<std::string> all;
    while (std::optional<StreamMessage> message = stream.Next()) all.push_back(message->bytes);
    return all;
  }

  ManualClock clock;
  Stream a, b;
};

TEST(Stream, DeliversInOrderWithTheSendersGeneration) {
  Pair pair;
  pair.a.SendControl("one");
  pair.a.set_epoch(4);
  pair.a.SendControl("two");
  pair.MoveAll();
  std::optional<StreamMessage> one = pair.b.Next(), two = pair.b.Next();
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->bytes, "one");
  EXPECT_EQ(one->generation, 0u);
  EXPECT_EQ(two->bytes, "two");
  EXPECT_EQ(two->generation, 4u);
  EXPECT_FALSE(pair.b.Next());
}

TEST(Stream, NothingNumberedIsSentBeforeTheOtherSideSaidHello) {
  Pair pair;
  pair.a.SendControl("early");
  std::string hello(pair.a.Outgoing());
  EXPECT_EQ(hello.size(), kFrameHeaderBytes + 12);
}

TEST(Stream, LongControlIsCutIntoFramesAndPutTogetherAgain) {
  Pair pair;
  std::string environment(1'000'000, 'e');
  pair.a.SendControl(environment);
  pair.a.SendControl("");
  pair.MoveAll();
  EXPECT_THAT(Pair::Received(pair.b), ElementsAre(environment, ""));
}

TEST(Stream, ControlOvertakesLogsThatWereNotSentYet) {
  Pair pair;
  pair.MoveAll();
  for (int i = 0; i < 10; ++i) pair.a.SendLog(std::string(60'000, 'l'));
  pair.Move(pair.a, pair.b, 1000);  // the wire is filled with logs now
  pair.a.SendControl("urgent");
  pair.MoveAll();
  std::vector<std::string> all = Pair::Received(pair.b);
  ASSERT_EQ(all.size(), 11u);
  size_t place = std::find(all.begin(), all.end(), "urgent") - all.begin();
  EXPECT_LE(place, 4u) << "of 11";
}

TEST(Stream, BulkKeepsItsOrderTakesTurnsWithLogsAndStandsBehindControl) {
  Pair pair;
  pair.MoveAll();
  for (int i = 0; i < 10; ++i) {
    pair.a.SendBulk(std::to_string(i) + std::string(60'000, 'b'));
    pair.a.SendLog(std::string(60'000, 'l'));
  }
  pair.Move(pair.a, pair.b, 1000);
  pair.a.SendControl("urgent");
  pair.MoveAll();
  std::vector<std::string> all = Pair::Received(pair.b);
  ASSERT_EQ(all.size(), 21u);
  EXPECT_LE(std::find(all.begin(), all.end(), "urgent") - all.begin(), 4) << "of 21";
  std::string order;
  size_t logs_in_front = 0;
  for (const std::string& message : all) {
    if (message == "urgent") continue;
    if (message[0] != 'l') order += message[0];
    logs_in_front += order.size() < 5 && message[0] == 'l';
  }
  EXPECT_EQ(order, "0123456789");
  EXPECT_GE(logs_in_front, 3u) << "logs are not kept waiting by bulk";
}

TEST(Stream, BulkGoesOnWhereLogsWaitForCredit) {
  Pair pair(1000);
  pair.MoveAll();
  for (int i = 0; i < 3; ++i) pair.a.SendLog(std::string(900, 'l'));
  for (int i = 0; i < 3; ++i) pair.a.SendBulk("bulk");
  pair.MoveAll();
  EXPECT_EQ(Pair::Received(pair.b).size(), 4u) << "one log, all of the bulk";
  EXPECT_TRUE(pair.a.LogsHeld());
}

TEST(Stream, LogsStopWithoutCreditAndGoOnWithIt) {
  Pair pair(1000);
  pair.MoveAll();
  for (int i = 0; i < 4; ++i) pair.a.SendLog(std::string(400, 'l'));
  pair.MoveAll();
  EXPECT_TRUE(pair.a.LogsHeld());
  EXPECT_EQ(Pair::Received(pair.b).size(), 2u);
  pair.a.SendControl("control needs no credit");
  pair.MoveAll();
  EXPECT_EQ(Pair::Received(pair.b).size(), 1u);
  pair.b.ReturnCredit(800);
  pair.MoveAll();
  EXPECT_FALSE(pair.a.LogsHeld());
  EXPECT_EQ(Pair::Received(pair.b).size(), 2u);
}

TEST(Stream, MoreLogBytesThanGrantedAreAnError) {
  Pair pair(1000);
  pair.MoveAll();
  std::string frame;
  FrameHeader header;
  header.type = FrameType::kLog;
  header.job = 99;
  header.sequence = 1;
  AppendFrame(frame, header, std::string(1001, 'l'));
  EXPECT_THAT(pair.b.Receive(frame, pair.clock.Now()).message(), HasSubstr("granted"));
}

// The connection breaks after every possible number of bytes in either direction; nothing is lost
// or doubled.
TEST(Stream, ResumesAfterACutAtEveryByte) {
  constexpr size_t kBytes = 700;
  for (size_t cut_ab = 0; cut_ab < kBytes; ++cut_ab) {
    size_t cut_ba = (cut_ab * 7) % 200;
    Pair pair;
    std::vector<std::string> got_a, got_b;
    for (int i = 0; i < 5; ++i) {
      pair.a.SendControl("c" + std::to_string(i));
      pair.a.SendLog("l" + std::to_string(i));
      pair.b.SendControl("r" + std::to_string(i));
    }
    size_t ab = 0, ba = 0;
    for (bool moved = true; moved;) {
      size_t x = pair.Move(pair.a, pair.b, std::min<size_t>(cut_ab - ab, 33));
      size_t y = pair.Move(pair.b, pair.a, std::min<size_t>(cut_ba - ba, 33));
      ab += x, ba += y;
      moved = x + y > 0;
    }
    pair.Cut();
    pair.Connect();
    pair.MoveAll();
    pair.a.Acknowledge();
    pair.b.Acknowledge();
    pair.MoveAll();
    std::vector<std::string> control, log;
    while (std::optional<StreamMessage> m = pair.b.Next())
      (m->log ? log : control).push_back(m->bytes);
    ASSERT_THAT(control, ElementsAre("c0", "c1", "c2", "c3", "c4")) << "cut after " << cut_ab;
    ASSERT_THAT(log, ElementsAre("l0", "l1", "l2", "l3", "l4")) << "cut after " << cut_ab;
    ASSERT_THAT(Pair::Received(pair.a), ElementsAre("r0", "r1", "r2", "r3", "r4"));
    ASSERT_TRUE(pair.a.AllAcknowledged() && pair.b.AllAcknowledged());
  }
}

TEST(Stream, ResumesInTheMiddleOfALongMessageAndKeepsItsCredit) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    Pair pair(100'000);
    std::string sent, got;
    for (int i = 0; i < 12; ++i) pair.a.SendLog(std::string(20'000, static_cast<char>('a' + i)));
    for (int i = 0; i < 12; ++i) sent += std::string(20'000, static_cast<char>('a' + i));
    while (got.size() < sent.size()) {
      pair.Move(pair.a, pair.b, random() % 50'000);
      pair.Move(pair.b, pair.a, random() % 100);
      for (const std::string& piece : Pair::Received(pair.b)) {
        got += piece;
        pair.b.ReturnCredit(piece.size());
      }
      if (random() % 5 != 0) continue;
      pair.Cut();
      pair.Connect();
    }
    ASSERT_EQ(got, sent) << "round " << round;
  }
}

TEST(Stream, HeartbeatsComeWhenNothingElseIsSaidAndCarryAcknowledgements) {
  Pair pair;
  pair.a.SendControl("x");
  pair.MoveAll();
  EXPECT_FALSE(pair.a.AllAcknowledged());
  pair.b.Tick(pair.clock.Now());
  EXPECT_TRUE(pair.b.Outgoing().empty()) << "not due yet";
  pair.clock.Advance(std::chrono::seconds(3));
  pair.b.Tick(pair.clock.Now());
  pair.MoveAll();
  EXPECT_TRUE(pair.a.AllAcknowledged());
  EXPECT_EQ(pair.a.last_heard(), pair.clock.Now());
}

TEST(Stream, TicksOnWithoutAConnectionAndSaysNothing) {
  Pair pair;
  pair.MoveAll();
  pair.Cut();
  pair.clock.Advance(std::chrono::seconds(3));
  pair.a.Tick(pair.clock.Now());
  EXPECT_GT(pair.a.NextTick(), pair.clock.Now()) << "its owner would tick without a pause";
  EXPECT_TRUE(pair.a.Outgoing().empty());
}

TEST(Stream, TheReceiverAcknowledgesALongFlowWithoutBeingAsked) {
  Pair pair(10 << 20);
  for (int i = 0; i < 40; ++i) pair.a.SendLog(std::string(60'000, 'x'));
  pair.MoveAll();
  pair.b.Acknowledge();
  pair.MoveAll();
  EXPECT_TRUE(pair.a.AllAcknowledged());
}

std::string FrameOf(FrameType type, uint64_t job, uint64_t sequence, uint64_t ack,
                    std::string_view payload) {
  FrameHeader header;
  header.type = type;
  header.job = job;
  header.sequence = sequence;
  header.ack = ack;
  std::string bytes;
  AppendFrame(bytes, header, payload);
  return bytes;
}

TEST(Stream, AFrameThatIsSentAgainIsReceivedOnce) {
  Pair pair;
  pair.MoveAll();
  const std::string frame = FrameOf(FrameType::kControl, 99, 1, 0, "once");
  for (int times = 0; times < 2; ++times) {
    const Status received = pair.b.Receive(frame, pair.clock.Now());
    EXPECT_TRUE(received.ok()) << received.message();
  }
  EXPECT_THAT(Pair::Received(pair.b), ElementsAre("once"));
}

TEST(Stream, EveryBreachOfTheProtocolIsOneSentence) {
  struct Case {
    const char* what;
    std::string bytes;
  };
  std::vector<Case> cases = {
      {"another job", FrameOf(FrameType::kControl, 1, 1, 0, "")},
      {"missing", FrameOf(FrameType::kControl, 99, 2, 0, "")},
      {"never sent", FrameOf(FrameType::kControl, 99, 1, 5, "")},
      {"second hello", FrameOf(FrameType::kHello, 99, 0, 0, std::string(12, '\0'))},
      {"wrong length", FrameOf(FrameType::kCredit, 99, 0, 0, "abc")},
  };
  for (const Case& c : cases) {
    Pair pair;
    pair.MoveAll();
    EXPECT_THAT(pair.b.Receive(c.bytes, pair.clock.Now()).message(), HasSubstr(c.what));
  }
  Stream fresh(Options());
  fresh.Attach({});
  EXPECT_THAT(fresh.Receive(FrameOf(FrameType::kControl, 99, 1, 0, ""), {}).message(),
              HasSubstr("before the hello"));
  Stream other(Options());
  other.Attach({});
  std::string version_9("\x09\0\0\0\0\0\0\0\0\0\0\0", 12);
  EXPECT_THAT(other.Receive(FrameOf(FrameType::kHello, 99, 0, 0, version_9), {}).message(),
              HasSubstr("version 9"));
}

TEST(Stream, GarbageIsAnErrorNeverACrash) {
  std::mt19937 random(20240503);
  for (int round = 0; round < 500; ++round) {
    Pair pair;
    pair.a.SendControl("hello there");
    pair.a.SendLog("log");
    pair.MoveAll();
    pair.a.SendControl(std::string(300, 'x'));
    std::string bytes(pair.a.Outgoing());
    for (int i = 0; i < 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    if (Status status = pair.b.Receive(bytes, pair.clock.Now()); !status.ok()) {
      EXPECT_FALSE(status.message().empty());
    }
  }
}

}  // namespace
}  // namespace hvd
