// How the fake libnccl.so.2 gives work to a stream of the fake libcuda.so.1, as the real ones do
// inside of CUDA.
#ifndef HVD_TEST_FAKES_GPU_LIBRARIES_STREAM_WORK_H_
#define HVD_TEST_FAKES_GPU_LIBRARIES_STREAM_WORK_H_

#include "runtime/device/cuda/driver_api.h"

extern "C" void fake_gpu_submit(hvd::CuStream stream, void (*run)(void* work), void* work);
// Where the stream captures, keeps `node` in the graph: `launch` is called with each launch of it,
// in the caller's thread, and `drop` when the graph is gone. False: it does not capture.
extern "C" bool fake_gpu_keep(hvd::CuStream stream,
                              void (*launch)(void* node, hvd::CuStream stream), void* node,
                              void (*drop)(void* node));

#endif  // HVD_TEST_FAKES_GPU_LIBRARIES_STREAM_WORK_H_
