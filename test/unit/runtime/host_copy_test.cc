#include "runtime/device/host_copy.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <vector>

#include "runtime/device/host_kernel_variants.h"

namespace hvd {
namespace {

constexpr size_t kMargin = 128;
constexpr std::byte kUntouched{0xee};

std::vector<std::byte> Numbered(size_t bytes) {
  std::vector<std::byte> memory(bytes);
  for (size_t i = 0; i < bytes; ++i) memory[i] = static_cast<std::byte>(i * 7 + i / 251);
  return memory;
}

// Of all sizes around the steps of the loop, between all places in a line.
template <typename CopyFunction>
void ExpectCopies(CopyFunction copy) {
  for (size_t bytes : {0, 1, 63, 64, 65, 255, 256, 1279, 1280, 1281, 8191, 8192, 8193, 70001}) {
    const std::vector<std::byte> source = Numbered(bytes + kMargin);
    for (size_t from : {0, 1, 32, 63}) {
      for (size_t to : {0, 1, 32, 63}) {
        std::vector<std::byte> target(bytes + 2 * kMargin, kUntouched);
        copy(target.data() + to, source.data() + from, bytes);
        std::vector<std::byte> expected(target.size(), kUntouched);
        if (bytes != 0) std::memcpy(expected.data() + to, source.data() + from, bytes);
        ASSERT_EQ(target, expected) << bytes << " bytes from " << from << " to " << to;
      }
    }
  }
}

TEST(HostCopy, EveryVariantCopiesWhatItIsGivenAndNothingElse) {
  for (const KernelVariant& variant : RunnableKernelVariants()) {
    SCOPED_TRACE(variant.name);
    ExpectCopies(variant.kernels->copy);
  }
}

TEST(HostCopy, LittleAndMuchAreCopied) { ExpectCopies(CopyRange); }

TEST(HostCopy, MovesWhatOverlaps) {
  for (size_t bytes : {100, 20000}) {
    for (ptrdiff_t by : {-64, -1, 0, 1, 64}) {
      std::vector<std::byte> memory = Numbered(bytes + 2 * kMargin);
      std::vector<std::byte> expected = memory;
      std::memmove(expected.data() + kMargin + by, expected.data() + kMargin, bytes);
      MoveRange(memory.data() + kMargin + by, memory.data() + kMargin, bytes);
      ASSERT_EQ(memory, expected) << bytes << " bytes by " << by;
    }
  }
}

TEST(HostCopy, MovesWhatLiesApart) { ExpectCopies(MoveRange); }

}  // namespace
}  // namespace hvd
