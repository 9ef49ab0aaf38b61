// The behaviour of the leader service when the others do not answer. Everything else of it is in
// contract/runtime/hosts_contract_test.cc.
#include "runtime/backends/hosts/host_leader_service.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "test/fakes/refusing_inter_host_comm.h"

namespace hvd {
namespace {

// Rank 0 as rank 1 sees it: whatever is ready there is begun at once. Its sums do not come to an
// end before Release, whether they are aborted or not.
class StuckInterHostComm final : public test::RefusingInterHostComm {
 public:
  std::string_view name() const override { return "stuck"; }
  Status Allreduce(const InterHostCall&, const ReduceSpec&, const void*, void*, size_t) override {
    std::unique_lock lock(mutex_);
    summing_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return released_; });
    return Aborted("released");
  }
  Status Send(uint32_t, uint64_t, std::span<const std::byte> bytes, TimePoint) override {
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Result<Coordination> msg = DecodeCoordination(text.substr(1));  // in one piece
    if (!msg.ok()) return msg.status();
    const auto* ready = std::get_if<ReadyMessage>(&*msg);
    if (ready == nullptr) return Status::Ok();
    RunMessage run;
    run.number = 1;
    run.leaders = {0, 1};
    run.entries = {{ready->ticket, 2, {{}}}};
    std::lock_guard lock(mutex_);
    answers_.push_back(std::string(1, '\0') + EncodeCoordination(run));
    changed_.notify_all();
    return Status::Ok();
  }
  Result<InterHostMessage> Receive(uint32_t, uint64_t, TimePoint deadline) override {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline,
                        [this] { return woken_ || !aborted_.ok() || !answers_.empty(); });
    woken_ = false;
    if (!aborted_.ok()) return aborted_;
    if (answers_.empty()) return Status(Code::kInProgress, "nothing");
    InterHostMessage message{0, std::move(answers_.front())};
    answers_.pop_front();
    return message;
  }
  void Wake() override {
    std::lock_guard lock(mutex_);
    woken_ = true;
    changed_.notify_all();
  }
  void Abort(const Status& why) override {
    std::lock_guard lock(mutex_);
    aborted_ = why;
    changed_.notify_all();
  }

  void AwaitSum() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return summing_; });
  }
  void Release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> answers_;
  Status aborted_;
  bool woken_ = false, summing_ = false, released_ = false;
};

TEST(HostLeaderService, EndsTheProcessRatherThanGiveBackMemoryThatIsStillInUse) {
  LocalSegmentSource segments;
  SharedHeap heap(segments);
  StuckInterHostComm comm;
  std::string why;
  HostLeaderOptions options;
  options.map = {{0, 1}, 1};
  options.let_go_limit = std::chrono::milliseconds(1);
  options.cause_grace = options.goodbye = Duration::zero();
  options.end_process = [&](const std::string& sentence) { why = sentence; };
  options.wake_host = [] {};
  options.broken = [] { return std::nullopt; };
  std::vector<float> values(10, 1);
  ResultStatus result_status{};
  auto op = std::make_shared<LeaderOp>();
  auto part = std::make_shared<LeaderTensor>();
  part->call.collective = Collective::kAllreduce;
  part->call.dtype = DType::kFloat32;
  part->call.count = values.size();
  part->result_status = &result_status;
  part->straight = true;
  part->input = part->output = values.data();
  op->ready.name = "gradient";
  op->ready.collective = Collective::kAllreduce;
  op->ready.parts.resize(1);
  op->parts = {part};
  HostLeaderService leader_service(comm, heap, std::move(options));
  leader_service.Post(op);
  comm.AwaitSum();
  leader_service.LetGo(*op, *part);
  EXPECT_NE(why.find("rank 1 cannot have the memory of 'gradient' back"), std::string::npos) << why;
  comm.Release();
  leader_service.Leave();
}

}  // namespace
}  // namespace hvd
