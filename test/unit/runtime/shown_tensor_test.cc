// Tensors as DLPack shows them: which are taken, and as what.
#include "runtime/api/from_python/shown_tensor.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace hvd {
namespace {

class ShownTensorTest : public ::testing::Test {
 protected:
  ShownTensorTest() {
    shown_.data = data_.data();
    shown_.device_type = dlpack::kCpu;
    shown_.ndim = 2;
    shown_.dtype = {dlpack::kFloat, 32, 1};
    shown_.shape = shape_.data();
    shown_.strides = strides_.data();
  }

  bool Taken() {
    ShownTensor tensor;
    return tensor.Read(shown_);
  }

  std::array<float, 64> data_{};
  std::array<int64_t, 9> shape_{2, 3, 1, 1, 1, 1, 1, 1, 1};
  std::array<int64_t, 9> strides_{3, 1, 1, 1, 1, 1, 1, 1, 1};
  dlpack::Tensor shown_{};
};

TEST_F(ShownTensorTest, IsATensorInPlace) {
  ShownTensor taken;
  ASSERT_TRUE(taken.Read(shown_));
  const hvd_tensor& tensor = taken.tensor();
  EXPECT_EQ(tensor.struct_size, sizeof tensor);
  EXPECT_EQ(tensor.dtype, HVD_FLOAT32);
  EXPECT_EQ(tensor.input, data_.data());
  EXPECT_EQ(tensor.output, data_.data());
  EXPECT_EQ(tensor.device_kind, HVD_DEVICE_HOST);
  EXPECT_EQ(std::vector<int64_t>(tensor.shape, tensor.shape + tensor.ndim),
            (std::vector<int64_t>{2, 3}));
}

TEST_F(ShownTensorTest, KeepsTheShapeThatItSaw) {
  ShownTensor taken;
  ASSERT_TRUE(taken.Read(shown_));
  shape_[0] = 1000;
  EXPECT_EQ(taken.tensor().shape[0], 2);
}

TEST_F(ShownTensorTest, BeginsBehindTheOffset) {
  shown_.byte_offset = 8;
  ShownTensor taken;
  ASSERT_TRUE(taken.Read(shown_));
  EXPECT_EQ(taken.tensor().input, &data_[2]);
}

TEST_F(ShownTensorTest, KnowsTheTypesOfTheHeader) {
  struct Row {
    uint8_t code;
    uint8_t bits;
    int32_t type;  // -1: none
  };
  for (const Row& row : std::vector<Row>{{dlpack::kInt, 8, HVD_INT8},
                                         {dlpack::kInt, 16, HVD_INT16},
                                         {dlpack::kInt, 32, HVD_INT32},
                                         {dlpack::kInt, 64, HVD_INT64},
                                         {dlpack::kUInt, 8, HVD_UINT8},
                                         {dlpack::kUInt, 16, HVD_UINT16},
                                         {dlpack::kUInt, 32, -1},
                                         {dlpack::kUInt, 64, -1},
                                         {dlpack::kFloat, 8, -1},
                                         {dlpack::kFloat, 16, HVD_FLOAT16},
                                         {dlpack::kFloat, 64, HVD_FLOAT64},
                                         {dlpack::kFloat, 128, -1},
                                         {dlpack::kBfloat, 16, HVD_BFLOAT16},
                                         {dlpack::kBool, 8, HVD_BOOL},
                                         {dlpack::kInt, 4, -1},
                                         {3, 64, -1},  // an opaque handle
                                         {5, 64, -1},
                                         {11, 8, -1},  // complex; a type of 8 bits unlike ours
                                         {dlpack::kFloat8E4M3Fn, 8, HVD_FLOAT8_E4M3},
                                         {dlpack::kFloat8E5M2, 8, HVD_FLOAT8_E5M2}}) {
    shown_.dtype = {row.code, row.bits, 1};
    ShownTensor taken;
    ASSERT_EQ(taken.Read(shown_), row.type >= 0) << int{row.code} << ", " << int{row.bits};
    if (row.type >= 0) {
      EXPECT_EQ(taken.tensor().dtype, row.type);
    }
  }
  shown_.dtype = {dlpack::kFloat, 32, 4};
  EXPECT_FALSE(Taken());
}

TEST_F(ShownTensorTest, TakesElementsInARowAlone) {
  strides_ = {1, 2};  // a transposed one
  EXPECT_FALSE(Taken());
  strides_ = {6, 1};  // every second row
  EXPECT_FALSE(Taken());
  shape_ = {1, 3};  // the stride of a single row has no meaning
  EXPECT_TRUE(Taken());
  shown_.strides = nullptr;
  EXPECT_TRUE(Taken());
}

TEST_F(ShownTensorTest, TakesAScalarAndUpToEightDimensions) {
  shown_.ndim = 0;
  EXPECT_TRUE(Taken());
  shown_.ndim = 8;
  shown_.strides = nullptr;
  EXPECT_TRUE(Taken());
  shown_.ndim = 9;
  EXPECT_FALSE(Taken());
}

TEST_F(ShownTensorTest, LeavesWhatHasNoElements) {
  shape_[1] = 0;
  EXPECT_FALSE(Taken());
  shape_[1] = 3;
  shown_.data = nullptr;
  EXPECT_FALSE(Taken());
}

TEST_F(ShownTensorTest, LeavesWhatIsOnAnotherDevice) {
  shown_.device_type = 2;  // CUDA
  EXPECT_FALSE(Taken());
  shown_.device_type = dlpack::kCudaHost;  // pinned memory of the processor
  EXPECT_TRUE(Taken());
}

}  // namespace
}  // namespace hvd
