#include "runtime/segment/mapped_page.h"

#include <gtest/gtest.h>

#include <utility>

namespace hvd {
namespace {

constexpr uint32_t kRanks = 2;

UniqueFd PageFd(bool formatted) {
  const size_t bytes = JobPage::BytesFor(kRanks);
  Result<UniqueFd> fd = CreateSharedMemory("hvd-test", bytes);
  Mapping memory = Mapping::Map(fd->get(), bytes).value();
  if (formatted) JobPage::Format(memory.data(), kRanks, 17);
  return std::move(*fd);
}

TEST(MapPage, ThePageOutlivesItsDescriptorAndMoves) {
  UniqueFd fd = PageFd(true);
  Result<MappedPage> mapped = MapPage(fd.get(), JobPage::BytesFor(kRanks));
  ASSERT_TRUE(mapped.ok()) << mapped.status().message();
  fd.Reset();
  MappedPage kept;
  EXPECT_FALSE(kept.page.valid());
  kept = std::move(*mapped);
  EXPECT_EQ(kept.page.header().generation, 17u);
  EXPECT_TRUE(kept.memory.Contains(&kept.page.header(), sizeof(PageHeader)));
}

TEST(MapPage, RefusesMemoryThatIsNoPage) {
  UniqueFd fd = PageFd(false);
  Result<MappedPage> mapped = MapPage(fd.get(), JobPage::BytesFor(kRanks));
  ASSERT_FALSE(mapped.ok());
  EXPECT_EQ(mapped.status().message(), "the shared memory from the agent is not a job page");
}

TEST(MapPage, RefusesADescriptorThatCannotBeMapped) {
  EXPECT_FALSE(MapPage(-1, JobPage::BytesFor(kRanks)).ok());
}

}  // namespace
}  // namespace hvd
