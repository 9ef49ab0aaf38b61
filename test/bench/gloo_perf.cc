// A peer of hvd_perf: the same loops around stock Gloo with its own TCP transport. Started by
// hvdrun, with the folder GLOO_PERF_FOLDER in which the ranks meet, and GLOO_PERF_INTERFACE.
// Allreduce and barrier only.
#include <gloo/allreduce.h>
#include <gloo/barrier.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>

#include <cstdlib>
#include <string>

#include "cmd/hvd_perf/measure.h"

namespace {

std::string Told(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) return value;
  std::fprintf(stderr, "gloo_perf: %s is not set\n", name);
  std::exit(2);
}

std::shared_ptr<gloo::rendezvous::Context> Meet(int rank, int size) {
  gloo::transport::tcp::attr where;
  where.iface = Told("GLOO_PERF_INTERFACE");
  gloo::rendezvous::FileStore store(Told("GLOO_PERF_FOLDER"));
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(where);
  context->connectFullMesh(store, device);
  return context;
}

}  // namespace

int main(int argc, char** argv) {
  hvd_perf::Options options = hvd_perf::ParseArguments(argc, argv, "gloo_perf");
  hvd_perf::Library library;
  library.rank = std::atoi(Told("HOROVOD_RANK").c_str());
  library.size = std::atoi(Told("HOROVOD_SIZE").c_str());
  auto context = Meet(library.rank, library.size);
  uint32_t tag = 0;
  library.allreduce = [&](float* data, size_t count) {
    gloo::AllreduceOptions allreduce(context);
    allreduce.setOutput(data, count);
    allreduce.setTag(++tag);
    allreduce.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(allreduce);
  };
  library.barrier = [&] {
    gloo::BarrierOptions barrier(context);
    barrier.setTag(++tag);
    gloo::barrier(barrier);
  };
  library.allocate = [](size_t bytes, bool) { return static_cast<float*>(std::malloc(bytes)); };
  library.free = [](float* memory, bool) { std::free(memory); };
  bool correct = hvd_perf::RunAll(library, options);
  library.barrier();
  return correct ? 0 : 1;
}
