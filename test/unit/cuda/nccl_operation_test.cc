// Each operation over a fake NCCL that moves the bytes, against the processor's results.
#include "runtime/backends/nccl/nccl_operation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "runtime/device/host_reduce.h"
#include "test/fakes/element_values.h"
#include "test/unit/cuda/nccl_world.h"

namespace hvd {
namespace {

using test::NcclWorld;
using testing::HasSubstr;

constexpr NcclAbilities kAbilities{.version = 23007, .compute_capability = 90};
const NcclResult kErrorsOfCalls[] = {kNcclCudaError,       kNcclSystemError,  kNcclInternalError,
                                     kNcclInvalidArgument, kNcclInvalidUsage, kNcclRemoteError,
                                     kNcclTimeout};
constexpr uint64_t kBufferBytes = 4096;

std::byte* Bytes(DeviceAddress address) { return reinterpret_cast<std::byte*>(address); }

// A value of every type: 0 and 1 for truth values, small whole numbers otherwise.
double ValueAt(DType dtype, uint32_t rank, uint64_t i) {
  const auto value = static_cast<double>((rank + i) % 3);
  return dtype == DType::kBool ? (value > 0 ? 1 : 0) : value;
}

class NcclOperationTest : public testing::TestWithParam<int> {
 protected:
  static constexpr uint32_t kRanks = 3;

  void SetUp() override {
    world_.Start();
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      buffers_.push_back({Memory(kBufferBytes), kBufferBytes});
    }
  }
  void TearDown() override {
    world_.ExpectClean();
    EXPECT_EQ(world_.cuda.Waits(), static_cast<int>(kRanks));  // at the end of each device
  }

  DeviceAddress Memory(uint64_t bytes) {
    const DeviceAddress address = world_.cuda.MakeMemory(bytes);
    std::memset(Bytes(address), 0, bytes);
    return address;
  }
  DeviceAddress Input(DType dtype, uint32_t rank, uint64_t elements) {
    const DeviceAddress address = Memory(elements * SizeOf(dtype));
    for (uint64_t i = 0; i < elements; ++i) {
      test::Write(dtype, ValueAt(dtype, rank, i), Bytes(address) + i * SizeOf(dtype));
    }
    return address;
  }
  using MakePlan = std::function<Result<NcclPlan>(uint32_t rank)>;
  // One member after the other gives its plan, as far as NCCL lets it.
  void Begin(const MakePlan& make) {
    operations_.clear();
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      Result<NcclPlan> plan = make(rank);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      operations_.push_back(std::make_unique<NcclOperation>(std::move(*plan), *world_.comms[rank],
                                                            *world_.devices[rank]));
    }
  }
  void Do(const MakePlan& make) {
    Begin(make);
    for (int round = 0; round <= GetParam() + 1; ++round) {
      for (auto& operation : operations_) {
        const Result<bool> given = operation->Advance();
        ASSERT_TRUE(given.ok()) << given.status().message();
        EXPECT_EQ(*given, round >= GetParam() || *given);
      }
      world_.cuda.Run();  // what follows the calls too early would be done too early
    }
    ASSERT_TRUE(world_.cuda.Run());
  }
  // The processor's result for the inputs of all ranks.
  std::vector<std::byte> Expected(const ReduceSpec& spec, const std::vector<DeviceAddress>& inputs,
                                  uint64_t elements) {
    std::vector<const void*> pointers;
    for (const DeviceAddress input : inputs) pointers.push_back(Bytes(input));
    std::vector<std::byte> result(elements * SizeOf(spec.dtype));
    void* output = result.data();
    ReduceRange(spec, pointers, {&output, 1}, 0, elements);
    return result;
  }
  void ExpectEqual(DeviceAddress address, const std::vector<std::byte>& expected,
                   const std::string& what) {
    const std::vector<std::byte> found(Bytes(address), Bytes(address) + expected.size());
    EXPECT_TRUE(found == expected) << what;
  }
  void CheckAllreduce(const NcclReduction& reduction, const ReduceSpec& spec, bool in_place);

