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

TEST(ForeignCall, NoStackIsNothing) {
  const ForeignCall found = ForeignCallIn({});
  EXPECT_EQ(found.call + found.site + found.inside, "");
}

}  // namespace
}  // namespace hvd
