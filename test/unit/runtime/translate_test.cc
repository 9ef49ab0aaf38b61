// Structs of hvd.h into the runtime's types and back: what is read, what is refused, and callers of
// other versions.
#include "runtime/api/translate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace hvd {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class TranslateTest : public ::testing::Test {
 protected:
  TranslateTest() {
    tensor_.struct_size = sizeof tensor_;
    tensor_.dtype = HVD_FLOAT32;
    tensor_.input = tensor_.output = data_.data();
    tensor_.shape = shape_.data();
    tensor_.ndim = 2;
    request_.struct_size = sizeof request_;
    request_.collective = HVD_ALLREDUCE;
    request_.reduce_op = HVD_SUM;
    request_.name = "gradient";
    request_.tensor = &tensor_;
    request_.prescale = 0.5;
    request_.postscale = 2;
  }

  void ExpectRefused(const std::string& with) {
    RequestMemory memory;
    RequestSpec spec;
    Status read = ReadRequest(&request_, &memory, &spec);
    EXPECT_EQ(read.code(), Code::kInvalidArgument) << "expected: " << with;
    EXPECT_THAT(read.message(), HasSubstr(with));
  }

  std::array<float, 6> data_{};
  std::array<int64_t, 2> shape_{2, 3};
  hvd_tensor tensor_{};
  hvd_request request_{};
};

TEST_F(TranslateTest, ReadsTheNamesOfTheTensors) {
  request_.members_hash = 5;
  request_.members = "a\nb";
  RequestMemory memory;
  RequestSpec spec;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
  EXPECT_EQ(spec.names_hash, 5u);
  EXPECT_EQ(spec.names, "a\nb");
  request_.members = nullptr;
  RequestSpec hash_only;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &hash_only).ok());
  EXPECT_EQ(hash_only.names_hash, 5u);
  EXPECT_EQ(hash_only.names, "");
  request_.struct_size = offsetof(hvd_request, members_hash);
  RequestSpec before;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &before).ok());
  EXPECT_EQ(before.names_hash, 0u) << "of a caller that was built before";
}

TEST_F(TranslateTest, ReadsARequest) {
  request_.root_rank = 3;
  request_.process_set = 2;
  RequestMemory memory;
  RequestSpec spec;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
  EXPECT_EQ(spec.collective, Collective::kAllreduce);
  EXPECT_EQ(spec.op, ReduceOp::kSum);
  EXPECT_EQ(spec.name, "gradient");
  EXPECT_FALSE(spec.unnamed);
  EXPECT_EQ(spec.root, 3u);
  EXPECT_EQ(spec.process_set, 2);
  EXPECT_EQ(spec.prescale, 0.5);
  EXPECT_EQ(spec.postscale, 2);
  EXPECT_EQ(spec.tensor.dtype, DType::kFloat32);
  EXPECT_EQ(spec.tensor.input, data_.data());
  EXPECT_THAT(spec.tensor.shape, ElementsAre(2, 3));
  EXPECT_EQ(spec.device, DeviceKind::kHost);
  EXPECT_TRUE(spec.group.empty());
}

TEST_F(TranslateTest, AZeroedRequestIsNotScaled) {
  request_.prescale = request_.postscale = 0;
  RequestMemory memory;
  RequestSpec spec;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
  EXPECT_EQ(spec.prescale, 1);
  EXPECT_EQ(spec.postscale, 1);
  request_.flags = HVD_EXACT_SCALES;
  RequestSpec exact;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &exact).ok());
  EXPECT_EQ(exact.prescale, 0);
  EXPECT_EQ(exact.postscale, 0);
}

TEST_F(TranslateTest, InitialisersAreWholeRequests) {
  hvd_request request = HVD_REQUEST_INIT;
  hvd_tensor tensor = HVD_TENSOR_INIT;
  const hvd_init_options options = HVD_INIT_OPTIONS_INIT;
  EXPECT_EQ(options.struct_size, sizeof options);
  tensor.input = tensor.output = data_.data();
  tensor.shape = shape_.data();
  tensor.ndim = 2;
  request.tensor = &tensor;
  RequestMemory memory;
  RequestSpec spec;
  ASSERT_TRUE(ReadRequest(&request, &memory, &spec).ok());
  EXPECT_EQ(spec.prescale, 1);
  EXPECT_EQ(spec.op, ReduceOp::kSum);
  EXPECT_TRUE(spec.unnamed);
}

