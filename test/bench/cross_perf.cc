// Allreduce between processes over TCP on loopback: libhvd_gloo's ways, or stock Gloo with its own
// transport. Starts the processes itself. `cross_perf WAY NP [BYTES...]`. WAY: auto, direct,
// sliced, or stock (Gloo over its own TCP).
#include <gloo/allreduce.h>
#include <gloo/math.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/tcp/device.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/backends/gloo/gloo_inter_host_comm.h"
#include "test/bench/cross_measure.h"

namespace {

using namespace hvd;

// Files in a folder of the run.
class FileDirectory final : public KvStore {
 public:
  explicit FileDirectory(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status Put(const std::string& key, const std::string& value) override {
    std::filesystem::path file = folder_ / key, draft = folder_ / (key + ".draft");
    std::ofstream(draft) << value;
    std::filesystem::rename(draft, file);
    return Status::Ok();
  }
  Result<std::string> Get(const std::string& key, Duration timeout) override {
    TimePoint end = SteadyNow() + timeout;
    while (!std::filesystem::exists(folder_ / key)) {
      if (SteadyNow() >= end) return Status(Code::kInProgress, "nobody has put " + key);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    std::ifstream file(folder_ / key);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

 private:
  const std::filesystem::path folder_;
};

using cross_perf::Allreduce;

void Must(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "cross_perf: %s\n", status.message().c_str());
  std::exit(1);
}

Allreduce OpenOurs(const std::string& way, uint32_t rank, uint32_t size, KvStore& directory) {
  InterHostOptions options{.rank = rank, .generation = 1, .job_key = "benchmark"};
  options.listen.addresses = {"127.0.0.1"};
  Result<std::unique_ptr<GlooInterHostComm>> opened = GlooInterHostComm::Open(options, directory);
  Must(opened.status());
  std::shared_ptr<GlooInterHostComm> comm = std::move(*opened);
  std::vector<uint32_t> leaders;
  for (uint32_t i = 0; i < size; ++i) leaders.push_back(i);
  return [=, tag = uint64_t{0}](float* data, size_t count) mutable {
    InterHostCall call{{leaders, rank}, ++tag, std::chrono::seconds(60)};
    AllreduceAlgorithm chosen = way == "direct"   ? AllreduceAlgorithm::kDirect
                                : way == "sliced" ? AllreduceAlgorithm::kSliced
                                                  : ChooseAllreduce(count * 4, leaders.size());
    Must(comm->AllreduceBy(chosen, call, {}, data, data, count));
  };
}

Allreduce OpenStock(uint32_t rank, uint32_t size, const std::string& folder) {
  gloo::transport::tcp::attr attributes("127.0.0.1");
  std::shared_ptr<gloo::transport::Device> device = gloo::transport::tcp::CreateDevice(attributes);
  gloo::rendezvous::FileStore store(folder);
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return [=, tag = uint32_t{0}](float* data, size_t count) mutable {
    gloo::AllreduceOptions options(context);
    options.setOutput(data, count);
    options.setTag(++tag);
    options.setReduceFunction(
        static_cast<void (*)(void*, const void*, const void*, size_t)>(&gloo::sum<float>));
    gloo::allreduce(options);
  };
}

int RunRank(const std::string& way, uint32_t rank, uint32_t size, const std::string& folder,
            const std::vector<size_t>& sizes) {
  FileDirectory directory(folder);
  Allreduce allreduce =
      way == "stock" ? OpenStock(rank, size, folder) : OpenOurs(way, rank, size, directory);
  for (size_t bytes : sizes) cross_perf::Measure(rank, size, bytes, allreduce);
  float last = 1;
  allreduce(&last, 1);
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "cross_perf auto|direct|sliced|stock NP [BYTES...]\n");
    return 2;
  }
  uint32_t size = static_cast<uint32_t>(std::atoi(argv[2]));
  std::vector<size_t> sizes = cross_perf::SizesFrom(argc, argv, 3);
  std::string folder = (std::filesystem::temp_directory_path() / "cross_perf.XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  for (uint32_t rank = 0; rank < size; ++rank) {
    if (::fork() == 0) ::_exit(RunRank(argv[1], rank, size, folder, sizes));
  }
  int worst = 0, status = 0;
  while (::wait(&status) > 0) worst |= status;
  std::filesystem::remove_all(folder);
  return worst == 0 ? 0 : 1;
}