  NcclWorld world_{kRanks, 23007, GetParam()};
  std::vector<NcclBuffer> buffers_;
  std::vector<std::unique_ptr<NcclOperation>> operations_;
};
INSTANTIATE_TEST_SUITE_P(AnswersOfNccl, NcclOperationTest, testing::Values(0, 2));

// Two small tensors that are packed, an empty one and a large one.
void NcclOperationTest::CheckAllreduce(const NcclReduction& reduction, const ReduceSpec& spec,
                                       bool in_place) {
  const std::vector<uint64_t> sizes = {5, 0, 301, 7};
  std::vector<std::vector<NcclTensor>> tensors(kRanks);
  std::vector<std::vector<DeviceAddress>> inputs(sizes.size());
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (size_t i = 0; i < sizes.size(); ++i) {
      const DeviceAddress from = Input(reduction.dtype, rank, sizes[i]);
      inputs[i].push_back(from);
      const DeviceAddress to = in_place ? from : Memory(sizes[i] * SizeOf(reduction.dtype));
      tensors[rank].push_back({from, to, sizes[i]});
    }
  }
  std::vector<std::vector<std::byte>> expected;
  for (size_t i = 0; i < sizes.size(); ++i) expected.push_back(Expected(spec, inputs[i], sizes[i]));
  std::vector<std::byte> first(Bytes(inputs[2][0]),
                               Bytes(inputs[2][0]) + 301 * SizeOf(reduction.dtype));
  Do([&](uint32_t rank) {
    return PlanAllreduce(reduction, kAbilities, tensors[rank], {buffers_[rank], 150});
  });
  const std::string what = std::string(NameOf(reduction.dtype)) + " by operation " +
                           std::to_string(static_cast<int>(reduction.op));
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    for (size_t i = 0; i < sizes.size(); ++i) ExpectEqual(tensors[rank][i].to, expected[i], what);
  }
  if (!in_place) ExpectEqual(inputs[2][0], first, what + ": the input");
}

TEST_P(NcclOperationTest, AllreducesEveryTypeByEveryOperation) {
  const std::pair<ReduceOp, Arithmetic> operations[] = {{ReduceOp::kSum, Arithmetic::kSum},
                                                        {ReduceOp::kAverage, Arithmetic::kSum},
                                                        {ReduceOp::kMin, Arithmetic::kMin},
                                                        {ReduceOp::kMax, Arithmetic::kMax},
                                                        {ReduceOp::kProduct, Arithmetic::kProduct}};
  int done = 0;
  for (int type = 0; type < kDTypeCount; ++type) {
    for (const auto& [op, arithmetic] : operations) {
      const NcclReduction reduction{op, static_cast<DType>(type), 1, 1, kRanks, kRanks};
      if (!StepsOfReduction(reduction, kAbilities).ok()) continue;
      const double divisor = op == ReduceOp::kAverage ? kRanks : 1;
      CheckAllreduce(reduction,
                     {.dtype = reduction.dtype, .arithmetic = arithmetic, .divisor = divisor},
                     type % 2 == 0);
      done += 1;
    }
  }
  EXPECT_EQ(done, 11 * 5 - 5);  // all but int16, uint16 and averages of bool and integers
  EXPECT_GT(world_.nccl.Count("ncclGroupStart"), 0);
}

TEST_P(NcclOperationTest, ScalesAsTheProcessorDoes) {
  const struct {
    ReduceOp op;
    Arithmetic arithmetic;
    double prescale, postscale;
  } table[] = {
      {ReduceOp::kSum, Arithmetic::kSum, 0.5, 1},
      {ReduceOp::kSum, Arithmetic::kSum, 2, 4},
      {ReduceOp::kSum, Arithmetic::kSum, 1, 0.25},
      {ReduceOp::kAverage, Arithmetic::kSum, 3, 1},
      {ReduceOp::kMin, Arithmetic::kMin, -2, 0.5},
      {ReduceOp::kMax, Arithmetic::kMax, 4, 1},
      {ReduceOp::kProduct, Arithmetic::kProduct, 2, 0.25},
  };
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    for (const auto& row : table) {
      const double divisor = row.op == ReduceOp::kAverage ? kRanks : 1;
      CheckAllreduce({row.op, dtype, row.prescale, row.postscale, kRanks, kRanks},
                     {.dtype = dtype,
                      .arithmetic = row.arithmetic,
                      .prescale = row.prescale,
                      .postscale = row.postscale,
                      .divisor = divisor},
                     false);
    }
  }
  EXPECT_EQ(world_.nccl.Count("ncclRedOpCreatePreMulSum"), world_.nccl.Count("ncclRedOpDestroy"));
  EXPECT_GT(world_.nccl.Count("ncclRedOpDestroy"), 0);
}

