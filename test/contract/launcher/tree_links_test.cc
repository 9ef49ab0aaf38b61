// The connections between agents, over TCP: with somebody in the middle who changes what passes,
// and with an agent at the other end that holds the job's key and says what it may not.
#include "launcher/overlay/tree/tree_links.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <csignal>
#include <cstring>

#include "launcher/overlay/tree/tree_member.h"
#include "runtime/net/frame.h"
#include "runtime/net/sealed_records.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

constexpr uint32_t kParent = 0, kChild = 1;
constexpr size_t kHelloBytes = 92, kAnswerBytes = 64, kProofBytes = 32;
const std::string kKey = "the key of this job";
const std::string kCanary = "a word of the workers' that nobody else may read";

std::string NameOf(uint32_t host) { return "host " + std::to_string(host); }

MeshListener Listen() {
  Result<MeshListener> listener = OpenMeshListener({{"127.0.0.1"}, 0, 0}, kParent);
  EXPECT_TRUE(listener.ok());
  return std::move(*listener);
}

struct Observer final : TreeLinksObserver {
  Status OnFromAbove(const TreeDown& message) override {
    for (const TreeDownEntry& entry : message.entries) above.push_back(entry.message);
    return Status::Ok();
  }
  Status OnFromBelow(uint32_t, TreeUp batch) override {
    for (TreeUpEntry& entry : batch.entries) below.push_back(std::move(entry.message));
    return Status::Ok();
  }
  void OnAboveLost(const Status& why) override { lost.push_back(why); }
  void OnBelowLost(uint32_t, const Status& why) override { lost.push_back(why); }

  std::vector<std::string> above, below;
  std::vector<Status> lost;
};

// A record of one direction, and the bytes that go on instead of it.
using Meddle = std::function<std::vector<std::string>(size_t number, const std::string& record)>;

struct Meddling {
  const char* what;
  Meddle down, up;                 // none: untouched
  bool reflects_up = false;        // what comes down is sent back as well
  std::optional<size_t> cut_down;  // so much of the first record goes down, and then the end
};

// Stands between child and parent; sees every byte, and may change those after the handshake.
class InTheMiddle {
 public:
  InTheMiddle(MeshAddress parent, Meddling meddling)
      : parent_(parent), meddling_(std::move(meddling)), listener_(Listen()) {}

  std::vector<MeshAddress> address() const { return Reachable(listener_.record, ThisMachine()); }
  const std::string& seen() const { return seen_; }

  void Step() {
    if (!child_.valid()) {
      child_ = UniqueFd(::accept4(listener_.sockets[0].get(), nullptr, nullptr, SOCK_NONBLOCK));
      if (!child_.valid()) return;
      to_parent_ = UniqueFd(::socket(parent_.family(), SOCK_STREAM, 0));
      ASSERT_EQ(::connect(to_parent_.get(), parent_.get(), parent_.length), 0);
      ::fcntl(to_parent_.get(), F_SETFL, O_NONBLOCK);
    }
    if (over_) return;
    Carry(child_, to_parent_, up_, meddling_.up);
    Carry(to_parent_, child_, down_, meddling_.down);
  }

 private:
  struct Direction {
    size_t handshake;
    std::string bytes;
    size_t records = 0;
  };

  // The end that was reached has closed its connection, perhaps because of what it got.
  void Send(const UniqueFd& to, std::string_view bytes) {
    if (bytes.empty() || over_) return;
    const ssize_t sent = ::send(to.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(bytes.size())) End();
  }

  void End() {
    over_ = true;
    ::shutdown(child_.get(), SHUT_RDWR);
    ::shutdown(to_parent_.get(), SHUT_RDWR);
  }