TEST_F(TranslateTest, AnUnnamedOneIsNamedLater) {
  request_.name = nullptr;
  RequestMemory memory;
  RequestSpec spec;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
  EXPECT_TRUE(spec.unnamed);
}

TEST_F(TranslateTest, ABarrierAndAJoinNeedNoTensor) {
  request_.tensor = nullptr;
  for (int32_t collective : {HVD_BARRIER, HVD_JOIN}) {
    request_.collective = collective;
    request_.tensor_count = 0;
    RequestMemory memory;
    RequestSpec spec;
    EXPECT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
    request_.tensor_count = 2;
    ExpectRefused("takes no group");
  }
}

// A later hvd.h has longer tensors: the struct_size of the first says how far apart they lie.
TEST_F(TranslateTest, ReadsAGroupOfLongerTensors) {
  struct Longer {
    hvd_tensor tensor;
    uint64_t later;
  };
  std::array<Longer, 3> tensors{};
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i] = {tensor_, 77};
    tensors[i].tensor.struct_size = sizeof(Longer);
    tensors[i].tensor.dtype = i == 2 ? HVD_INT32 : HVD_FLOAT32;
  }
  request_.tensor = &tensors[0].tensor;
  request_.tensor_count = 3;
  RequestMemory memory;
  RequestSpec spec;
  ASSERT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
  ASSERT_EQ(spec.group.size(), 3u);
  EXPECT_EQ(spec.group[1].dtype, DType::kFloat32);
  EXPECT_EQ(spec.group[2].dtype, DType::kInt32);
  tensors[2].tensor.device_kind = HVD_DEVICE_CUDA;
  ExpectRefused("on different devices");
}

TEST_F(TranslateTest, SplitsAreOfAnAlltoall) {
  const std::array<int64_t, 2> splits{1, 1};
  request_.splits = splits.data();
  request_.splits_count = 2;
  for (int32_t collective : {HVD_ALLREDUCE, HVD_ALLTOALL}) {
    request_.collective = collective;
    RequestMemory memory;
    RequestSpec spec;
    ASSERT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
    EXPECT_EQ(spec.splits.size(), collective == HVD_ALLTOALL ? 2u : 0u);
  }
  request_.splits = nullptr;
  ExpectRefused("2 splits and no place of them");
}

// A caller of the first hvd.h: a field that it does not know is read as 0, and never looked at.
TEST_F(TranslateTest, ACallerOfTheFirstVersionIsServed) {
  request_.struct_size = offsetof(hvd_request, tensor_count);
  request_.tensor_count = -9;
  request_.splits_count = -9;
  RequestMemory memory;
  RequestSpec spec;
  EXPECT_TRUE(ReadRequest(&request_, &memory, &spec).ok());
  --request_.struct_size;
  ExpectRefused("set struct_size, or rebuild the caller");
}

TEST_F(TranslateTest, RefusesWhatIsNoRequest) {
  RequestMemory memory;
  RequestSpec spec;
  EXPECT_EQ(ReadRequest(nullptr, &memory, &spec).code(), Code::kInvalidArgument);
  const hvd_request sound = request_;
  const hvd_tensor sound_tensor = tensor_;
  for (int32_t unknown : {-1, HVD_JOIN + 1}) {
    request_.collective = unknown;
    ExpectRefused("unknown collective");
  }
  request_ = sound;
  for (int32_t unknown : {-1, HVD_PRODUCT + 1}) {
    request_.reduce_op = unknown;
    ExpectRefused("unknown reduce operation");
  }
  request_ = sound;
  request_.tensor_count = -1;
  ExpectRefused("'gradient' was submitted with -1 tensors");
  request_ = sound;
  request_.tensor = nullptr;
  ExpectRefused("'gradient' was submitted without a tensor");
  request_ = sound;
  for (int32_t unknown : {-1, int32_t{kDTypeCount}}) {
    tensor_.dtype = unknown;
    ExpectRefused("unknown element type");
  }
  tensor_ = sound_tensor;
  tensor_.ndim = -1;
  ExpectRefused("no usable shape");
  tensor_ = sound_tensor;
  tensor_.shape = nullptr;
  ExpectRefused("no usable shape");
  tensor_ = sound_tensor;
  tensor_.struct_size = 8;
  ExpectRefused("a tensor has 8 bytes");
}

