// Each call of the driver and of NCCL that the backend makes on the way of its operations fails
// once, in each of its places and with each kind of error, or never comes to an end. Then an
// operation fails with a sentence that names rank, device and call; nobody waits for ever; nothing
// is left; and no rule is broken: nothing is used before it is ready, after an error or after its
// end. And each symbol is missing on one rank.
#include <gmock/gmock.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <thread>

#include "test/fakes/cuda/cuda_cases.h"

namespace hvd::test {
namespace {

using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kFaultStride = 3;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kLongWayStride = 11;
#else
constexpr int kLongWayStride = kFaultStride;
#endif
constexpr int kLongWay = 100;  // calls; a sanitizer sees fewer of their places

constexpr CuResult kCudaFaults[] = {kCudaIllegalAddress, kCudaOutOfMemory, kCudaNoBinaryForGpu, 1,
                                    kCudaUnknown};
constexpr NcclResult kNcclFaults[] = {kNcclRemoteError, kNcclInvalidUsage, kNcclSystemError,
                                      kNcclCudaError, kNcclInternalError};

struct FaultScenario {
  const char* name;
  CudaMembers::Options options;
  std::vector<Case> cases;
  int rounds = 1;        // of the same calls with the same memory
  bool compares = true;  // Compare knows the results
  bool leaves = false;   // the members leave the world together; otherwise they are dropped
};

std::ostream& operator<<(std::ostream& out, const FaultScenario& scenario) {
  return out << scenario.name;
}

std::vector<Case> MovesOfTwo() {
  return {{.collective = Collective::kAllgather, .rows = {4, 7}, .made = true},
          {.collective = Collective::kAllgather, .rows = {4, 4}, .made = true},
          {.collective = Collective::kAlltoall,
           .rows = {4, 4},
           .splits = {{3, 1}, {1, 3}},
           .in_place = true},
          {.collective = Collective::kBroadcast, .rows = {4, 4}, .root = 1},
          {.collective = Collective::kReducescatter,
           .dtype = DType::kFloat16,
           .rows = {5, 5},
           .prescale = 0.3,
           .postscale = 2,
           .made = true},
          {.collective = Collective::kReducescatter,
           .op = ReduceOp::kAverage,
           .rows = {4, 4},
           .made = true}};
}

std::vector<FaultScenario> FaultScenarios() {
  const std::vector<Case> small = {{.rows = {20, 20}}, {.rows = {5, 5}}};
  const std::vector<Case> reductions = {{.rows = {20, 20}, .prescale = 0.3},
                                        {.rows = {5, 5}, .prescale = 0.3},
                                        {.rows = {5600, 5600}, .prescale = 0.3}};
  const std::vector<uint32_t> both = {0, 1};
  return {
      {"Reductions", {.members = 2}, reductions},
      {"SlowReductions", {.members = 2, .slowness = 2}, reductions},
      {"Moves", {.members = 2}, MovesOfTwo()},
      {"Adasum",
       {.members = 2},
       {{.op = ReduceOp::kAdasum, .rows = {40, 40}}, {.op = ReduceOp::kAdasum, .rows = {3, 3}}},
       1,
       false},
      {"Staged", {.members = 2, .nccl = false}, MovesOfTwo()},
      {"StagedReductions", {.members = 2, .one_gpu = true}, reductions},
      {"Sets",
       {.members = 3},
       {{.rows = {4, 4, 4}}, {.rows = {4, 4}, .set = {0, 1}}, {.rows = {4, 4}, .set = {1, 2}}}},
      {"Graphs", {.members = 2, .is_world = true, .keeps_graphs = both}, small, 4},
      {"SlowGraphs",
       {.members = 2, .slowness = 2, .is_world = true, .keeps_graphs = both},
       small,
       3},
      {"RegisteredBuffers", {.members = 2, .registers_buffers = true}, small},
      {"WaitsForTheGpu", {.members = 2, .waits_for_gpu = true}, small},
      {"Alone", {.members = 1}, {{.rows = {20}, .prescale = 2}, {.rows = {5}}}},
      {"Leaves", {.members = 2}, small, 1, true, true},
      {"LeavesRegisteredBuffers", {.members = 2, .registers_buffers = true}, small, 1, true, true},
      {"LeavesWithGraphs",
       {.members = 2, .is_world = true, .keeps_graphs = both},
       small,
       3,
       true,
       true},
  };
}

// Time passes when a test says so and, while members leave, with each look at the clock.
class LeavingClock final : public Clock {
 public:
  TimePoint Now() const override {
    if (const auto look = on_look; look) {
      now += std::chrono::milliseconds(200);
      look();
    }
    return now;
  }

