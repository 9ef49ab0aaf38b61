// Collectives as ranges of a profiler, over a profiler's library that is played.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>

#include "runtime/backends/cuda/nvtx/nvtx_ranges.h"
#include "runtime/backends/cuda/ranged_backend.h"

#ifdef HVD_NVTX_HEADER
#include <nvtx3/nvToolsExt.h>
#endif

namespace hvd {
namespace {

using testing::HasSubstr;

#ifdef HVD_NVTX_HEADER
static_assert(nvtx::kVersion == NVTX_VERSION);
static_assert(sizeof(nvtx::EventAttributes) == sizeof(nvtxEventAttributes_t));
static_assert(offsetof(nvtx::EventAttributes, payload) == offsetof(nvtxEventAttributes_t, payload));
static_assert(offsetof(nvtx::EventAttributes, message_type) ==
              offsetof(nvtxEventAttributes_t, messageType));
static_assert(offsetof(nvtx::EventAttributes, message) == offsetof(nvtxEventAttributes_t, message));
static_assert(nvtx::kDomainRangeStartEx == NVTX_CBID_CORE2_DomainRangeStartEx);
static_assert(nvtx::kDomainRangeEnd == NVTX_CBID_CORE2_DomainRangeEnd);
static_assert(nvtx::kDomainCreateA == NVTX_CBID_CORE2_DomainCreateA);
static_assert(nvtx::kCallbacksTable == NVTX_ETID_CALLBACKS);
static_assert(nvtx::kVersionTable == NVTX_ETID_VERSIONINFO);
static_assert(static_cast<int>(nvtx::kCore2) == NVTX_CB_MODULE_CORE2);
static_assert(static_cast<int>(nvtx::kSync) == NVTX_CB_MODULE_SYNC);
static_assert(nvtx::kModules == NVTX_CB_MODULE_SIZE);
static_assert(nvtx::kSlots[nvtx::kCore] == NVTX_CBID_CORE_SIZE);
static_assert(nvtx::kSlots[nvtx::kCuda] == NVTX_CBID_CUDA_SIZE);
static_assert(nvtx::kSlots[nvtx::kOpenCl] == NVTX_CBID_OPENCL_SIZE);
static_assert(nvtx::kSlots[nvtx::kCudaRuntime] == NVTX_CBID_CUDART_SIZE);
static_assert(nvtx::kSlots[nvtx::kCore2] == NVTX_CBID_CORE2_SIZE);
static_assert(nvtx::kSlots[nvtx::kSync] == NVTX_CBID_SYNC_SIZE);
static_assert(sizeof(nvtx::CallbacksTable) == sizeof(NvtxExportTableCallbacks));
static_assert(sizeof(nvtx::VersionTable) == sizeof(NvtxExportTableVersionInfo));
#endif

// The lines of ranges that have ended since the last time; all have.
std::string TakeRanges() {
  void* library = ::dlopen(HVD_FAKE_NVTX, RTLD_NOW | RTLD_LOCAL);
  auto take = reinterpret_cast<const char* (*)(unsigned*)>(::dlsym(library, "fake_nvtx_take"));
  unsigned open = 0;
  const std::string text = take(&open);
  EXPECT_EQ(open, 0U) << "ranges that have not ended";
  return text;
}

TEST(NvtxRanges, SayWhyThereAreNone) {
  const auto why = [](const std::string& injection) {
    const Status status = NvtxRanges::Load(injection).status();
    EXPECT_EQ(status.code(), Code::kUnsupported);
    return status.message();
  };
  EXPECT_EQ(why(""),
            "no NVTX ranges are shown because there is no profiler: it sets NVTX_INJECTION64_PATH; "
            "run hvdrun below nsys profile");
  EXPECT_THAT(why("/nowhere/lib.so"), HasSubstr("library cannot be loaded: /nowhere/lib.so"));
  EXPECT_THAT(why("libm.so.6"), HasSubstr("libm.so.6 has no InitializeInjectionNvtx2"));
  ::setenv("FAKE_NVTX_REFUSES", "1", 1);
  EXPECT_THAT(why(HVD_FAKE_NVTX), HasSubstr(" does not take part"));
  ::unsetenv("FAKE_NVTX_REFUSES");
}

TEST(NvtxRanges, BeginAndEnd) {
  const Result<NvtxRanges> ranges = NvtxRanges::Load(HVD_FAKE_NVTX);
  ASSERT_TRUE(ranges.ok()) << ranges.status().message();
  const nvtx::RangeId a = ranges->Start("one", 1), b = ranges->Start("two", 2);
  ranges->End(a);
  ranges->End(b);
  EXPECT_EQ(TakeRanges(), "hvdrun one 1\nhvdrun two 2\n");
}

// An inner backend that does as it is told.
class ToldBackend final : public DeviceBackend {
 public:
  struct State final : OpState {};