  void Carry(const UniqueFd& from, const UniqueFd& to, Direction& direction, const Meddle& meddle) {
    std::array<char, 65536> room;
    ssize_t got = ::recv(from.get(), room.data(), room.size(), 0);
    if (got < 0) return;
    if (got == 0) return End();
    const std::string_view read(room.data(), static_cast<size_t>(got));
    seen_.append(read);
    direction.bytes.append(read);
    const size_t first = std::min(direction.handshake, direction.bytes.size());
    Send(to, std::string_view(direction.bytes).substr(0, first));
    direction.handshake -= first;
    direction.bytes.erase(0, first);
    while (!over_ && direction.bytes.size() >= 4) {
      uint32_t length = 0;
      std::memcpy(&length, direction.bytes.data(), 4);
      if (direction.bytes.size() < length + kRecordOverhead) return;
      const std::string record = direction.bytes.substr(0, length + kRecordOverhead);
      direction.bytes.erase(0, record.size());
      Pass(to, direction, meddle, record);
    }
  }

  void Pass(const UniqueFd& to, Direction& direction, const Meddle& meddle,
            const std::string& record) {
    if (&direction == &down_ && meddling_.cut_down) {
      Send(to, record.substr(0, *meddling_.cut_down));
      return End();
    }
    if (&direction == &down_ && meddling_.reflects_up) Send(to_parent_, record);
    if (!meddle) return Send(to, record);
    for (const std::string& instead : meddle(direction.records++, record)) Send(to, instead);
  }

  const MeshAddress parent_;
  const Meddling meddling_;
  MeshListener listener_;
  UniqueFd child_, to_parent_;
  Direction up_{kHelloBytes + kProofBytes, {}}, down_{kAnswerBytes, {}};
  std::string seen_;
  bool over_ = false;
};

class Links : public testing::Test {
 protected:
  static TreeLinksOptions OptionsOf(uint32_t host) { return {host, kKey, NameOf}; }

  // Parent and child, connected through the middle; each says three things as soon as it can.
  void Talk(const Meddling& meddling) {
    MeshListener listener = Listen();
    InTheMiddle middle(Reachable(listener.record, ThisMachine()).at(0), meddling);
    TreeLinks parent(io_, at_parent_, OptionsOf(kParent), std::move(listener));
    TreeLinks child(io_, at_child_, OptionsOf(kChild), {});
    parent.Expect({kChild});
    child.Dial(kParent, middle.address());
    for (uint64_t i = 0; i < 3; ++i) {
      down_.push_back(EncodeToAgent(KeyValue{i, "key", kCanary}));
      up_.push_back(EncodeToDriver(WorkerExited{1, 2, {true, 9}, 3, kCanary}));
    }
    size_t sent = 0;
    Until(middle, [&] {
      // One after the other has arrived, so that each is a record of its own.
      const bool ready = at_child_.above.size() >= sent && at_parent_.below.size() >= sent;
      if (ready && sent < 3) {
        parent.SendDown(kChild, {{{kChild, kChild + 1, down_[sent]}}});
        child.SendUp({{{kChild, up_[sent]}}});
        ++sent;
      }
      const bool all = at_child_.above.size() == 3 && at_parent_.below.size() == 3;
      return all || (!at_child_.lost.empty() && !at_parent_.lost.empty());
    });
    seen_ = middle.seen();
    parent.Close();
    child.Close();
    io_.poll();
  }

  template <typename Middle>
  void Until(Middle& middle, const std::function<bool()>& done) {
    const TimePoint limit = Soon();
    while (!done()) {
      ASSERT_LT(SteadyNow(), limit) << "nothing came of it";
      io_.run_for(std::chrono::milliseconds(1));
      io_.restart();
      middle.Step();
    }
  }

  static bool IsBeginOf(const std::vector<std::string>& some, const std::vector<std::string>& all) {
    return some.size() <= all.size() && std::equal(some.begin(), some.end(), all.begin());
  }

  asio::io_context io_{1};
  Observer at_parent_, at_child_;
  std::vector<std::string> down_, up_;
  std::string seen_;
};

TEST_F(Links, WhoIsInTheMiddleReadsNothing) {
  Talk({"untouched", {}, {}});
  EXPECT_EQ(at_child_.above, down_);
  EXPECT_EQ(at_parent_.below, up_);
  EXPECT_TRUE(at_child_.lost.empty() && at_parent_.lost.empty());
  EXPECT_GT(seen_.size(), 6 * kCanary.size());
  EXPECT_EQ(seen_.find(kCanary), seen_.npos);
  EXPECT_EQ(seen_.find(kKey), seen_.npos);
}