TEST_P(NcclOperationTest, BroadcastsEveryType) {
  for (int type = 0; type < kDTypeCount; ++type) {
    const auto dtype = static_cast<DType>(type);
    const DeviceAddress root = Input(dtype, 1, 33);
    std::vector<DeviceAddress> outputs;
    for (uint32_t rank = 0; rank < kRanks; ++rank) outputs.push_back(Memory(33 * SizeOf(dtype)));
    Do([&](uint32_t rank) -> Result<NcclPlan> {
      return PlanBroadcast(dtype, {rank == 1 ? root : 0, outputs[rank], 33}, 1);
    });
    const std::vector<std::byte> expected(Bytes(root), Bytes(root) + 33 * SizeOf(dtype));
    for (const DeviceAddress output : outputs) ExpectEqual(output, expected, "a broadcast");
  }
}

TEST_P(NcclOperationTest, GathersEvenAndUnevenParts) {
  const std::vector<std::vector<uint64_t>> shapes = {{4, 4, 4}, {1, 0, 6}, {0, 5, 0}, {0, 0, 0}};
  for (const std::vector<uint64_t>& parts : shapes) {
    std::vector<DeviceAddress> inputs, outputs;
    std::vector<std::byte> expected;
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      inputs.push_back(Input(DType::kInt16, rank, parts[rank]));
      outputs.push_back(Memory(64));
      expected.insert(expected.end(), Bytes(inputs[rank]), Bytes(inputs[rank]) + 2 * parts[rank]);
    }
    Do([&](uint32_t rank) -> Result<NcclPlan> {
      return PlanAllgather(DType::kInt16, inputs[rank], outputs[rank], parts, rank);
    });
    for (const DeviceAddress output : outputs) ExpectEqual(output, expected, "an allgather");
  }
}

TEST_P(NcclOperationTest, ScattersEvenAndUnevenParts) {
  const std::vector<std::vector<uint64_t>> shapes = {{4, 4, 4}, {5, 4, 4}, {2, 0, 0}, {0, 0, 0}};
  for (const std::vector<uint64_t>& parts : shapes) {
    for (const double scale : {1.0, 2.0}) {
      const uint64_t all = parts[0] + parts[1] + parts[2];
      std::vector<DeviceAddress> inputs, outputs;
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        inputs.push_back(Input(DType::kFloat32, rank, all));
        outputs.push_back(Memory(64));
      }
      const std::vector<std::byte> expected = Expected(
          {.arithmetic = Arithmetic::kMax, .prescale = scale, .postscale = scale}, inputs, all);
      const NcclReduction reduction{ReduceOp::kMax, DType::kFloat32, scale, scale, kRanks, kRanks};
      Do([&](uint32_t rank) {
        return PlanReducescatter(reduction, kAbilities, inputs[rank], outputs[rank], parts, rank,
                                 buffers_[rank]);
      });
      size_t begin = 0;
      for (uint32_t rank = 0; rank < kRanks; ++rank) {
        const std::vector<std::byte> part(
            expected.begin() + static_cast<long>(begin),
            expected.begin() + static_cast<long>(begin + parts[rank] * 4));
        ExpectEqual(outputs[rank], part, "a reducescatter");
        begin += parts[rank] * 4;
      }
    }
  }
}