  std::string_view name() const override { return "told"; }
  Status Prepare(const CollectiveCall&, std::unique_ptr<OpState>* state,
                 BufferDescriptor*) override {
    if (!answer.ok()) return answer.status();
    *state = std::make_unique<State>();
    own = state->get();
    return Status::Ok();
  }
  bool IsExchange(const CollectiveCall& call) const override { return call.count == 5; }
  void WorkAhead(const CollectiveCall&, OpState* state) override {
    EXPECT_EQ(state, own);
    said = "ahead";
  }
  Attendance* attendance() override { return &attended; }
  Result<bool> Start(const CollectiveCall&, OpState* state, const MemberInputs&) override {
    EXPECT_EQ(state, own);
    return answer;
  }
  Result<bool> Advance(const CollectiveCall&, OpState* state) override {
    EXPECT_EQ(state, own);
    return answer;
  }
  bool Needs(const CollectiveCall&, const OpState* state, uint32_t) const override {
    return state == own;
  }
  std::string Awaits(const CollectiveCall&, const OpState* state) const override {
    return state == own ? "it" : "";
  }
  AwaitedRanks AwaitedBy(const CollectiveCall&, const OpState*) const override { return {{7}}; }
  void Withdraw(const CollectiveCall&, const OpState*, std::string why) override { said = why; }
  void Abandon(std::unique_ptr<OpState> state, bool) override {
    EXPECT_EQ(state.get(), own);
    said = "abandoned";
  }
  void Abort(const Status& why) override { said = why.message(); }
  void Watch() override { said = "watched"; }
  void Leave() override { said = "left"; }
  bool UsesNccl() const override { return true; }

  struct Attended final : Attendance {
    void Attend() override {}
    bool AttendUntil(TimePoint) override { return false; }
    void Rest() override {}
  };

  Attended attended;
  Result<bool> answer = false;
  std::string said;
  const OpState* own = nullptr;
};

class RangedBackendTest : public testing::Test {
 protected:
  void SetUp() override {
    Result<NvtxRanges> loaded = NvtxRanges::Load(HVD_FAKE_NVTX);
    ASSERT_TRUE(loaded.ok());
    ranges_ = *loaded;
    auto inner = std::make_unique<ToldBackend>();
    inner_ = inner.get();
    backend_ = std::make_unique<RangedBackend>(std::move(inner), ranges_);
    (void)TakeRanges();
  }
  std::unique_ptr<OpState> Prepared() {
    std::unique_ptr<OpState> state;
    BufferDescriptor descriptor;
    EXPECT_TRUE(backend_->Prepare(call_, &state, &descriptor).ok());
    return state;
  }

