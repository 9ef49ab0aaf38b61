// Several hosts in a simulated world: the backends that reach over them, joined by
// InprocInterHostComm. The threads of their leader services take turns as SeededThreads says. Tests
// only.
#ifndef HVD_TEST_SIM_SIM_HOSTS_H_
#define HVD_TEST_SIM_SIM_HOSTS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "runtime/backends/hosts/hosts_backend.h"
#include "test/fakes/inproc/inproc_inter_host_comm.h"

namespace hvd::test {

class SimHosts {
 public:
  // The host of each rank, ascending from 0.
  SimHosts(std::vector<uint32_t> host_of, uint64_t seed);
  ~SimHosts();

  bool several() const { return host_count_ > 1; }
  uint32_t count() const { return host_count_; }
  uint32_t host_of(uint32_t rank) const { return host_of_[rank]; }
  uint32_t local_of(uint32_t rank) const { return local_of_[rank]; }
  const std::vector<uint32_t>& ranks_of(uint32_t host) const { return ranks_of_[host]; }
  Group WorldOf(uint32_t rank) const;
  bool Span(const std::vector<uint32_t>& ranks) const;

  // Everything given outlives the hosts.
  Backend& Open(uint32_t rank, Backend& one_host, SharedHeap& heap, SegmentSource& segments);
  // The launcher's message on every host; each rank notices when it is told it.
  void Break(const std::string& why);
  void Notify(uint32_t rank);
  // The rank waits, and does for other hosts what it can; or it rests.
  void Attend(uint32_t rank);
  // The rank says goodbye to the other hosts.
  void Leave(uint32_t rank);
  // Messages between hosts so far: while they go on, the world does not stand still.
  uint64_t messages() const { return messages_; }

 private:
  struct Rank {
    explicit Rank(SegmentSource& segments) : peer_memory(segments) {}
    SharedMemoryMap peer_memory;
    std::unique_ptr<InprocInterHostComm> comm;
    std::unique_ptr<HostsBackend> backend;
  };

  std::optional<std::string> broken() const;
  void Linger();

  const std::vector<uint32_t> host_of_;
  uint32_t host_count_;
  std::vector<uint32_t> local_of_;
  std::vector<std::vector<uint32_t>> ranks_of_;
  mutable std::mutex mutex_;  // guards the next two
  std::mt19937_64 random_;
  std::optional<std::string> broken_;
  std::vector<std::atomic<bool>> left_;
  std::atomic<uint64_t> messages_{0};
  InprocInterHostHub hub_;
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_SIM_SIM_HOSTS_H_