  mutable TimePoint now;
  std::function<void()> on_look;
};

// The operations of a scenario, from their announcements to the end of the world.
class FaultRun {
 public:
  explicit FaultRun(const FaultScenario& scenario)
      : scenario_(scenario), members_(WithLimits(scenario.options)) {
    members_.time = &clock_;
    for (uint32_t m = 0; m < members_.size(); ++m) members_.Open(m);
    for (const Case& c : scenario.cases) operations_.push_back(Make(members_, c));
  }
  FakeCuda& cuda() { return members_.cuda; }
  FakeNccl& nccl() { return members_.nccl; }
  const std::vector<Status>& failures() const { return failures_; }
  // All that a user is told.
  std::string told() const {
    std::string text;
    for (const Status& failure : failures_) text += failure.message() + "\n";
    for (const std::string& sentence : members_.said) text += sentence + "\n";
    return text;
  }

  // False: the fault has not come, or only after the operations.
  bool Run(const std::function<bool()>& came) {
    for (int round = 0; round < scenario_.rounds && world_.ok(); ++round) {
      if (round > 0) Again();
      RunRound();
    }
    const bool in_time = came();
    if (world_.ok() && scenario_.leaves) LeaveFrom(0);
    if (failures_.empty() && scenario_.compares) CompareAll();
    return in_time;
  }

  // The end of all members; nothing is left, and no rule was broken.
  void ExpectClean(bool memory_may_stay = false) {
    EndWorld(Aborted("the world has ended"));
    cuda().Run();
    for (uint32_t m = 0; m < members_.size(); ++m) members_.Drop(m);
    cuda().Disarm();  // memory that cannot be freed is left to the end of the process
    FreeResults();
    cuda().Run();
    FakeCuda::capture_mode = 0;
    EXPECT_THAT(members_.ended, IsEmpty()) << "an abort has not returned";
    EXPECT_THAT(nccl().Complaints(), IsEmpty());
    EXPECT_THAT(cuda().Complaints(), IsEmpty());
    EXPECT_THAT(nccl().Leaks(), IsEmpty());
    std::vector<std::string> leaks = cuda().Leaks();
    if (memory_may_stay) leaks.clear();
    EXPECT_THAT(leaks, IsEmpty());
  }

 private:
  static constexpr int kMostSteps = 80;

  static CudaMembers::Options WithLimits(CudaMembers::Options options) {
    options.start_limit = std::chrono::seconds(2);
    return options;
  }

  void Again() {
    FreeResults();
    for (CudaOperation& operation : operations_) {
      for (CudaPart& part : operation.parts) {
        part.stage = CudaPart::Stage::kNew;
        part.output.clear();
      }
    }
  }

  // The same step of all members of all operations, and some work of the GPUs, again and again.
  void RunRound() {
    for (int step = 0; step < kMostSteps; ++step) {
      bool done = true;
      for (CudaOperation& operation : operations_) {
        for (uint32_t m = 0; m < members_.size(); ++m) done = Step(operation, m) && done;
      }
      if (!world_.ok()) return EndWorld(world_);
      cuda().Run();
      if (done) return;
      for (uint32_t m = 0; m < members_.size(); ++m) members_.backend(m).Watch();
      clock_.now += std::chrono::milliseconds(100);
    }
    ADD_FAILURE() << "a member waits for ever; told: " << told();
    EndWorld(Aborted("a member waits for ever"));
  }

