// NVIDIA's management library, played by one that says what HVD_FAKE_NVML tells it.
#include "launcher/agent/gpu/nvml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include "launcher/agent/gpu/nvml_api.h"

namespace hvd {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

GpuReport Play(const char* words) {
  ::setenv("HVD_FAKE_NVML", words, 1);
  return AskNvml(HVD_FAKE_NVML_LIBRARY);
}

// Sizes and places as the library has them on 64 bits: it fills memory of ours.
static_assert(sizeof(nvml::Memory) == 24);
static_assert(sizeof(nvml::Process) == 24 && offsetof(nvml::Process, gpu_instance) == 16);

TEST(Nvml, TellsTheDriverAndEachGpu) {
  const GpuReport report = Play("gpus=2 driver=580.65.06 cuda=13010");
  EXPECT_EQ(report.trouble, "");
  EXPECT_EQ(report.driver, "580.65.06");
  EXPECT_EQ(report.cuda, "13.1");
  ASSERT_THAT(report.gpus, SizeIs(2));
  EXPECT_EQ(report.gpus[1].name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(report.gpus[1].memory_mib, 81559U);
  EXPECT_EQ(report.gpus[1].ecc_errors, 0U);
  EXPECT_THAT(GpuFacts(report), ElementsAre("gpu.driver=580.65.06", "gpu.cuda=13.1",
                                            "gpu=NVIDIA H100 80GB HBM3 81559 MiB",
                                            "gpu=NVIDIA H100 80GB HBM3 81559 MiB",
                                            "gpu.link=0 1 between sockets", "gpu.said=1"));
}

TEST(Nvml, TellsWhatIsWrongWithAGpu) {
  const std::vector<std::string> facts = GpuFacts(
      Play("gpus=3 ecc0=3 reset0 broken1 slowed1=72 process2=4711 mode2=2 divided2 nvlink"));
  for (const char* fact :
       {"gpu.ecc=0 3", "gpu.memory=0 reset", "gpu.memory=1 broken", "gpu.slowed=1 heat",
        "gpu.process=2 4711", "gpu.mode=2 prohibited", "gpu.divided=2 yes", "gpu.link=1 2 NVLink"})
    EXPECT_THAT(facts, Contains(fact));
}

TEST(Nvml, NamesHeatAndPowerAndNotWhatIsUsual) {
  EXPECT_THAT(Play("gpus=1 slowed0=5").gpus[0].slowed, IsEmpty()) << "idle, at its power limit";
  EXPECT_THAT(Play("gpus=1 slowed0=136").gpus[0].slowed, ElementsAre("the power supply's brake"));
  EXPECT_THAT(Play("gpus=1 slowed0=8").gpus[0].slowed, ElementsAre("its hardware"));
}

TEST(Nvml, GoesOnPastAGpuThatDoesNotAnswer) {
  const GpuReport report = Play("gpus=3 lost1");
  EXPECT_EQ(report.trouble, "GPU 1 does not answer: Unknown Error");
  EXPECT_THAT(report.gpus, SizeIs(2));
}

TEST(Nvml, SaysWhyThereIsNothing) {
  EXPECT_EQ(Play("refuse").trouble, "the driver does not answer: Unknown Error");
  const GpuReport absent = AskNvml("libnvidia-ml.of-nobody.so");
  EXPECT_THAT(absent.trouble, HasSubstr("cannot be loaded: libnvidia-ml.of-nobody.so"));
  EXPECT_THAT(GpuFacts(absent), SizeIs(2));
}

// Any library without those functions will do.
TEST(Nvml, DoesWithoutFunctionsThatALibraryLacks) {
  EXPECT_EQ(AskNvml("libm.so.6").trouble, "the driver does not answer: error 3");
}

}  // namespace
}  // namespace hvd