std::vector<Meddling> Meddlings() {
  auto flip = [](size_t which, size_t at_from_end) {
    return [=](size_t number, std::string record) {
      if (number == which) record[record.size() - 1 - at_from_end] ^= 1;
      return std::vector<std::string>{record};
    };
  };
  auto repeat = [](size_t number, const std::string& record) {
    return number == 1 ? std::vector<std::string>{record, record} : std::vector{record};
  };
  auto leave_out = [](size_t number, const std::string& record) {
    return number == 0 ? std::vector<std::string>{} : std::vector{record};
  };
  auto hold = std::make_shared<std::string>();
  auto swap = [hold](size_t number, const std::string& record) {
    if (number == 0) *hold = record;
    return number == 0   ? std::vector<std::string>{}
           : number == 1 ? std::vector{record, *hold}
                         : std::vector{record};
  };
  auto insert = [](size_t number, const std::string& record) {
    std::string plain;
    AppendFrame(plain, {.type = FrameType::kControl, .job = kChild, .sequence = 2},
                EncodeToAgent(TreeDown{{{kChild, kChild + 1, EncodeToAgent(BeginGeneration{9})}}}));
    return number == 1 ? std::vector<std::string>{plain, record} : std::vector{record};
  };
  return {{"a bit of the first record down", flip(0, 20), {}},
          {"a bit of a later record down", flip(1, 20), {}},
          {"a bit of the tag", flip(1, 0), {}},
          {"a bit of a record up", {}, flip(1, 30)},
          {"a record down again", repeat, {}},
          {"a record up again", {}, repeat},
          {"one record less down", leave_out, {}},
          {"one record less up", {}, leave_out},
          {"a frame that is not sealed", insert, {}},
          {"records that change places", swap, {}},
          {"records sent back to their sender", {}, {}, true}};
}

TEST_F(Links, WhateverIsChangedOnTheWayIsNoticed) {
  for (const Meddling& meddling : Meddlings()) {
    SCOPED_TRACE(meddling.what);
    at_parent_ = at_child_ = {};
    down_.clear();
    up_.clear();
    Talk(meddling);
    if (HasFatalFailure()) return;
    EXPECT_TRUE(IsBeginOf(at_child_.above, down_));
    EXPECT_TRUE(IsBeginOf(at_parent_.below, up_));
    ASSERT_EQ(at_child_.lost.size(), 1U);
    ASSERT_EQ(at_parent_.lost.size(), 1U);
    const bool by_child = at_child_.lost[0].code() == Code::kInvalidArgument;
    const bool by_parent = at_parent_.lost[0].code() == Code::kInvalidArgument;
    EXPECT_NE(by_child, by_parent) << "one refused it, the other lost its peer";
    EXPECT_EQ(by_parent, !meddling.down) << "the one to which it came";
    const Status& why = by_child ? at_child_.lost[0] : at_parent_.lost[0];
    EXPECT_NE(why.message().find("bytes that arrived"), std::string::npos) << why.message();
  }
}

TEST_F(Links, AnEndInTheMiddleOfARecordIsALoss) {
  for (size_t bytes : {0u, 1u, 4u, 20u, 60u}) {
    SCOPED_TRACE(bytes);
    at_parent_ = at_child_ = {};
    down_.clear();
    up_.clear();
    Talk({"cut", {}, {}, false, bytes});
    if (HasFatalFailure()) return;
    EXPECT_TRUE(at_child_.above.empty());
    ASSERT_EQ(at_child_.lost.size(), 1U);
    EXPECT_EQ(at_child_.lost[0].code(), Code::kAborted);
    EXPECT_EQ(at_parent_.lost.size(), 1U);
  }
}

// ---- an agent of the job that says what it may not

struct Nobody {
  void Step() {}
};