// counts[i][k]: rows from i to k.
TEST_P(NcclOperationTest, SendsPartsOfAnySizeToAll) {
  using Counts = std::vector<std::vector<uint64_t>>;
  const Counts some = {{1, 2, 0}, {0, 3, 4}, {5, 0, 2}}, one = {{0, 0, 3}, {0, 0, 0}, {0, 0, 0}};
  for (const Counts& counts : {some, one}) {
    std::vector<DeviceAddress> inputs, outputs;
    Counts received(kRanks);
    std::vector<std::vector<std::byte>> expected(kRanks);
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      inputs.push_back(Input(DType::kUint16, rank, 16));
      outputs.push_back(Memory(64));
      for (uint32_t from = 0; from < kRanks; ++from) received[rank].push_back(counts[from][rank]);
    }
    for (uint32_t from = 0; from < kRanks; ++from) {
      const std::byte* row = Bytes(inputs[from]);
      for (uint32_t to = 0; to < kRanks; ++to) {
        expected[to].insert(expected[to].end(), row, row + 2 * counts[from][to]);
        row += 2 * counts[from][to];
      }
    }
    Do([&](uint32_t rank) -> Result<NcclPlan> {
      return PlanAlltoall(DType::kUint16, inputs[rank], outputs[rank], counts[rank],
                          received[rank]);
    });
    for (uint32_t rank = 0; rank < kRanks; ++rank) {
      ExpectEqual(outputs[rank], expected[rank], "an alltoall");
    }
  }
}

NcclPlan MaxOfOneByte(const NcclBuffer& buffer) {
  NcclPlan plan;
  plan.calls.push_back({.kind = NcclCallKind::kAllReduce,
                        .from = buffer.address,
                        .to = buffer.address,
                        .count = 1,
                        .op = kNcclMax});
  return plan;
}

TEST_P(NcclOperationTest, ItEndsWhenAllHaveCome) {
  Begin([&](uint32_t rank) -> Result<NcclPlan> { return MaxOfOneByte(buffers_[rank]); });
  for (uint32_t rank = 0; rank < kRanks; ++rank) {
    Result<bool> given = false;
    while (given.ok() && !*given) given = operations_[rank]->Advance();
    ASSERT_TRUE(given.ok());
    EXPECT_EQ(world_.cuda.Run(), rank + 1 == kRanks);
  }
}

// A member that dies leaves the others in the collective; its end and theirs set them free.
TEST_P(NcclOperationTest, AnAbortEndsWhatIsUnderWay) {
  Begin([&](uint32_t rank) -> Result<NcclPlan> { return MaxOfOneByte(buffers_[rank]); });
  for (uint32_t rank = 0; rank < 2; ++rank) {
    Result<bool> given = false;
    while (given.ok() && !*given) given = operations_[rank]->Advance();
  }
  EXPECT_FALSE(world_.cuda.Run());
  for (uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_TRUE(world_.comms[rank]->Abort(Aborted("rank 2 is gone")).ok());
  }
  EXPECT_TRUE(world_.cuda.Run());
  EXPECT_EQ(operations_[2]->Advance().status().message(), "");
  EXPECT_TRUE(world_.comms[2]->Abort(Aborted("the world ends")).ok());
  (void)world_.cuda.Run();
}