TEST(TranslateInit, ReadsProcessSets) {
  const std::array<int32_t, 3> ranks{0, 2, 1}, sizes{2, 0, 1};
  hvd_init_options options{};
  options.struct_size = sizeof options;
  options.timeout_ms = 1500;
  options.process_set_ranks = ranks.data();
  options.process_set_sizes = sizes.data();
  options.process_set_count = 3;
  InitOptions read;
  ASSERT_TRUE(ReadInitOptions(&options, &read).ok());
  EXPECT_EQ(read.timeout, std::chrono::milliseconds(1500));
  ASSERT_EQ(read.process_sets.size(), 3u);
  EXPECT_THAT(read.process_sets[0], ElementsAre(0, 2));
  EXPECT_TRUE(read.process_sets[1].empty());
  EXPECT_THAT(read.process_sets[2], ElementsAre(1));
}

TEST(TranslateInit, ServesOldCallersAndRefusesBadOnes) {
  InitOptions read;
  EXPECT_TRUE(ReadInitOptions(nullptr, &read).ok());
  hvd_init_options options{};
  options.struct_size = offsetof(hvd_init_options, process_set_ranks);
  options.process_set_count = 5;  // it does not know of this
  EXPECT_TRUE(ReadInitOptions(&options, &read).ok());
  EXPECT_TRUE(read.process_sets.empty());
  options.struct_size = 4;
  EXPECT_EQ(ReadInitOptions(&options, &read).code(), Code::kInvalidArgument);
  options.struct_size = sizeof options;
  EXPECT_THAT(ReadInitOptions(&options, &read).message(), HasSubstr("5 process sets and no place"));
  options.process_set_count = -1;
  EXPECT_FALSE(ReadInitOptions(&options, &read).ok());
  const int32_t rank = 0, size = -1;
  options.process_set_ranks = &rank;
  options.process_set_sizes = &size;
  options.process_set_count = 1;
  EXPECT_THAT(ReadInitOptions(&options, &read).message(), HasSubstr("negative size"));
}

TEST(TranslateResult, GivesWhatThereIsRoomForAndFreesTheRest) {
  LocalSegmentSource segments;
  SharedHeap heap(segments);
  OperationResult result;
  for (int64_t rows : {3, 4}) {
    result.outputs.emplace_back();
    result.outputs.back().made = heap.Allocate(64, /*zeroed=*/false);
    result.outputs.back().shape = {rows, 2};
  }
  void* const kept = result.outputs[0].made;
  void* const freed = result.outputs[1].made;
  result.received_splits = {5, 6, 7};
  result.last_joined_rank = 9;
  hvd_output output{};
  output.struct_size = sizeof output;
  std::array<int64_t, 2> splits{};
  hvd_result place{};
  place.struct_size = sizeof place;
  place.outputs = &output;
  place.output_count = 1;
  place.received_splits = splits.data();
  place.received_splits_count = 2;
  ASSERT_TRUE(CheckResult(&place).ok());
  Store(result, heap, &place);
  EXPECT_EQ(output.data, kept);
  EXPECT_EQ(output.ndim, 2);
  EXPECT_EQ(output.shape[0], 3);
  EXPECT_EQ(place.output_count, 2) << "how many there were";
  EXPECT_THAT(splits, ElementsAre(5, 6));
  EXPECT_EQ(place.received_splits_count, 3);
  EXPECT_EQ(place.last_joined_rank, 9);
  EXPECT_EQ(heap.Allocate(64, /*zeroed=*/false), freed) << "nobody asked for it";
}

TEST(TranslateResult, RefusesAPlaceThatCannotBeWritten) {
  EXPECT_FALSE(CheckResult(nullptr).ok());
  hvd_result place{};
  place.struct_size = sizeof place - 1;
  EXPECT_FALSE(CheckResult(&place).ok());
  place.struct_size = sizeof place;
  EXPECT_TRUE(CheckResult(&place).ok()) << "nothing is asked for";
  hvd_output output{};
  output.struct_size = 4;
  place.outputs = &output;
  place.output_count = 1;
  EXPECT_THAT(CheckResult(&place).message(), HasSubstr("the first output has 4 bytes"));
}

}  // namespace
}  // namespace hvd