  // True when the part is done. The first error that not all members have ends the world.
  bool Step(CudaOperation& operation, uint32_t m) {
    CudaPart& part = operation.parts[m];
    if (!operation.Takes(m) || part.stage == CudaPart::Stage::kDone) return true;
    members_.Step(operation, m);
    if (part.stage != CudaPart::Stage::kDone) return false;
    if (part.status.ok()) return true;
    failures_.push_back(part.status);
    if (world_.ok() && !CudaMembers::IsOfAll(part.status)) world_ = part.status;
    return true;
  }

  void EndWorld(const Status& why) {
    world_ = why;
    for (uint32_t m = 0; m < members_.size(); ++m) {
      if (members_.has_backend(m)) members_.backend(m).Abort(why);
    }
    for (CudaOperation& operation : operations_) {
      for (uint32_t m = 0; m < members_.size(); ++m) {
        CudaPart& part = operation.parts[m];
        if (part.state == nullptr) continue;
        part.status = why;
        members_.GiveUp(part, m);
      }
    }
  }

  // While one member closes its communicators, the others begin to do so.
  void LeaveFrom(uint32_t m) {
    if (m == members_.size()) return;
    int looks = 0;
    const std::function<void()> outer = clock_.on_look;
    clock_.on_look = [this, m, &looks] {
      cuda().Run();
      if (++looks == 4) LeaveFrom(m + 1);
    };
    members_.backend(m).Leave();
    clock_.on_look = outer;
  }

  void CompareAll() {
    for (size_t k = 0; k < operations_.size(); ++k) {
      for (uint32_t m = 0; m < members_.size(); ++m) {
        const Case& c = scenario_.cases[k];
        if (operations_[k].Takes(m)) Compare(c, c.IndexOf(m), operations_[k].parts[m]);
      }
    }
  }

  void FreeResults() {
    for (CudaOperation& operation : operations_) {
      for (uint32_t m = 0; m < members_.size(); ++m) {
        void* made = std::exchange(operation.parts[m].result.made_output, nullptr);
        EXPECT_TRUE(made == nullptr || members_.heap(m).Free(made));
        operation.parts[m].result = {};
      }
    }
  }

  const FaultScenario& scenario_;
  LeavingClock clock_;
  CudaMembers members_;
  std::vector<CudaOperation> operations_;
  std::vector<Status> failures_;
  Status world_;  // why it has ended
};

// Of calls by which something ends, nobody can use the answer, and no operation fails by it.
bool IsEnd(const std::string& symbol) {
  for (const char* part : {"Release", "Pop", "Destroy", "Free", "Unload", "Synchronize", "Abort"}) {
    if (symbol.find(part) != std::string::npos) return true;
  }
  return symbol == "cuThreadExchangeStreamCaptureMode";  // every second time
}

// One of many that are made around each call.
bool IsOfEachCall(const std::string& symbol) {
  return symbol.starts_with("cuCtx") || symbol == "cuThreadExchangeStreamCaptureMode";
}

// Without them nothing can be given back, which is then left to the end of the process; an
// operation that is done gives back what it borrowed, and its result is right.
bool GivesBack(const std::string& symbol) {
  return IsOfEachCall(symbol) || symbol.starts_with("cuEvent") || symbol == "cuStreamSynchronize";
}

// Only a call in a context tells that it has become unusable.
CuResult FaultOf(const std::string& symbol, CuResult fault) {
  const bool in_context =
      !symbol.starts_with("cuDevice") && !IsOfEachCall(symbol) && symbol != "cuInit";
  return LeavesContextUnusable(fault) && !in_context ? kCudaNoDevice : fault;
}

class CudaFaults : public ::testing::TestWithParam<FaultScenario> {
 protected:
  // Without a fault.
  template <typename Entered>
  static std::map<std::string, int> CallsOf(const std::vector<std::string>& symbols,
                                            Entered entered) {
    FaultRun run(GetParam());
    std::map<std::string, int> calls;
    for (const std::string& symbol : symbols) calls[symbol] = -entered(run, symbol);
    run.Run([] { return false; });
    EXPECT_THAT(run.failures(), IsEmpty());
    run.ExpectClean();
    for (const std::string& symbol : symbols) calls[symbol] += entered(run, symbol);
    return calls;
  }

