// In which collective of another library a Python stack stands, and where in the user's script.
#include "launcher/stall/verdict/foreign_call.h"

#include <gtest/gtest.h>

namespace hvd {
namespace {

ForeignCall CallIn(const std::string& frames) {
  return ForeignCallIn(PySpyFrames("Thread 7 (idle): \"MainThread\"\n" + frames, 7));
}

constexpr const char* kMain =
    "    main (/home/u/train.py:41)\n    <module> (/home/u/train.py:60)\n";
constexpr const char* kC10d =
    "    all_reduce (/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py:1316)\n";

TEST(ForeignCall, IsTheFunctionThatTheScriptHasCalled) {
  const ForeignCall found = CallIn(
      std::string("    _wait (/v/lib/python3.12/site-packages/torch/distributed/"
                  "distributed_c10d.py:9)\n") +
      kC10d + "    wrapper (/v/lib/python3.12/site-packages/torch/distributed/c10d_logger.py:8)\n" +
      kMain);
  EXPECT_EQ(found.call, "all_reduce");
  EXPECT_EQ(found.site, "/home/u/train.py:41 in main");
  EXPECT_FALSE(found.may_compute || found.once || found.is_ours);
}

TEST(ForeignCall, GradientsAreExchangedInBackwardWhichMayCompute) {
  const ForeignCall found =
      CallIn(std::string("    backward (/v/site-packages/torch/autograd/__init__.py:197)\n"
                         "    Tensor.backward (/v/site-packages/torch/_tensor.py:488)\n") +
             kMain);
  EXPECT_EQ(found.call, "backward");
  EXPECT_TRUE(found.may_compute);
}

TEST(ForeignCall, TheForwardPassIsOneOnlyWhereItHasCalledNothing) {
  const std::string forward =
      "    DistributedDataParallel.forward (/v/site-packages/torch/nn/parallel/distributed.py:1)\n";
  EXPECT_EQ(CallIn(forward + kMain).call, "forward");
  EXPECT_TRUE(CallIn(forward + kMain).may_compute);
  EXPECT_EQ(
      CallIn("    linear (/v/site-packages/torch/nn/functional.py:1)\n" + forward + kMain).call,
      "");
}

TEST(ForeignCall, AStackElsewhereHasALineAndWhatItHasCalled) {
  const ForeignCall found =
      CallIn(std::string("    _save (/v/site-packages/torch/serialization.py:900)\n"
                         "    save (/v/site-packages/torch/serialization.py:600)\n") +
             kMain + kC10d);  // outside of the script's line
  EXPECT_EQ(found.call, "");
  EXPECT_EQ(found.inside, "save (torch/serialization.py)");
  EXPECT_EQ(found.site, "/home/u/train.py:41 in main");
}

TEST(ForeignCall, TheBeginningIsCalledOnceAndOursIsKnown) {
  EXPECT_TRUE(CallIn(std::string("    init_process_group (/v/site-packages/torch/distributed/"
                                 "distributed_c10d.py:1)\n") +
                     kMain)
                  .once);
  EXPECT_TRUE(CallIn(std::string("    wait (/v/site-packages/horovod/torch/process_group.py:1)\n") +
                     kC10d + kMain)
                  .is_ours);
}

TEST(ForeignCall, OfMpiIsReadFromTheLineThatHasCalledIt) {
  const std::pair<const char*, const char*> lines[] = {
      {"  c.Allreduce(MPI.IN_PLACE, x)", "Allreduce"},
      {"comm.Barrier()", "Barrier"},
      {"MPI.COMM_WORLD.barrier()", "barrier"},
      {"total = self.comm.allreduce(float(loss.item()), op=MPI.SUM)", "allreduce"},
      {"MPI.Request.Waitall(requests)", "Waitall"},
      {"world.Allgather([x, MPI.DOUBLE], (y, MPI.DOUBLE))", "Allgather"},
      {"comm.Barrier()  # all have written", "Barrier"},
      {"comm.Allreduce(", "Allreduce"},  // the call goes on in the next line
      // Something else on the line may take as long.
      {"comm.allreduce(loss(x))", ""},
      {"comm.allreduce(x @ y)", ""},
      {"f(x); comm.Barrier()", ""},
      {"parts[0](comm.bcast(x))", ""},
      {"print(f'{comm.allreduce(x)}')", ""},
      // Other libraries.
      {"np.add.reduce(x)", ""},
      {"x.gather(1, index)", ""},
      {"socket.recv(100)", ""},
      {"comm.Get_rank()", ""},
      {"Barrier()", ""},
      {"time.sleep(3)", ""},
      {"", ""}};
  for (const auto& [line, call] : lines) EXPECT_EQ(MpiCallIn(line), call) << line;
}

TEST(ForeignCall, NoStackIsNothing) {
  const ForeignCall found = ForeignCallIn({});
  EXPECT_EQ(found.call + found.site + found.inside, "");
}

}  // namespace
}  // namespace hvd
