// The threads that make a sum, and the behaviour of the leader service when the others do not
// answer. Everything else of it is in contract/runtime/hosts_contract_test.cc.
#include "runtime/backends/hosts/host_leader_service.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "test/fakes/refusing_inter_host_comm.h"
#include "test/support/deadline.h"

namespace hvd {
namespace {

// Rank 0 as rank 1 sees it: whatever is ready there is begun at once.
class EagerInterHostComm : public test::RefusingInterHostComm {
 public:
  std::string_view name() const override { return "eager"; }
  Status Send(uint32_t, uint64_t, std::span<const std::byte> bytes, TimePoint) override {
    return Answer({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
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
    if (aborted_.ok()) aborted_ = why;
    changed_.notify_all();
  }
  void Release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

 protected:
  Status Answer(std::string_view text) {
    text.remove_suffix(1);  // in one piece
    Result<Coordination> msg = DecodeCoordination(std::string(text));
    if (!msg.ok()) return msg.status();
    const auto* ready = std::get_if<ReadyMessage>(&*msg);
    if (ready == nullptr) return Status::Ok();
    std::lock_guard lock(mutex_);
    RunMessage run;
    run.number = ++runs_;
    run.leaders = {0, 1};
    run.entries = {{ready->ticket, 2, {{}}}};
    answers_.push_back(std::string(EncodeCoordination(run).view()) + '\0');
    changed_.notify_all();
    return Status::Ok();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Status aborted_;
  bool released_ = false;

 private:
  std::deque<std::string> answers_;
  uint64_t runs_ = 0;
  bool woken_ = false;
};

// Its sums do not come to an end before Release, whether they are aborted or not.
class StuckInterHostComm final : public EagerInterHostComm {
 public:
  Status Allreduce(const InterHostCall&, const ReduceSpec&, const void*, void*, size_t) override {
    std::unique_lock lock(mutex_);
    summing_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return released_; });
    return Aborted("released");
  }
  void AwaitSum() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return summing_; });
  }

 private:
  bool summing_ = false;
};

// Its sums are made step by step: they end after Release, with twice the input, or by an abort.
class SteppedInterHostComm final : public EagerInterHostComm, private InterHostSteps {
 public:
  InterHostSteps* steps() override { return this; }
  // In the thread between hosts, where that is the quickest.
  Status Allreduce(const InterHostCall& call, const ReduceSpec& reduce, const void* input,
                   void* output, size_t count) override {
    const std::unique_ptr<InterHostSum> sum = BeginSum(call, reduce, input, output, count);
    Status status;
    do {
      status = sum->Continue(TimePoint::max());
    } while (status.code() == Code::kInProgress);
    return status;
  }

  std::thread::id beginner() { return Locked(&begun_by_); }
  std::thread::id finisher() { return Locked(&finished_by_); }
  // Another thread than the caller waits for the end of the sum.
  void AwaitOther() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return waits_ != std::thread::id() && waits_ != std::this_thread::get_id();
    });
  }
  void Forget() {
    std::lock_guard lock(mutex_);
    begun_by_ = finished_by_ = waits_ = {};
    released_ = false;
  }

 private:
  class Sum final : public InterHostSum {
   public:
    Sum(SteppedInterHostComm& comm, const void* input, void* output, size_t count)
        : comm_(comm),
          input_(static_cast<const float*>(input)),
          output_(static_cast<float*>(output)),
          count_(count) {}
    Status Continue(TimePoint deadline) override {
      std::unique_lock lock(comm_.mutex_);
      comm_.waits_ = std::this_thread::get_id();
      comm_.changed_.notify_all();
      comm_.changed_.wait_until(lock, deadline,
                                [this] { return comm_.released_ || !comm_.aborted_.ok(); });
      comm_.waits_ = {};
      if (!comm_.released_ && comm_.aborted_.ok()) return {Code::kInProgress, "not released"};
      comm_.finished_by_ = std::this_thread::get_id();
      if (!comm_.aborted_.ok()) return comm_.aborted_;
      for (size_t i = 0; i < count_; ++i) output_[i] = 2 * input_[i];
      return Status::Ok();
    }

   private:
    SteppedInterHostComm& comm_;
    const float* const input_;
    float* const output_;
    const size_t count_;
  };

  Status Post(uint32_t, uint64_t, MessageBytes bytes) override { return Answer(bytes.view()); }
  Status Flush(TimePoint) override { return Status::Ok(); }
  size_t MostSumBytes(size_t) const override { return 4096; }
  std::unique_ptr<InterHostSum> BeginSum(const InterHostCall&, const ReduceSpec&, const void* input,
                                         void* output, size_t count) override {
    std::lock_guard lock(mutex_);
    begun_by_ = std::this_thread::get_id();
    return std::make_unique<Sum>(*this, input, output, count);
  }
  std::thread::id Locked(const std::thread::id* id) {
    std::lock_guard lock(mutex_);
    return *id;
  }

  std::thread::id begun_by_, finished_by_, waits_;
};

