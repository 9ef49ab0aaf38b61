// The work of a meeting of FakeNccl on the bytes.
#ifndef HVD_TEST_FAKES_NCCL_FAKE_NCCL_DATA_H_
#define HVD_TEST_FAKES_NCCL_FAKE_NCCL_DATA_H_

#include "test/fakes/nccl/fake_nccl.h"

namespace hvd::test {

DType DTypeOfNccl(NcclDataType type);
// The bytes that the call of a rank reads and writes, in a world of `size` ranks.
std::vector<FakeRange> RangesOf(const NcclCall& call, int rank, size_t size);
// All have arrived.
void MoveData(const FakeMeeting& meeting);

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_NCCL_FAKE_NCCL_DATA_H_
