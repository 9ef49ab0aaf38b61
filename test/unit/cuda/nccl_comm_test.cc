#include "runtime/backends/nccl/nccl_comm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/backends/nccl/nccl_id.h"
#include "test/unit/cuda/nccl_world.h"

namespace hvd {
namespace {

using test::NcclWorld;
using testing::HasSubstr;

const NcclResult kNcclErrors[] = {kNcclCudaError,       kNcclSystemError,  kNcclInternalError,
                                  kNcclInvalidArgument, kNcclInvalidUsage, kNcclRemoteError,
                                  kNcclTimeout};

std::string Answered(const std::string& symbol, NcclResult error) {
  const std::string number = std::to_string(error);
  return symbol + " answered the words of " + number + " (" + number + ")";
}

TEST(NcclComm, StartsOverTheStoreAndCloses) {
  for (const int slowness : {0, 3}) {
    NcclWorld world(3, 21403, slowness);
    world.Start();
    EXPECT_EQ(world.nccl.Count("ncclGetUniqueId"), 1);
    EXPECT_EQ(world.nccl.Count("ncclCommInitRankConfig"), 3);
    for (auto& comm : world.comms) {
      const Result<bool> settled = comm->Settled();
      EXPECT_TRUE(settled.ok() && *settled);
    }
    world.Close();
    EXPECT_EQ(world.nccl.Count("ncclCommDestroy"), 3);
    EXPECT_EQ(world.nccl.Count("ncclCommAbort"), 0);
    EXPECT_THAT(world.comms[0]->Settled().status().message(), HasSubstr("used after its end"));
    EXPECT_TRUE(world.comms[0]->Close(world.now).ok());
    world.ExpectClean();
  }
}

// The runtime's thread looks for errors all the time, and the end is none.
TEST(NcclComm, IsWatchedFromItsBeginningToItsEnd) {
  NcclWorld world(2);
  world.Begin(0);
  EXPECT_TRUE(world.comms[0]->Watch().ok());
  world.Begin(1);
  while (!world.AdvanceAll()) EXPECT_TRUE(world.comms[0]->Watch().ok());
  for (auto& comm : world.comms) EXPECT_TRUE(comm->Close(world.now).ok());
  EXPECT_TRUE(world.comms[0]->Watch().ok());
  while (!world.AdvanceAll()) EXPECT_TRUE(world.comms[0]->Watch().ok());
  EXPECT_TRUE(world.comms[0]->Watch().ok());
  world.ExpectClean();
}

TEST(NcclComm, IsToldOfAnErrorThatComesUpLater) {
  NcclWorld world(1);
  world.Start();
  world.nccl.Fail("ncclCommGetAsyncError", kNcclSystemError);
  EXPECT_THAT(world.comms[0]->Watch().message(),
              HasSubstr(Answered("ncclCommGetAsyncError", kNcclSystemError)));
}

TEST(NcclComm, OneMemberNeedsNoStore) {
  NcclWorld world(1);
  world.Start();
  EXPECT_EQ(world.store.Get("nccl/world", {}).status().code(), Code::kInProgress);
  world.Close();
  world.ExpectClean();
}

TEST(NcclComm, IsNotUsedBeforeItIsReady) {
  NcclWorld world(2);
  world.Begin(0);
  EXPECT_FALSE(world.AdvanceAll());
  EXPECT_THAT(world.comms[0]->Settled().status().message(),
              HasSubstr("rank 0 on CUDA device 0 (Fake GPU, sm_90) (member 0 of 2 of world): the "
                        "communicator of NCCL is used before it is ready"));
  world.ExpectClean();
}

TEST(NcclComm, EachStageThatIsLateHasItsSentence) {
  {
    NcclWorld world(2);
    world.Begin(1);
    EXPECT_FALSE(world.AdvanceAll());
    world.now += std::chrono::seconds(30);
    const Status status = world.Advance(*world.comms[1], 1).status();
    EXPECT_EQ(status.code(), Code::kAborted);
    EXPECT_EQ(status.message(),
              "rank 1 on CUDA device 1 (Fake GPU, sm_90) (member 1 of 2 of world): member 0 has "
              "put no id of NCCL under 'nccl/world' within 30.0 s; look whether it lives and has "
              "a GPU");
    world.ExpectClean();
  }
  {
    NcclWorld world(2);
    world.Begin(0);
    EXPECT_FALSE(world.AdvanceAll());
    world.now += std::chrono::seconds(30);
    EXPECT_THAT(world.Advance(*world.comms[0], 0).status().message(),
                HasSubstr("ncclCommInitRankConfig has not ended within 30.0 s: some of the 2 "
                          "members have not come"));
    world.ExpectClean();
    EXPECT_EQ(world.nccl.Count("ncclCommAbort"), 1);
  }
  {
    NcclWorld world(2);
    world.Start();
    EXPECT_TRUE(world.comms[0]->Close(world.now).ok());
    EXPECT_FALSE(*world.Advance(*world.comms[0], 0));
    world.now += std::chrono::seconds(5);
    EXPECT_THAT(world.Advance(*world.comms[0], 0).status().message(),
                HasSubstr("ncclCommFinalize has not ended within 5.0 s"));
    world.ExpectClean();
  }
}

TEST(NcclComm, AnIdThatCannotBeMadeIsToldToAll) {
  NcclWorld world(3);
  world.nccl.Fail("ncclGetUniqueId", kNcclSystemError);
  for (uint32_t rank = 0; rank < 3; ++rank) world.Begin(rank);
  EXPECT_TRUE(world.AdvanceAll());
  const std::string first = world.Advance(*world.comms[0], 0).status().message();
  EXPECT_THAT(first, HasSubstr(Answered("ncclGetUniqueId", kNcclSystemError)));
  EXPECT_THAT(world.Advance(*world.comms[2], 2).status().message(),
              HasSubstr("(member 2 of 3 of world) gets no id of NCCL: " + first));
  world.ExpectClean();
}

TEST(NcclId, KeepsItsBytes) {
  NcclUniqueId id{};
  for (size_t i = 0; i < sizeof(id.bytes); ++i) id.bytes[i] = static_cast<char>(2 * i + 1);
  const Result<NcclUniqueId> back = DecodeNcclId(EncodeNcclId(id));
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(std::string(back->bytes, 128), std::string(id.bytes, 128));
  for (const std::string odd : {"", "id ", "id 0g", "else"}) {
    EXPECT_THAT(DecodeNcclId(odd).status().message(), HasSubstr("the store has no id of NCCL"));
  }
  std::string digits = EncodeNcclId(id);
  digits.back() = 'x';
  EXPECT_FALSE(DecodeNcclId(digits).ok());
}

// Every error of every call of a life from start to end: a sentence, and nothing left.
TEST(NcclComm, EachErrorOfEachCallIsASentence) {
  const std::string symbols[] = {"ncclCommInitRankConfig", "ncclCommGetAsyncError",
                                 "ncclCommRegister",       "ncclCommDeregister",
                                 "ncclCommFinalize",       "ncclCommDestroy"};
  for (const std::string& symbol : symbols) {
    for (const NcclResult error : kNcclErrors) {
      NcclWorld world(1);
      world.nccl.last_error = "a cable is loose";
      world.nccl.Fail(symbol, error);
      world.Begin(0);
      NcclComm& comm = *world.comms[0];
      const uint64_t memory = world.cuda.MakeMemory(64);
      Status status;
      for (int round = 0; status.ok() && round < 5; ++round) {
        status = world.Advance(comm, 0).status();
      }
      auto use = [&](CuStream) {
        const Status registered = comm.Register(reinterpret_cast<void*>(memory), 64);
        return registered.ok() ? comm.Close(world.now) : registered;
      };
      if (status.ok()) status = world.devices[0]->With(use);
      for (int round = 0; status.ok() && round < 5; ++round) {
        status = world.Advance(comm, 0).status();
      }
      EXPECT_THAT(status.message(), HasSubstr(Answered(symbol, error)));
      EXPECT_THAT(status.message(), HasSubstr("rank 0 on CUDA device 0"));
      EXPECT_THAT(status.message(), HasSubstr("NCCL's last error is 'a cable is loose'; "));
      EXPECT_EQ(status.code(), CodeOfNcclError(error));
      // And it stays the first one.
      world.nccl.Fail(symbol, kNcclSuccess, 1 << 20);
      EXPECT_EQ(comm.Settled().status().message(), status.message());
      world.comms.clear();
      world.ExpectClean();
    }
  }
}

TEST(NcclComm, AnErrorThatComesLaterIsFound) {
  NcclWorld world(2);
  world.Start();
  world.nccl.comms[1]->async_error = kNcclRemoteError;
  const Status status = world.comms[1]->Settled().status();
  EXPECT_EQ(status.code(), Code::kAborted);
  EXPECT_THAT(status.message(),
              HasSubstr(Answered("ncclCommGetAsyncError", kNcclRemoteError) +
                        "; another rank may be gone: look at what the others say"));
  EXPECT_TRUE(world.comms[0]->Settled().ok());
  world.ExpectClean();
}

TEST(NcclComm, NothingIsCalledAfterAnAbort) {
  NcclWorld world(2);
  world.Start();
  EXPECT_TRUE(world.comms[0]->Abort(Aborted("rank 1 is gone")).ok());
  EXPECT_TRUE(world.comms[0]->Abort(Aborted("again")).ok());
  const int asked = world.nccl.Count("ncclCommGetAsyncError");
  EXPECT_EQ(world.comms[0]->Settled().status().message(), "rank 1 is gone");
  EXPECT_EQ(world.Advance(*world.comms[0], 0).status().message(), "rank 1 is gone");
  EXPECT_EQ(world.comms[0]->Close(world.now).message(), "rank 1 is gone");
  EXPECT_EQ(world.comms[0]->Register(nullptr, 1).message(), "rank 1 is gone");
  EXPECT_EQ(world.nccl.Count("ncclCommGetAsyncError"), asked);
  EXPECT_EQ(world.nccl.Count("ncclCommAbort"), 1);
  world.ExpectClean();
}

TEST(NcclComm, AnAbortThatFailsIsTold) {
  NcclWorld world(1);
  world.Start();
  world.nccl.Fail("ncclCommAbort", kNcclInternalError);
  EXPECT_THAT(world.comms[0]->Abort(Aborted("why")).message(),
              HasSubstr(Answered("ncclCommAbort", kNcclInternalError)));
  EXPECT_EQ(world.comms[0]->Settled().status().message(), "why");
  world.ExpectClean();
}

// The other member never comes: only another thread ends the wait.
TEST(NcclComm, IsAbortedFromAnotherThread) {
  NcclWorld world(2);
  world.Begin(0);
  EXPECT_FALSE(world.AdvanceAll());
  std::atomic<bool> asked = false;
  std::thread other([&] {
    while (!asked.load()) std::this_thread::yield();
    EXPECT_TRUE(world.comms[0]->Abort(Aborted("the world ends")).ok());
  });
  Result<bool> done = false;
  while (done.ok() && !*done) {
    done = world.Advance(*world.comms[0], 0);
    asked.store(true);
  }
  other.join();
  EXPECT_EQ(done.status().message(), "the world ends");
  world.ExpectClean();
}

TEST(NcclComm, RegistersUntilItIsClosed) {
  NcclWorld world(1);
  world.Start();
  void* memory = reinterpret_cast<void*>(world.cuda.MakeMemory(64));
  EXPECT_TRUE(
      world.devices[0]->With([&](CuStream) { return world.comms[0]->Register(memory, 64); }).ok());
  world.Close();
  EXPECT_EQ(world.nccl.Count("ncclCommDeregister"), 1);
  world.ExpectClean();
}

TEST(NcclComm, SaysWhatAnOlderVersionHasNot) {
  NcclWorld world(1, 21403);
  world.Start();
  EXPECT_EQ(world.comms[0]->Register(nullptr, 1).message(),
            "NCCL 2.14.3 (the fake) has no registered buffers: they came with 2.19.1");
  EXPECT_TRUE(world.comms[0]->Settled().ok());  // it can still be used
  world.Close();
  world.ExpectClean();
}

}  // namespace
}  // namespace hvd