class Members : public Links {
 protected:
  // Three hosts in ones: 0 is above 1, 1 above 2. Rank r is on host r.
  static StartJob Start(uint32_t host) {
    StartJob start;
    start.job_key = kKey;
    start.ranks.size = 3;
    start.ranks.layout = {{0, 0, 1, 3}};
    start.tree.host = host;
    start.tree.hosts = 3;
    start.tree.radix = 1;
    return start;
  }

  TreeMember::Owner Hearing() {
    return {[this](const ToDriver& message) { told_.push_back(message); },
            [this](ToAgent message) { handled_.push_back(std::move(message)); }};
  }

  template <typename Message>
  std::vector<Message> Told() const {
    std::vector<Message> found;
    for (const ToDriver& message : told_) {
      if (const auto* m = std::get_if<Message>(&message)) found.push_back(*m);
    }
    return found;
  }

  std::vector<ToDriver> told_;
  std::vector<ToAgent> handled_;
  Nobody nobody_;
};

TEST_F(Members, AParentThatOrdersWhatOnlyTheDriverMayIsLeft) {
  MeshListener listener = Listen();
  StartJob start = Start(kChild);
  start.tree.above = EncodeMeshRecord(listener.record);
  TreeLinks hostile(io_, at_parent_, OptionsOf(kParent), std::move(listener));
  hostile.Expect({kChild});
  hostile.SendDown(kChild, {{{1, 3, EncodeToAgent(BeginGeneration{1})}}});
  hostile.SendDown(kChild, {{{1, 3, EncodeToAgent(SignalWorkers{SIGKILL})}}});
  TreeMember member(io_, Hearing());
  member.Join(start);
  Until(nobody_, [&] { return !at_parent_.lost.empty() && !Told<TreeCut>().empty(); });
  ASSERT_EQ(handled_.size(), 2U) << "the world that began, and the question after the loss";
  EXPECT_TRUE(std::holds_alternative<BeginGeneration>(handled_[0]));
  EXPECT_TRUE(std::holds_alternative<Resend>(handled_[1]));
  ASSERT_EQ(Told<AgentWarning>().size(), 1U);
  EXPECT_EQ(Told<AgentWarning>()[0].text,
            "it closed its connection to host 0 in the tree of agents: its agent sends a message "
            "that does not go down the tree");
  EXPECT_EQ(Told<TreeCut>().size(), 1U);
  // It goes on by itself.
  ASSERT_TRUE(member.Up(RankJoined{1}));
  Until(nobody_, [&] { return !Told<TreeUp>().empty(); });
  member.Close();
  hostile.Close();
}

TEST_F(Members, AChildThatSpeaksOfOthersRanksIsLeft) {
  TreeMember member(io_, Hearing());
  ProbeConnectivity question{kKey, kParent, {}, {}, {"lo"}};
  question.passes_on = 1;
  const std::string record = member.Listen(question);
  ASSERT_NE(record, "");
  member.Join(Start(kParent));
  TreeLinks hostile(io_, at_child_, OptionsOf(kChild), {});
  hostile.Dial(kParent, Reachable(*DecodeMeshRecord(record), ThisMachine()));
  hostile.SendUp({{{kChild, EncodeToDriver(WorkerStarted{1, 11})}}});
  hostile.SendUp({{{kChild, EncodeToDriver(WorkerExited{0, 10, {true, SIGSEGV}})}}});
  Until(nobody_, [&] { return !at_child_.lost.empty() && !Told<TreeUp>().empty(); });
  ASSERT_EQ(Told<TreeUp>().size(), 1U);
  ASSERT_EQ(Told<TreeUp>()[0].entries.size(), 1U);
  EXPECT_EQ(Told<TreeUp>()[0].entries[0].message, EncodeToDriver(WorkerStarted{1, 11}));
  ASSERT_EQ(Told<AgentWarning>().size(), 1U);
  EXPECT_EQ(Told<AgentWarning>()[0].text,
            "it closed its connection to host 1 in the tree of agents: its agent reported "
            "unknown rank 0");
  EXPECT_EQ(at_child_.lost[0].code(), Code::kAborted);
  member.Close();
  hostile.Close();
}

}  // namespace
}  // namespace hvd
