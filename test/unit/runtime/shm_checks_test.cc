// The behaviour of ShmPeers and BufferLeases when an index or the memory of a ring is damaged.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "runtime/backends/shm/buffer_leases.h"
#include "runtime/backends/shm/shm_peers.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {
namespace {

class ShmChecksDeathTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Result<UniqueFd> fd = CreateSharedMemory("hvd-test", JobPage::BytesFor(2));
    memory_ = Mapping::Map(fd->get(), JobPage::BytesFor(2)).value();
    page_ = JobPage::Format(memory_.data(), 2, 1);
  }
  // Overwrites the size of the first record in the ring of rank 0.
  void DamageFirstRecord(uint32_t bytes) {
    std::memcpy(page_.ring(0).data() + sizeof(uint64_t), &bytes, sizeof bytes);
  }
  Mapping memory_;
  JobPage page_;
};

TEST_F(ShmChecksDeathTest, ARecordOverTheLimit) {
  ShmPeers writer(page_, 0);
  EXPECT_FALSE(writer.Reserve(writer.max_record()).empty());
  EXPECT_DEATH(writer.Reserve(writer.max_record() + 1), "bytes <= max_record\\(\\) does not hold");
}

TEST_F(ShmChecksDeathTest, ARecordThatLeavesTheRing) {
  ShmPeers writer(page_, 0), reader(page_, 1);
  ASSERT_FALSE(writer.Reserve(8).empty());
  writer.Commit();
  EXPECT_EQ(reader.Peek(0).size(), 8u);
  DamageFirstRecord(1u << 31);
  EXPECT_DEATH(reader.Peek(0), "at \\+ sizeof\\(Frame\\) \\+ record_bytes <= ring_bytes_");
  EXPECT_DEATH(reader.Consume(0), "record_bytes, ring_bytes_ = 0, 2147483648, ");
}

TEST_F(ShmChecksDeathTest, AReaderAheadOfItsWriter) {
  ShmPeers writer(page_, 0);
  page_.rank(1).consumed[0] = uint64_t{1} << 40;
  EXPECT_DEATH(while (!writer.Reserve(writer.max_record()).empty()) writer.Commit(),
               "consumed <= tail_ && tail_ - consumed <= ring_bytes_ does not hold \\(r, consumed, "
               "tail_ = 1, ");
}

TEST_F(ShmChecksDeathTest, ARingWhoseSizeIsNoPowerOfTwo) {
  page_.header().ring_bytes -= 1;
  EXPECT_DEATH(ShmPeers(page_, 0), "ring_bytes_ & \\(ring_bytes_ - 1\\)");
}

TEST_F(ShmChecksDeathTest, AMemberThatALeaseDoesNotHave) {
  std::vector<std::byte> control(64);
  Lease lease{.control = control.data(), .control_bytes = 64, .members = 2};
  EXPECT_FALSE(lease.ReleasedBy(1));
  EXPECT_DEATH(lease.ReleasedBy(2), "member < members does not hold \\(member, members = 2, 2\\)");
}

}  // namespace
}  // namespace hvd