HostLeaderOptions OptionsOfRank1() {
  HostLeaderOptions options;
  options.map = {{0, 1}, 1};
  options.cause_grace = options.goodbye = Duration::zero();
  options.wake_host = [] {};
  options.broken = [] { return std::nullopt; };
  return options;
}

// A sum of a rank that is alone on its host, and what becomes of it.
struct LoneSum {
  LoneSum() {
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
  }
  bool over() const {
    const Phase phase = result_status.now();
    return phase == Phase::kDone || phase == Phase::kFailed;
  }
  void Await() const {
    while (!over()) std::this_thread::yield();
  }

  std::vector<float> values = std::vector<float>(10, 1);
  ResultStatus result_status{};
  std::shared_ptr<LeaderOp> op = std::make_shared<LeaderOp>();
  std::shared_ptr<LeaderTensor> part = std::make_shared<LeaderTensor>();
};

const std::vector<float> kSummed(10, 2);
// The service's threads may be quicker than the thread that attends, until they stand back.
constexpr int kSums = 1000;

class AttendedService : public testing::Test {
 protected:
  explicit AttendedService(Duration last_exchange = std::chrono::milliseconds(1),
                           Duration attendance_timeout = std::chrono::hours(1)) {
    HostLeaderOptions options = OptionsOfRank1();
    options.last_exchange = last_exchange;
    options.attendance_timeout = attendance_timeout;
    options.end_process = [this](const std::string& sentence) { end_ = sentence; };
    service_.emplace(comm_, heap_, std::move(options));
  }
  ~AttendedService() override {
    comm_.Release();
    service_->Leave();
  }
  // Until some thread has begun it. True: this one has.
  bool BeginsHere(LoneSum& sum) {
    comm_.Forget();
    service_->Post(sum.op);
    while (comm_.beginner() == std::thread::id()) service_->Attend();
    return comm_.beginner() == std::this_thread::get_id();
  }
  void Finish(LoneSum& sum) {
    comm_.Release();
    service_->Rest();
    sum.Await();
    EXPECT_EQ(sum.values, kSummed);
  }

  LocalSegmentSource segments_;
  SharedHeap heap_{segments_};
  SteppedInterHostComm comm_;
  std::string end_;
  std::optional<HostLeaderService> service_;
};

TEST_F(AttendedService, MakesASumInTheThreadThatAttendsAlone) {
  for (int i = 0; i < kSums; ++i) {
    LoneSum sum;
    comm_.Forget();
    comm_.Release();
    service_->Post(sum.op);
    while (!sum.over()) service_->Attend();
    EXPECT_EQ(sum.values, kSummed);
    const std::thread::id self = std::this_thread::get_id();
    if (comm_.beginner() == self && comm_.finisher() == self) return;
  }
  FAIL() << "none of the sums";
}

TEST_F(AttendedService, WaitsForTheEndOfASumInTheThreadThatAttends) {
  for (int i = 0; i < kSums; ++i) {
    LoneSum sum;
    if (!BeginsHere(sum)) {
      Finish(sum);
      continue;
    }
    std::thread other([this] {
      comm_.AwaitOther();
      comm_.Release();
    });
    while (!service_->AttendUntil(TimePoint::max())) {
    }
    other.join();
    EXPECT_TRUE(sum.over());
    EXPECT_EQ(sum.values, kSummed);
    EXPECT_EQ(comm_.finisher(), std::this_thread::get_id());
    return;
  }
  FAIL() << "none of the sums";
}

