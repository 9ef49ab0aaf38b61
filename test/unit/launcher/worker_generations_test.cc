// The effects of the driver's messages on the generations of a host, and the news to the driver.
#include "launcher/agent/worker_generations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/launcher/no_processes.h"

namespace hvd {
namespace {

using testing::IsEmpty;

class WorkerGenerationsTest : public testing::Test {
 protected:
  // An elastic job whose workers 4 and 5 are in slots 0 and 1.
  void Open() {
    StartJob start;
    start.host = "h";
    start.ranks.size = 2;
    start.program.argv = {"train"};
    start.ranks.slots = {{0, 0, 0, 2, 0, 1}, {1, 0, 1, 2, 0, 1}};
    start.ranks.workers = {4, 5};
    start.policy.ranks_change = 1;
    start.job_key = "key";
    workers_.Prepare(std::move(start), {}, {});
    host_ = &generations_.Open();
  }
  // A generation of one machine with these workers, whose ranks are their places in the list.
  static BeginGeneration Generation(uint64_t number, const std::vector<uint32_t>& workers) {
    BeginGeneration message;
    message.generation = number;
    message.size = static_cast<uint32_t>(workers.size());
    message.one_machine = 1;
    for (uint32_t rank = 0; rank < workers.size(); ++rank)
      message.members.push_back({workers[rank], {rank, 0, rank, message.size, 0, 1}});
    return message;
  }

  asio::io_context io_;
  NoProcesses processes_;
  RecordedWorkers owner_;
  WorkerSet workers_{io_, processes_, owner_};
  WorkerSignals signals_{workers_, "0123456789abcdef", {}};
  RelayEnd relay_{io_, [](const ToDriver&) {}};
  const std::function<void(const ToDriver&)> send_ = [this](const ToDriver& m) { owner_.Send(m); };
  TraceCollector traces_{io_, send_, [] {}};
  RecorderReader recorders_{io_, send_};
  JobTuner tuner_{io_, TuningMemory(""), [](const std::string&) {},
                  [](std::span<const TraceRecord>) {}};
  WorkerGenerations generations_{{io_, workers_, signals_, relay_, traces_, recorders_, tuner_},
                                 send_};
  HostGenerations* host_ = nullptr;
};

TEST_F(WorkerGenerationsTest, NothingHappensBeforeTheJobHasStarted) {
  generations_.Handle(BeginGeneration{});
  generations_.Handle(BreakGeneration{});
  generations_.Handle(AddWorkers{});
  generations_.Handle(DismissWorker{});
  generations_.Handle(HoldCommits{});
  generations_.Handle(ActAtCommit{});
  generations_.Handle(KeyValue{});
  generations_.DropPage();
  EXPECT_FALSE(generations_.in_use());
  EXPECT_THAT(owner_.sent, IsEmpty());
}

TEST_F(WorkerGenerationsTest, MembersGetTheirRanks) {
  Open();
  generations_.Handle(Generation(3, {5, 4}));
  EXPECT_EQ(host_->world().RankOf(1), 0U);
  EXPECT_EQ(host_->world().RankOf(0), 1U);
  generations_.Handle(Generation(4, {5}));
  EXPECT_EQ(host_->world().RankOf(1), 0U);
  EXPECT_EQ(host_->world().size, 1U);
}

TEST_F(WorkerGenerationsTest, AMemberOfAnotherHostHasNoSlotHere) {
  Open();
  generations_.Handle(Generation(3, {7, 8}));
  EXPECT_THAT(owner_.Sent<RankLost>(), IsEmpty());
}

TEST_F(WorkerGenerationsTest, AMemberWithoutALinkIsReportedAsLostByItsNumber) {
  Open();
  generations_.Handle(Generation(3, {5}));
  const std::vector<RankLost> lost = owner_.Sent<RankLost>();
  ASSERT_EQ(lost.size(), 1U);
  EXPECT_EQ(lost[0].rank, 5U);
  EXPECT_EQ(lost[0].generation, 3U);
}

TEST_F(WorkerGenerationsTest, HeldCommitsAreAnswered) {
  Open();
  generations_.Handle(HoldCommits{3});
  const std::vector<CommitsHeld> held = owner_.Sent<CommitsHeld>();
  ASSERT_EQ(held.size(), 1U);
  EXPECT_EQ(held[0].generation, 3U);
  EXPECT_EQ(held[0].most, 0U);
}

TEST_F(WorkerGenerationsTest, MoreWorkersGetSlotsBehindTheOthers) {
  Open();
  AddWorkers more;
  more.slots = {{2, 0, 2, 3, 0, 1}};
  generations_.Handle(more);
  EXPECT_EQ(host_->slots().size(), 2U) << "a slot without a worker is damage";
  more.workers = {6};
  generations_.Handle(more);
  EXPECT_EQ(host_->slots().size(), 3U);
  EXPECT_EQ(workers_.SlotOf(6), 2U);
}

TEST_F(WorkerGenerationsTest, WhatTheMembersHaveDoneCanBeAsked) {
  recorders_.Answer(AskCounts{1, 0});
  EXPECT_TRUE(std::get<CountsReply>(owner_.sent.back()).workers.empty());
  auto page = GenerationPage::Make(3, 2, [](uint32_t) {});
  ASSERT_TRUE(page.ok());
  recorders_.UsePage((*page)->fd()->get(), (*page)->bytes(), 3, {{5, 0, 0, 0}, {4, 1, 1, 0}});
  recorders_.Answer(AskCounts{2, 0});
  const auto& told = std::get<CountsReply>(owner_.sent.back());
  EXPECT_EQ(told.number, 2U);
  EXPECT_EQ(told.generation, 3U);
  ASSERT_EQ(told.workers.size(), 2U);
  EXPECT_EQ(told.workers[0].worker, 5U);
  EXPECT_EQ(told.workers[0].rank, 0U);
  EXPECT_EQ(told.workers[0].activity, RankActivity::kOutside);  // no process has joined yet
  EXPECT_EQ(told.workers[1].worker, 4U);
  page->reset();  // it stays readable
  recorders_.Answer(AskRings{3});
  EXPECT_EQ(std::get<RingsOver>(owner_.sent.back()).number, 3U);
  EXPECT_EQ(std::get<RingReply>(owner_.sent[owner_.sent.size() - 2]).rank, 4U);
}

}  // namespace
}  // namespace hvd
