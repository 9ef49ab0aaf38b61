// hvd_perf: time and bandwidth of the collectives, verified, through the C ABI. Run it under
// hvdrun:
//   hvdrun -np 2 hvd_perf --registered
#include <cstdio>
#include <cstdlib>

#include "cmd/hvd_perf/cuda_perf.h"
#include "cmd/hvd_perf/measure.h"
#include "hvd/hvd.h"

namespace {

void Check(int32_t status, const char* what) {
  if (status == HVD_OK) return;
  std::fprintf(stderr, "hvd_perf: %s failed: %s (%s)\n", what, hvd_last_error(),
               hvd_status_name(status));
  std::exit(1);
}

void Run(hvd_collective collective, const char* name, const float* input, float* output,
         size_t count) {
  const auto extent = static_cast<int64_t>(count);
  hvd_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.dtype = HVD_FLOAT32;
  tensor.input = input;
  tensor.output = output;
  tensor.shape = &extent;
  tensor.ndim = 1;
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = collective;
  request.name = name;
  request.tensor = &tensor;
  request.reduce_op = HVD_SUM;
  request.prescale = request.postscale = 1.0;
  Check(hvd_run(&request), name);
}

void Barrier() {
  hvd_request request{};
  request.struct_size = sizeof request;
  request.collective = HVD_BARRIER;
  request.name = "perf.barrier";
  Check(hvd_run(&request), request.name);
}

hvd_perf::Library MakeLibrary() {
  hvd_perf::Library library;
  library.rank = hvd_rank();
  library.size = hvd_size();
  library.allreduce = [](float* data, size_t count) {
    Run(HVD_ALLREDUCE, "perf.allreduce", data, data, count);
  };
  library.broadcast = [](float* data, size_t count) {
    Run(HVD_BROADCAST, "perf.broadcast", data, data, count);
  };
  library.allgather = [](const float* in, float* out, size_t count) {
    Run(HVD_ALLGATHER, "perf.allgather", in, out, count);
  };
  library.alltoall = [](const float* in, float* out, size_t count) {
    Run(HVD_ALLTOALL, "perf.alltoall", in, out, count);
  };
  library.reducescatter = [](const float* in, float* out, size_t count) {
    Run(HVD_REDUCESCATTER, "perf.reducescatter", in, out, count);
  };
  library.barrier = Barrier;
  library.allocate = [](size_t bytes, bool registered) {
    void* memory = registered ? hvd_alloc(bytes) : std::malloc(bytes);
    if (memory == nullptr) Check(HVD_OUT_OF_MEMORY, "allocating");
    return static_cast<float*>(memory);
  };
  library.free = [](float* memory, bool registered) {
    if (registered)
      hvd_free(memory);
    else
      std::free(memory);
  };
  return library;
}

}  // namespace

int main(int argc, char** argv) {
  hvd_perf::Options options = hvd_perf::ParseArguments(argc, argv, "hvd_perf");
  Check(hvd_init(nullptr), "hvd_init");
  const bool correct =
      options.cuda ? hvd_perf::RunOnCuda(options) : hvd_perf::RunAll(MakeLibrary(), options);
  Check(hvd_shutdown(), "hvd_shutdown");
  return correct ? 0 : 1;
}