  // For each place of a call on the way of the scenario.
  template <typename Entered, typename Try>
  void Sweep(const std::vector<std::string>& symbols, Entered entered, Try&& attempt) {
    std::map<std::string, int> calls = CallsOf(symbols, entered);
    int places = 0, tried = 0;
    for (const auto& [symbol, count] : calls) places += count;
    const int apart = places < kLongWay ? kFaultStride : kLongWayStride;
    for (const std::string& symbol : symbols) {
      const int stride = apart * (IsOfEachCall(symbol) ? 7 : 1);
      for (int call = 0; call < calls[symbol]; call += stride) {
        SCOPED_TRACE(symbol + ", call " + std::to_string(call));
        attempt(symbol, call);
        ++tried;
        if (HasFailure()) return;
      }
    }
    EXPECT_GT(tried, 8);
  }

  // `sentence`: what a user has to be told.
  template <typename Matcher>
  static void ExpectSentence(FaultRun& run, const std::string& symbol, bool in_time,
                             const Matcher& sentence) {
    const bool silent = run.failures().empty() && (!in_time || IsEnd(symbol) || GivesBack(symbol));
    if (!silent) {
      EXPECT_THAT(run.told(), sentence);
      EXPECT_THAT(run.told(), ContainsRegex("rank [0-9]+ (on CUDA device [0-9]|cannot take part)"));
    }
    run.ExpectClean(GivesBack(symbol));
  }
};

// Launches of kernels among them.
TEST_P(CudaFaults, OfTheDriver) {
  const auto entered = [](FaultRun& run, const std::string& symbol) {
    return run.cuda().Entered(symbol);
  };
  size_t turn = 0;
  Sweep(FakeCuda::AllSymbols(), entered, [&](const std::string& symbol, int call) {
    for (CuResult fault : kCudaFaults) {
      if (call != 0 && fault != kCudaFaults[turn % std::size(kCudaFaults)]) continue;
      SCOPED_TRACE("answers " + std::to_string(fault));
      FaultRun run(GetParam());
      run.cuda().FailOnce(symbol, call, FaultOf(symbol, fault));
      const bool in_time = run.Run([&run] { return run.cuda().failed_once(); });
      ExpectSentence(run, symbol, in_time, HasSubstr(symbol + " answered"));
    }
    ++turn;
  });
}

TEST_P(CudaFaults, OfNccl) {
  if (!GetParam().options.nccl || GetParam().options.one_gpu || GetParam().options.members == 1)
    return;
  const auto entered = [](FaultRun& run, const std::string& symbol) {
    return run.nccl().Entered(symbol);
  };
  size_t turn = 0;
  Sweep(FakeNccl::AllSymbols(), entered, [&](const std::string& symbol, int call) {
    const bool later = symbol == FakeNccl::kAsyncError;
    const std::string named = later ? "ncclCommGetAsyncError" : symbol;
    for (NcclResult fault : kNcclFaults) {
      if (call != 0 && fault != kNcclFaults[turn % std::size(kNcclFaults)]) continue;
      SCOPED_TRACE("answers " + std::to_string(fault));
      FaultRun run(GetParam());
      run.nccl().FailOnce(symbol, call, fault);
      const bool in_time = run.Run([&run] { return run.nccl().failed_once(); });
      ExpectSentence(run, symbol, in_time, HasSubstr(named + " answered"));
    }
    ++turn;
  });
}

// NCCL is in progress for ever. Where everything was in the streams before, nobody notices.
TEST_P(CudaFaults, ThatNeverEnd) {
  if (!GetParam().options.nccl || GetParam().options.one_gpu || GetParam().options.members == 1)
    return;
  const auto entered = [](FaultRun& run, const std::string& symbol) {
    return run.nccl().Entered(symbol);
  };
  Sweep(FakeNccl::AllSymbols(), entered, [&](const std::string& symbol, int call) {
    if (symbol == FakeNccl::kAsyncError || IsEnd(symbol)) return;
    FaultRun run(GetParam());
    run.nccl().HangOnce(symbol, call);
    run.Run([&run] { return run.nccl().failed_once(); });
    if (!run.failures().empty()) {
      EXPECT_THAT(run.told(),
                  AnyOf(HasSubstr("NCCL has been at work on its calls for 2 s"),
                        HasSubstr("ncclCommInitRankConfig has not ended within 2.0 s")));
      EXPECT_THAT(run.told(), ContainsRegex("rank [0-9]+ (on CUDA device [0-9]|cannot take part)"));
    }
    run.ExpectClean();
  });
}

INSTANTIATE_TEST_SUITE_P(Scenarios, CudaFaults, ::testing::ValuesIn(FaultScenarios()),
                         [](const auto& given) { return std::string(given.param.name); });

// NCCL refuses to start on the third member.
TEST(CudaFaultsOfAStart, NameTheRankAndTheTextAndWhatToTry) {
  CudaMembers members({.members = 3});
  members.nccl.last_error = "Bootstrap : no socket interface found";
  members.nccl.FailOnce("ncclCommInitRankConfig", 2, kNcclSystemError);
  std::vector<CudaOperation> operations;
  operations.push_back(Make(members, {.rows = {4, 4, 4}}));
  for (int step = 0; step < 5; ++step) {
    for (uint32_t m = 0; m < 3; ++m) members.Step(operations[0], m);
  }
  const Status& status = operations[0].parts[2].status;
  EXPECT_EQ(status.code(), Code::kAborted);
  for (const char* part : {"rank 5 on CUDA device 2", "ncclCommInitRankConfig answered",
                           "Bootstrap : no socket interface found", "NCCL_SOCKET_IFNAME"})
    EXPECT_THAT(status.message(), HasSubstr(part));
  for (uint32_t m = 0; m < 2; ++m) {
    members.backend(m).Abort(status);
    members.backend(m).Abandon(std::move(operations[0].parts[m].state), true);
  }
  members.cuda.Run();
  members.ExpectClean();
}

size_t ThreadsOfThisProcess() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// The kernel counts a thread that was joined for a moment longer.
size_t ThreadsAfterJoins(size_t expected) {
  for (int look = 0; look < 1000 && ThreadsOfThisProcess() != expected; ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return ThreadsOfThisProcess();
}

// Two communicators on each member, whose kernels wait for a dead rank; an abort returns when the
// device has left the kernels of both.
TEST(CudaFaultsOfAnAbort, AHundredWorldsEndInTimeAndLeaveNoThread) {
  const size_t threads = ThreadsOfThisProcess();
  for (int world = 0; world < 100; ++world) {
    CudaMembers members({.members = 3});
    members.nccl.aborts_wait = true;
    std::vector<CudaOperation> operations;
    operations.push_back(Make(members, {.rows = {3, 3, 3}}));
    operations.push_back(Make(members, {.rows = {3, 3}, .set = {0, 1}}));
    for (int step = 0; step < 4; ++step) {
      for (CudaOperation& operation : operations) {
        for (uint32_t m = 0; m < 2; ++m) {
          if (operation.Has(m)) members.Step(operation, m);
        }
        if (step < 2 && operation.Has(2)) members.Step(operation, 2);  // then it is dead
      }
    }
    for (uint32_t m = 0; m < 3; ++m) {
      members.backend(m).Abort(Aborted("rank 5 died on host a"));
      for (CudaOperation& operation : operations) {
        if (operation.parts[m].state != nullptr)
          members.backend(m).Abandon(std::move(operation.parts[m].state), true);
      }
    }
    EXPECT_THAT(members.ended, IsEmpty());
    members.cuda.Run();
    members.ExpectClean();
  }
  EXPECT_EQ(ThreadsAfterJoins(threads), threads);
}

// ---- missing symbols, on member 1

struct MissingRun {
  explicit MissingRun(const CudaMembers::Options& options) : members(options) {}
  // It has the driver and the NCCL without the symbol.
  void OpenWithout(const std::string& symbol) {
    members.cuda.lacking = members.nccl.lacking = {symbol};
    members.Open(1);
    members.cuda.lacking = members.nccl.lacking = {};
  }
  std::string said() const {
    std::string text;
    for (const std::string& sentence : members.said) text += sentence + "\n";
    return text;
  }

  CudaMembers members;
};

TEST(CudaMissingSymbols, OfTheDriverAreARefusalOnAllMembers) {
  for (const std::string& symbol : FakeCuda::Symbols()) {
    SCOPED_TRACE(symbol);
    MissingRun run({.members = 3});
    run.OpenWithout(symbol);
    std::vector<CudaOperation> operations;
    operations.push_back(Make(run.members, {.rows = {4, 4, 4}}));
    run.members.Run(operations, 1);
    for (const CudaPart& part : operations[0].parts) {
      EXPECT_EQ(part.status.code(), Code::kUnsupported);
      EXPECT_THAT(part.status.message(), HasSubstr("rank 3 cannot take part"));
      EXPECT_THAT(part.status.message(), HasSubstr("has no " + symbol));
    }
    run.members.ExpectClean();
  }
}

TEST(CudaMissingSymbols, OfNcclMakeAllMembersGoTheSlowWay) {
  std::vector<std::string> symbols = FakeNccl::Symbols();
  symbols.insert(symbols.end(), {"ncclGetErrorString", "ncclGetLastError"});
  for (const std::string& symbol : symbols) {
    SCOPED_TRACE(symbol);
    MissingRun run({.members = 2});
    run.OpenWithout(symbol);
    Check(run.members, MovesOfTwo(), 1);
    EXPECT_THAT(run.said(), HasSubstr("the slow way, because rank 3 has no usable NCCL"));
    EXPECT_THAT(run.said(), HasSubstr("rank 3: NCCL cannot be used because"));
    EXPECT_THAT(run.said(), HasSubstr("has no " + symbol));
    EXPECT_EQ(run.members.nccl.Count("ncclCommInitRankConfig"), 0);
    run.members.ExpectClean();
  }
}

TEST(CudaMissingSymbols, OfGraphsMakeAllMembersDoWithout) {
  for (const std::string& symbol : FakeCuda::GraphSymbols()) {
    SCOPED_TRACE(symbol);
    MissingRun run({.members = 2, .is_world = true, .keeps_graphs = {0, 1}});
    run.OpenWithout(symbol);
    for (uint32_t seed = 0; seed < 3; ++seed)
      Check(run.members, {{.rows = {20, 20}}, {.rows = {5, 5}}}, seed);
    EXPECT_EQ(run.members.cuda.Count("cuGraphLaunch"), 0);
    EXPECT_THAT(run.said(), HasSubstr("no CUDA graphs because libcuda.so.1 has no " + symbol));
    run.members.ExpectClean();
  }
}

TEST(CudaMissingSymbols, OfRegisteredBuffersMakeAMemberDoWithout) {
  for (const std::string& symbol : FakeNccl::OptionalSymbols()) {
    SCOPED_TRACE(symbol);
    MissingRun run({.members = 2, .registers_buffers = true});
    run.OpenWithout(symbol);
    for (uint32_t seed = 0; seed < 3; ++seed)
      Check(run.members, {{.rows = {20, 20}}, {.rows = {5, 5}}}, seed);
    EXPECT_LE(run.members.nccl.Count("ncclCommRegister"), 1);
    run.members.ExpectClean();
  }
}

}  // namespace
}  // namespace hvd::test
