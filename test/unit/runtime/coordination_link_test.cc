#include "runtime/backends/hosts/coordination/coordination_link.h"

#include <gtest/gtest.h>

#include <vector>

#include "test/fakes/refusing_inter_host_comm.h"

namespace hvd {
namespace {

// Keeps what is sent.
class RecordingComm final : public test::RefusingInterHostComm {
 public:
  std::string_view name() const override { return "recording"; }
  Status Send(uint32_t, uint64_t, std::span<const std::byte> bytes, TimePoint) override {
    if (!failure.ok()) return failure;
    sent.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status::Ok();
  }
  Result<InterHostMessage> Receive(uint32_t, uint64_t, TimePoint) override {
    return Status(Code::kInProgress, "nothing");
  }
  void Wake() override {}
  void Abort(const Status&) override {}

  Status failure;
  std::vector<std::string> sent;
};

class CoordinationLinkTest : public ::testing::Test {
 protected:
  // The message that these pieces of rank 1 make; nothing when pieces are missing.
  std::optional<CoordinationLink::Received> Assemble(const std::vector<std::string>& pieces) {
    std::optional<CoordinationLink::Received> whole;
    for (const std::string& piece : pieces) {
      EXPECT_FALSE(whole.has_value()) << "it was whole before its last piece";
      auto received = link_.Assemble({1, piece});
      EXPECT_TRUE(received.ok()) << received.status().message();
      if (received.ok()) whole = std::move(*received);
    }
    return whole;
  }

  RecordingComm comm_;
  CoordinationLink link_{comm_, 0, kNoLimit};
};

TEST_F(CoordinationLinkTest, AShortMessageIsOnePiece) {
  ASSERT_TRUE(link_.Send(1, WithdrawMessage{7, "no memory"}).ok());
  ASSERT_EQ(comm_.sent.size(), 1u);
  const auto received = Assemble(comm_.sent);
  ASSERT_TRUE(received.has_value());
  EXPECT_EQ(received->first, 1u);
  EXPECT_EQ(std::get<WithdrawMessage>(received->second).why, "no memory");
}

TEST_F(CoordinationLinkTest, AMessageOfAnyLengthArrivesWhole) {
  for (size_t bytes : {kMaxInterHostMessage - 64, kMaxInterHostMessage, 3 * kMaxInterHostMessage}) {
    comm_.sent.clear();
    const std::string why(bytes, 'x');
    ASSERT_TRUE(link_.Send(1, WithdrawMessage{7, why}).ok());
    for (const std::string& piece : comm_.sent) EXPECT_LE(piece.size(), kMaxInterHostMessage);
    EXPECT_EQ(comm_.sent.size() > 1, bytes >= kMaxInterHostMessage);
    const auto received = Assemble(comm_.sent);
    ASSERT_TRUE(received.has_value()) << bytes;
    EXPECT_EQ(std::get<WithdrawMessage>(received->second).why, why);
  }
}

TEST_F(CoordinationLinkTest, PiecesOfDifferentSendersAreKeptApart) {
  const std::string why(2 * kMaxInterHostMessage, 'x');
  ASSERT_TRUE(link_.Send(1, WithdrawMessage{7, why}).ok());
  const std::vector<std::string> pieces = comm_.sent;
  for (size_t i = 0; i < pieces.size(); ++i) {
    for (uint32_t sender : {1u, 2u}) {
      auto received = link_.Assemble({sender, pieces[i]});
      ASSERT_TRUE(received.ok());
      EXPECT_EQ(received->has_value(), i + 1 == pieces.size());
    }
  }
}

TEST_F(CoordinationLinkTest, AMessageToThisProcessTravelsOverNothing) {
  ASSERT_TRUE(link_.Send(0, LeaveMessage{3}).ok());
  ASSERT_TRUE(link_.Send(0, LeaveMessage{4}).ok());
  EXPECT_TRUE(comm_.sent.empty());
  EXPECT_EQ(std::get<LeaveMessage>(link_.PopLocal()->second).rank, 3u);
  EXPECT_EQ(std::get<LeaveMessage>(link_.PopLocal()->second).rank, 4u);
  EXPECT_FALSE(link_.PopLocal().has_value());
}

TEST_F(CoordinationLinkTest, ADamagedMessageIsASentenceThatNamesItsSender) {
  EXPECT_FALSE(link_.Assemble({1, ""}).ok());
  const auto damaged = link_.Assemble({1, std::string("rubbish") + '\0'});
  ASSERT_FALSE(damaged.ok());
  EXPECT_NE(damaged.status().message().find("rank 1 sent"), std::string::npos);
}

TEST_F(CoordinationLinkTest, AFailedSendIsReturned) {
  comm_.failure = Aborted("rank 1 is gone");
  EXPECT_EQ(link_.Send(1, LeaveMessage{3}).message(), "rank 1 is gone");
}

}  // namespace
}  // namespace hvd