  NvtxRanges ranges_;
  ToldBackend* inner_ = nullptr;
  std::unique_ptr<RangedBackend> backend_;
  CollectiveCall call_{.collective = Collective::kAllgather, .dtype = DType::kFloat32, .count = 5};
};

TEST_F(RangedBackendTest, ARangeLastsUntilTheOperationIsDone) {
  std::unique_ptr<OpState> state = Prepared();
  EXPECT_FALSE(*backend_->Start(call_, state.get(), {}));
  EXPECT_FALSE(*backend_->Advance(call_, state.get()));
  inner_->answer = true;
  EXPECT_TRUE(*backend_->Advance(call_, state.get()));
  EXPECT_EQ(TakeRanges(), "hvdrun allgather 20\n");
  state.reset();
  EXPECT_EQ(TakeRanges(), "") << "it ends once";
}

TEST_F(RangedBackendTest, ARangeEndsWithAnError) {
  std::unique_ptr<OpState> state = Prepared();
  inner_->answer = Aborted("gone");
  EXPECT_EQ(backend_->Start(call_, state.get(), {}).status().message(), "gone");
  EXPECT_EQ(TakeRanges(), "hvdrun allgather 20\n");
  backend_->Abandon(std::move(state), true);
  EXPECT_EQ(inner_->said, "abandoned");
  EXPECT_EQ(TakeRanges(), "");
}

TEST_F(RangedBackendTest, ARangeEndsWhenTheOperationIsGivenUp) {
  backend_->Abandon(Prepared(), false);
  backend_->Abandon(nullptr, false);
  EXPECT_EQ(TakeRanges(), "hvdrun allgather 20\n");
  inner_->answer = Unsupported("no");
  std::unique_ptr<OpState> state;
  BufferDescriptor descriptor;
  EXPECT_EQ(backend_->Prepare(call_, &state, &descriptor).message(), "no");
  EXPECT_EQ(state, nullptr);
  EXPECT_EQ(TakeRanges(), "hvdrun allgather 20\n");
}

TEST_F(RangedBackendTest, AllElseIsTheInnerBackends) {
  const std::unique_ptr<OpState> state = Prepared();
  EXPECT_EQ(backend_->name(), "told");
  EXPECT_TRUE(backend_->UsesNccl());
  EXPECT_TRUE(backend_->IsExchange(call_) && !backend_->IsExchange({}));
  EXPECT_EQ(backend_->attendance(), inner_->attendance());
  backend_->WorkAhead(call_, state.get());
  EXPECT_EQ(inner_->said, "ahead");
  EXPECT_TRUE(backend_->Needs(call_, state.get(), 1));
  EXPECT_EQ(backend_->Awaits(call_, state.get()), "it");
  EXPECT_EQ(backend_->AwaitedBy(call_, state.get()).ranks, std::vector<uint32_t>{7});
  backend_->Withdraw(call_, state.get(), "late");
  EXPECT_EQ(inner_->said, "late");
  backend_->Abort(Aborted("ended"));
  EXPECT_EQ(inner_->said, "ended");
  backend_->Watch();
  EXPECT_EQ(inner_->said, "watched");
  backend_->Leave();
  EXPECT_EQ(inner_->said, "left");
}

// The engine skips Prepare, so there is no state.
TEST_F(RangedBackendTest, AnExchangeWithoutAnAnnouncementIsTheInnerBackends) {
  inner_->answer = true;
  EXPECT_TRUE(*backend_->Start(call_, nullptr, {}));
  backend_->WorkAhead(call_, nullptr);
  EXPECT_EQ(inner_->said, "ahead");
  EXPECT_EQ(TakeRanges(), "");
}

TEST(WithRanges, LeavesTheBackendAsItIsWithoutAProfiler) {
  std::string said;
  CudaBackendOptions options;
  options.warn = [&](const std::string& sentence) { said = sentence; };
  auto inner = std::make_unique<ToldBackend>();
  const DeviceBackend* own = inner.get();
  const std::unique_ptr<DeviceBackend> backend = WithRanges(std::move(inner), options);
  EXPECT_EQ(backend.get(), own);
  EXPECT_THAT(said, HasSubstr("no NVTX ranges are shown because there is no profiler"));
}

}  // namespace
}  // namespace hvd
