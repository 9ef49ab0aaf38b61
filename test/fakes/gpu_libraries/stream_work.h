// How the fake libnccl.so.2 gives work to a stream of the fake libcuda.so.1, as the real ones do
// inside of CUDA.
#ifndef HVD_TEST_FAKES_GPU_LIBRARIES_STREAM_WORK_H_
#define HVD_TEST_FAKES_GPU_LIBRARIES_STREAM_WORK_H_

#include "runtime/device/cuda/driver_api.h"

extern "C" void fake_gpu_submit(hvd::CuStream stream, void (*run)(void* work), void* work);

#endif  // HVD_TEST_FAKES_GPU_LIBRARIES_STREAM_WORK_H_