// Each call of each operation with each error: one sentence, a balanced group, nothing left.
TEST(NcclOperationErrors, EachErrorOfEachCallIsASentence) {
  const std::vector<uint64_t> uneven = {2, 1}, even = {2, 2};
  const NcclReduction scaled{ReduceOp::kSum, DType::kFloat32, 0.3, 1, 2, 2};
  const struct {
    const char* symbol;
    int after;
    std::function<Result<NcclPlan>(DeviceAddress a, DeviceAddress b)> make;
  } table[] = {
      {"ncclAllReduce", 0,
       [&](auto a, auto b) {
         const NcclTensor tensor{a, b, 4};
         return PlanAllreduce({}, kAbilities, {&tensor, 1}, {});
       }},
      {"ncclAllReduce", 1,  // the second of a group
       [&](auto a, auto b) {
         const NcclTensor tensors[] = {{a, a, 4}, {b, b, 4}};
         return PlanAllreduce({}, kAbilities, tensors, {});
       }},
      {"ncclRedOpCreatePreMulSum", 0,
       [&](auto a, auto b) {
         const NcclTensor tensor{a, b, 4};
         return PlanAllreduce(scaled, kAbilities, {&tensor, 1}, {});
       }},
      {"ncclRedOpDestroy", 0,
       [&](auto a, auto b) {
         const NcclTensor tensor{a, b, 4};
         return PlanAllreduce(scaled, kAbilities, {&tensor, 1}, {});
       }},
      {"ncclBroadcast", 0,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanBroadcast(DType::kInt8, {a, b, 4}, 0);
       }},
      {"ncclAllGather", 0,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanAllgather(DType::kInt8, a, b, even, 0);
       }},
      {"ncclBroadcast", 1,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanAllgather(DType::kInt8, a, b, uneven, 0);
       }},
      {"ncclReduceScatter", 0,
       [&](auto a, auto b) { return PlanReducescatter({}, kAbilities, a, b, even, 0, {}); }},
      {"ncclReduce", 1,
       [&](auto a, auto b) { return PlanReducescatter({}, kAbilities, a, b, uneven, 0, {}); }},
      {"ncclSend", 0,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanAlltoall(DType::kInt8, a, b, even, even);
       }},
      {"ncclRecv", 1,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanAlltoall(DType::kInt8, a, b, even, even);
       }},
      {"ncclGroupStart", 0,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanAlltoall(DType::kInt8, a, b, even, even);
       }},
      {"ncclGroupEnd", 0,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanAlltoall(DType::kInt8, a, b, even, even);
       }},
      {"ncclCommGetAsyncError", 0,
       [&](auto a, auto b) -> Result<NcclPlan> {
         return PlanBroadcast(DType::kInt8, {a, b, 4}, 0);
       }},
  };
  for (const auto& row : table) {
    for (const NcclResult error : kErrorsOfCalls) {
      NcclWorld world(2);
      world.Start();
      const DeviceAddress a = world.cuda.MakeMemory(64), b = world.cuda.MakeMemory(64);
      Result<NcclPlan> plan = row.make(a, b);
      ASSERT_TRUE(plan.ok());
      NcclOperation operation(std::move(*plan), *world.comms[0], *world.devices[0]);
      world.nccl.Fail(row.symbol, error, row.after);
      const Status status = operation.Advance().status();
      const std::string number = std::to_string(error);
      EXPECT_THAT(status.message(), HasSubstr("rank 0 on CUDA device 0 (Fake GPU, sm_90) (member "
                                              "0 of 2 of world): " +
                                              std::string(row.symbol) + " answered the words of " +
                                              number + " (" + number + ")"));
      EXPECT_EQ(status.code(), CodeOfNcclError(error));
      EXPECT_EQ(world.comms[0]->Settled().status().message(), status.message());
      for (auto& comm : world.comms) EXPECT_TRUE(comm->Abort(status).ok());
      world.cuda.Run();
      world.ExpectClean();
    }
  }
}

// The driver fails before or after NCCL's calls.
TEST(NcclOperationErrors, AnErrorOfTheDeviceIsPassedOn) {
  NcclWorld world(1);
  world.Start();
  const DeviceAddress a = world.cuda.MakeMemory(64);
  const NcclTensor tensor{a, a, 4};
  Result<NcclPlan> plan =
      PlanAllreduce({ReduceOp::kMin, DType::kFloat32, 2}, kAbilities, {&tensor, 1}, {});
  ASSERT_TRUE(plan.ok());
  world.cuda.Fail("cuLaunchKernel", 1);
  NcclOperation operation(std::move(*plan), *world.comms[0], *world.devices[0]);
  EXPECT_THAT(operation.Advance().status().message(), HasSubstr("cuLaunchKernel answered"));
  EXPECT_EQ(world.nccl.Count("ncclAllReduce"), 0);
  world.ExpectClean();
}

}  // namespace
}  // namespace hvd