class SoonMissedService : public AttendedService {
 protected:
  SoonMissedService()
      : AttendedService(std::chrono::milliseconds(1), std::chrono::milliseconds(20)) {}
};

// So that it looks for messages before the negotiation thread would do so in its place.
TEST_F(SoonMissedService, TheThreadThatAttendsComesBackFromASumThatTakesLong) {
  for (int i = 0; i < kSums; ++i) {
    LoneSum sum;
    const TimePoint deadline = SteadyNow() + Scaled(std::chrono::minutes(2));
    // False also where this thread had no core for so long that the service's took the sum over.
    if (!BeginsHere(sum) || !service_->AttendUntil(deadline)) {
      Finish(sum);
      continue;
    }
    EXPECT_LT(SteadyNow(), deadline);
    EXPECT_FALSE(sum.over());
    return Finish(sum);
  }
  FAIL() << "none of the sums";
}

TEST_F(AttendedService, FinishesInItsOwnThreadWhatAThreadThatRestsHasBegun) {
  for (int i = 0; i < kSums; ++i) {
    LoneSum sum;
    const bool here = BeginsHere(sum);
    if (here) {
      service_->Rest();
      comm_.AwaitOther();
    }
    Finish(sum);
    if (!here) continue;
    EXPECT_NE(comm_.finisher(), std::this_thread::get_id());
    return;
  }
  FAIL() << "none of the sums";
}

TEST_F(AttendedService, GivesBackTheMemoryOfASumThatAThreadThatAttendsHasBegun) {
  for (int i = 0; i < kSums; ++i) {
    LoneSum sum;
    if (!BeginsHere(sum)) {
      Finish(sum);
      continue;
    }
    service_->LetGo(*sum.op, *sum.part);
    EXPECT_EQ(end_, "");
    EXPECT_EQ(sum.op->use, LeaderOp::Use::kOver);
    EXPECT_NE(comm_.finisher(), std::this_thread::get_id());
    sum.Await();
    EXPECT_EQ(sum.result_status.now(), Phase::kFailed);
    EXPECT_EQ(sum.values, std::vector<float>(10, 1));
    return;
  }
  FAIL() << "none of the sums";
}

class PatientService : public AttendedService {
 protected:
  PatientService() : AttendedService(/*last_exchange=*/std::chrono::hours(1)) {}
};

// An abort would end the work of all hosts, also that without this rank.
TEST_F(PatientService, LetsASumThatOtherHostsCountOnComeToItsEnd) {
  for (int i = 0; i < kSums; ++i) {
    LoneSum sum;
    if (!BeginsHere(sum)) {
      Finish(sum);
      continue;
    }
    std::thread other([this] {
      comm_.AwaitOther();
      comm_.Release();
    });
    service_->LetGo(*sum.op, *sum.part);
    other.join();
    EXPECT_EQ(sum.op->use, LeaderOp::Use::kOver);
    sum.Await();
    EXPECT_EQ(sum.result_status.now(), Phase::kDone);
    EXPECT_EQ(sum.values, kSummed);
    EXPECT_TRUE(service_->failure().ok());
    return;
  }
  FAIL() << "none of the sums";
}

TEST(HostLeaderService, EndsTheProcessRatherThanGiveBackMemoryThatIsStillInUse) {
  LocalSegmentSource segments;
  SharedHeap heap(segments);
  StuckInterHostComm comm;
  std::string why;
  HostLeaderOptions options = OptionsOfRank1();
  options.last_exchange = options.let_go_limit = std::chrono::milliseconds(1);
  options.end_process = [&](const std::string& sentence) { why = sentence; };
  LoneSum sum;
  HostLeaderService leader_service(comm, heap, std::move(options));
  leader_service.Post(sum.op);
  comm.AwaitSum();
  leader_service.LetGo(*sum.op, *sum.part);
  EXPECT_NE(why.find("rank 1 cannot have the memory of 'gradient' back"), std::string::npos) << why;
  comm.Release();
  leader_service.Leave();
}

}  // namespace
}  // namespace hvd
