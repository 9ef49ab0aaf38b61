// The GPUs of a host, read from files as the kernel and NVIDIA's driver write them.
#include "launcher/agent/gpu/gpu_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "test/fakes/temporary_folder.h"

namespace hvd {
namespace {

using ::testing::IsEmpty;
using ::testing::SizeIs;

class GpuDevicesTest : public TemporaryFolderTest {
 protected:
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(folder_ + path).parent_path());
    std::ofstream(folder_ + path) << text;
  }
  void AddGpu(const std::string& bus, const std::string& minor, const std::string& node) {
    Write("/proc/driver/nvidia/gpus/" + bus + "/information",
          "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\nGPU UUID: \t GPU-of-" + bus +
              "\nBus Location: \t " + bus + "\nDevice Minor: \t " + minor + "\n");
    Write("/sys/bus/pci/devices/" + bus + "/numa_node", node + "\n");
    Write("/dev/nvidia" + minor, "");
  }
};

TEST_F(GpuDevicesTest, AreInTheOrderOfTheirPciAddresses) {
  AddGpu("0000:b3:00.0", "0", "1");
  AddGpu("0000:17:00.0", "1", "0");
  const std::vector<GpuDevice> devices = GpusBelow(folder_);
  ASSERT_THAT(devices, SizeIs(2));
  EXPECT_EQ(devices[0].bus, "0000:17:00.0");
  EXPECT_EQ(devices[0].uuid, "GPU-of-0000:17:00.0");
  EXPECT_EQ(devices[0].node, 0);
  EXPECT_EQ(devices[1].node, 1);
}

TEST_F(GpuDevicesTest, OfAContainerAreThoseWithADeviceFile) {
  AddGpu("0000:17:00.0", "0", "0");
  AddGpu("0000:b3:00.0", "1", "1");
  std::filesystem::remove(folder_ + "/dev/nvidia0");
  const std::vector<GpuDevice> devices = GpusBelow(folder_);
  ASSERT_THAT(devices, SizeIs(1));
  EXPECT_EQ(devices[0].bus, "0000:b3:00.0");
}

TEST_F(GpuDevicesTest, HaveNoNodeWhereTheKernelKnowsNone) {
  AddGpu("0000:17:00.0", "0", "-1");
  std::filesystem::remove_all(folder_ + "/sys");
  ASSERT_THAT(GpusBelow(folder_), SizeIs(1));
  EXPECT_EQ(GpusBelow(folder_)[0].node, -1);
}

TEST_F(GpuDevicesTest, AreNoneWithoutADriver) { EXPECT_THAT(GpusBelow(folder_), IsEmpty()); }

TEST(InformationOf, FindsALineByItsKey) {
  EXPECT_EQ(InformationOf("IRQ: \t 7\nDevice Minor: \t 3\n", "Device Minor"), "3");
  EXPECT_EQ(InformationOf("Device Minor: 3", "Device"), "");
  EXPECT_EQ(InformationOf("", "IRQ"), "");
}

}  // namespace
}  // namespace hvd
