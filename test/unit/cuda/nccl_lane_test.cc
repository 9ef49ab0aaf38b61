#include "runtime/backends/cuda/nccl_lane.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/backends/cuda/cuda_op.h"

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

CudaOp Marked(uintptr_t stream, uint64_t number) {
  CudaOp op;
  op.call.stream = reinterpret_cast<void*>(stream);
  op.mark_number = number;
  return op;
}

TEST(NewestOfEachStream, IsTheLastMarkOfEach) {
  constexpr uintptr_t kDefault = 0, kOther = 0x5000;
  CudaOp first = Marked(kDefault, 4), other = Marked(kOther, 2), newest = Marked(kDefault, 7),
         older = Marked(kDefault, 5);
  const std::vector<CudaOp*> ops = {&first, &other, &newest, &older};
  EXPECT_THAT(NewestOfEachStream(ops), UnorderedElementsAre(&newest, &other));
  EXPECT_THAT(NewestOfEachStream({}), ElementsAre());
}

// Its handle is the same in all threads, the stream is not.
TEST(NewestOfEachStream, IsEachMarkOfAStreamOfAThread) {
  constexpr uintptr_t kStreamOfThread = 2;  // CU_STREAM_PER_THREAD
  CudaOp first = Marked(kStreamOfThread, 1), second = Marked(kStreamOfThread, 2);
  const std::vector<CudaOp*> ops = {&first, &second};
  EXPECT_THAT(NewestOfEachStream(ops), ElementsAre(&first, &second));
}

}  // namespace
}  // namespace hvd
