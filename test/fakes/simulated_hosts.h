// Several hosts in one process: each rank is a thread with a HostsBackend of its own, ranks of one
// "host" share memory, and hosts are joined by InprocInterHostComm. In place of the engine, a few
// lines that hand the offers of a host's members to each other and start an operation when all are
// there.
#ifndef HVD_TEST_FAKES_SIMULATED_HOSTS_H_
#define HVD_TEST_FAKES_SIMULATED_HOSTS_H_

#include <array>
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/backends/hosts/hosts_backend.h"
#include "runtime/backends/shm/shm_backend.h"
#include "test/fakes/inproc/inproc_inter_host_comm.h"
#include "test/support/deadline.h"

namespace hvd::test {

// One tensor of a task.
struct SimulatedPart {
  CollectiveCall call;
  CollectiveResult result;
  std::vector<int64_t> splits;
  std::unique_ptr<OpState> state;
  BufferDescriptor descriptor;
  bool done = false;
};

struct SimulatedTask {
  std::string name, detail;
  Group group;
  std::vector<SimulatedPart> parts;
  std::vector<uint8_t>
      joined;  // members of this host that have joined, by local index; empty: none
  Status disagreement;
  uint64_t round = 0;
  bool started = false, done = false;
  Status status;
};

class SimulatedHosts {
 public:
  struct Settings {
    uint64_t fusion_bytes = 64 << 20;
    uint32_t seed = 0;  // of delays; 0: none
    // How threads that wait attend to other hosts: never, always, or now and then with rests in
    // between.
    enum class Attends { kNever, kAlways, kNowAndThen } attends = Attends::kNowAndThen;
    Duration chunk_limit = std::chrono::seconds(60);
    Duration stall_warning{0}, report_awaited_after{0};
    // How long a launcher may take to say why, and rank 0 to answer who leaves.
    Duration cause_grace = std::chrono::milliseconds(1);
    Duration goodbye = std::chrono::seconds(60);
  };

  SimulatedHosts(std::vector<uint32_t> host_of, Settings settings)
      : host_of_(std::move(host_of)),
        attends_(settings.attends),
        random_(settings.seed),
        hub_([this, late = settings.seed != 0](uint32_t from, size_t bytes) {
          sent_bytes_[from] += bytes;
          ++sent_messages_;
          if (late) Linger();
        }) {
    for (uint32_t r = 0; r < size(); ++r)
      ranks_.push_back(std::make_unique<Rank>(*this, r, settings));
  }
  explicit SimulatedHosts(std::vector<uint32_t> host_of)
      : SimulatedHosts(std::move(host_of), Settings{}) {}
  // All ranks leave at once, as at the end of a job.
  ~SimulatedHosts() {
    Run([&](uint32_t rank) { Leave(rank); });
  }

  uint32_t size() const { return static_cast<uint32_t>(host_of_.size()); }
  size_t sent_bytes(uint32_t rank) const { return sent_bytes_[rank]; }
  size_t sent_messages() const { return sent_messages_; }
  InterHostComm& comm(uint32_t rank) { return *ranks_[rank]->comm; }
  SharedHeap& heap(uint32_t rank) { return ranks_[rank]->heap; }
  HostsBackend& backend(uint32_t rank) { return *ranks_[rank]->backend; }
  void Leave(uint32_t rank) {
    left_[rank].store(true);
    ranks_[rank]->backend.reset();
    ranks_[rank]->comm.reset();
  }
  // The launcher's work on every host when something died.
  void Break(const std::string& why) {
    for (uint32_t host : host_of_) BreakOn(host, why);
    for (auto& rank : ranks_) {
      if (rank->backend != nullptr) rank->backend->Abort(Aborted(why));
    }
  }

  // The same has reached one host only, and there those alone who look.
  void BreakOn(uint32_t host, const std::string& why) {
    std::lock_guard lock(mutex_);
    broken_.try_emplace(host, why);
  }

  void Run(const std::function<void(uint32_t)>& body) {
    std::vector<std::thread> threads;
    for (uint32_t r = 0; r < size(); ++r) threads.emplace_back([&, r] { body(r); });
    for (std::thread& thread : threads) thread.join();
  }

  std::vector<uint32_t> World() const {
    std::vector<uint32_t> ranks(size());
    for (uint32_t r = 0; r < size(); ++r) ranks[r] = r;
    return ranks;
  }
  Group GroupOf(uint32_t rank, int32_t id, const std::vector<uint32_t>& ranks) const {
    Group group;
    group.id = id;
    group.ranks = ranks;
    std::map<uint32_t, uint32_t> number_on_host;
    for (uint32_t r = 0, local = 0; r < size(); ++r) {
      if (host_of_[r] != host_of_[rank]) continue;
      number_on_host[r] = local++;
    }
    for (uint32_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == rank) {
        group.index = i;
        group.local_index = static_cast<uint32_t>(group.local.size());
      }
      if (host_of_[ranks[i]] != host_of_[rank]) continue;
      group.local.push_back(number_on_host[ranks[i]]);
      group.local_to_group.push_back(i);
    }
    return group;
  }

  // To be called by the thread of `rank`, as everything below. The task must not move until it is
  // done.
  Status Submit(uint32_t rank, SimulatedTask* task) {
    for (SimulatedPart& part : task->parts) {
      part.call.group = &task->group;
      part.call.result = &part.result;
      if (!part.splits.empty()) part.call.splits = part.splits.data();
      Status prepared = backend(rank).Prepare(part.call, &part.state, &part.descriptor);
      if (!prepared.ok()) return prepared;
    }
    std::lock_guard lock(mutex_);
    task->round = rounds_[{rank, task->group.id, task->name}]++;
    Meeting& rendezvous = meetings_[KeyOf(rank, *task)];
    rendezvous.descriptors.resize(task->group.local_size());
    rendezvous.extents.resize(task->group.local_size());
    const uint32_t self = task->group.local_index;
    for (const SimulatedPart& part : task->parts) {
      rendezvous.descriptors[self].push_back(part.descriptor);
      rendezvous.extents[self].push_back({part.call.rows, part.splits});
    }
    ++rendezvous.here;
    return Status::Ok();
  }

  // One turn of work. True when the task is done.
  bool Turn(uint32_t rank, SimulatedTask* task) {
    if (task->done) return true;
    if (std::optional<std::string> why = broken(rank)) return Complete(rank, task, Aborted(*why));
    if (!task->started && !Start(rank, task)) return task->done;
    Attend(rank);
    bool all = true;
    for (SimulatedPart& part : task->parts) {
      if (part.done) continue;
      Result<bool> done = backend(rank).Advance(part.call, part.state.get());
      if (!done.ok()) return Complete(rank, task, done.status());
      part.done = *done;
      all = all && part.done;
    }
    return all && Complete(rank, task, Status::Ok());
  }

  Status Wait(uint32_t rank, SimulatedTask* task) {
    const TimePoint deadline = Soon();
    while (!Turn(rank, task)) {
      if (SteadyNow() > deadline) return Internal("'" + task->name + "' hangs");
      std::this_thread::yield();
    }
    return task->status;
  }
  Status Do(uint32_t rank, SimulatedTask* task) {
    Status submitted = Submit(rank, task);
    return submitted.ok() ? Wait(rank, task) : submitted;
  }

 private:
  using Key = std::tuple<uint32_t, int32_t, std::string, uint64_t>;  // host, set, name, round
  struct Meeting {
    std::vector<std::vector<BufferDescriptor>> descriptors;  // by local index, then by part
    std::vector<std::vector<std::pair<int64_t, std::vector<int64_t>>>> extents;
    uint32_t here = 0, gone = 0;
  };
  struct Rank {
    Rank(SimulatedHosts& hosts, uint32_t rank, const Settings& settings)
        : heap(hosts.segments_),
          peer_memory(hosts.segments_),
          one_host(heap, peer_memory),
          comm(std::make_unique<InprocInterHostComm>(hosts.hub_, rank)) {
      HostLeaderOptions options;
      options.map = {hosts.host_of_, rank};
      options.chunk_limit = settings.chunk_limit;
      options.cause_grace = settings.cause_grace;
      options.goodbye = settings.goodbye;
      options.compare = [](std::string_view name, std::span<const HostDetail> details) {
        for (const HostDetail& d : details) {
          if (d.detail == details[0].detail) continue;
          return Mismatch("tensor '" + std::string(name) + "': rank " +
                          std::to_string(details[0].rank) + " has " +
                          std::string(details[0].detail) + ", rank " + std::to_string(d.rank) +
                          " has " + std::string(d.detail));
        }
        return Status::Ok();
      };
      options.coordinator = {.fusion_bytes = settings.fusion_bytes,
                             .stall_warning = settings.stall_warning,
                             .report_awaited_after = settings.report_awaited_after};
      options.wake_host = [] {};
      options.broken = [&hosts, rank] { return hosts.broken(rank); };
      options.has_left = [&hosts](uint32_t r) { return hosts.left_[r].load(); };
      backend = std::make_unique<HostsBackend>(one_host, heap, peer_memory, *comm,
                                               HostsBackend::Options{std::move(options), [] {}});
    }
    SharedHeap heap;
    SharedMemoryMap peer_memory;
    ShmBackend one_host;
    std::unique_ptr<InprocInterHostComm> comm;
    std::unique_ptr<HostsBackend> backend;
    uint32_t turns = 0;
  };

  Key KeyOf(uint32_t rank, const SimulatedTask& task) const {
    return {host_of_[rank], task.group.id, task.name, task.round};
  }
  std::optional<std::string> broken(uint32_t rank) {
    std::lock_guard lock(mutex_);
    const auto found = broken_.find(host_of_[rank]);
    return found == broken_.end() ? std::nullopt : std::optional(found->second);
  }

  // False while members of this host are missing, or when it failed.
  bool Start(uint32_t rank, SimulatedTask* task) {
    Meeting rendezvous;
    {
      std::lock_guard lock(mutex_);
      uint32_t joined = 0;
      for (uint8_t j : task->joined) joined += j;
      auto found = meetings_.find(KeyOf(rank, *task));
      if (found->second.here + joined < task->group.local_size()) return false;
      rendezvous = found->second;
      if (++found->second.gone == found->second.here) meetings_.erase(found);
    }
    task->started = true;
    const bool sound = task->disagreement.ok();
    const auto parts = static_cast<uint32_t>(sound ? task->parts.size() : 1);
    for (uint32_t p = 0; p < parts; ++p) {
      std::vector<BufferDescriptor> descriptors(task->group.local_size());
      std::vector<Extent> extents(task->group.local_size());
      for (uint32_t m = 0; m < descriptors.size(); ++m) {
        if (p >= rendezvous.descriptors[m].size()) continue;
        descriptors[m] = rendezvous.descriptors[m][p];
        extents[m] = {rendezvous.extents[m][p].first, rendezvous.extents[m][p].second};
      }
      InterHostRequest inter_host{task->group.id, task->name,
                                  task->detail,   p,
                                  parts,          sound ? nullptr : &task->disagreement};
      const bool here = task->group.on_one_host();
      MemberInputs all{descriptors, extents, task->joined, here ? nullptr : &inter_host};
      SimulatedPart& part = task->parts[p];
      Result<bool> done = backend(rank).Start(part.call, part.state.get(), all);
      if (!done.ok()) return Complete(rank, task, done.status()), false;
      part.done = *done;
    }
    return true;
  }

  void Attend(uint32_t rank) {
    const uint32_t turn = ranks_[rank]->turns++ % 8;
    hvd::Attendance* attendance = backend(rank).attendance();
    if (attends_ == Settings::Attends::kNever || attendance == nullptr) return;
    if (attends_ == Settings::Attends::kAlways || turn < 4) attendance->Attend();
    if (attends_ == Settings::Attends::kNowAndThen && turn == 4) attendance->Rest();
  }

  bool Complete(uint32_t rank, SimulatedTask* task, Status status) {
    for (SimulatedPart& part : task->parts) {
      if (!status.ok()) backend(rank).Abandon(std::move(part.state), task->started);
      part.state.reset();
    }
    task->status = std::move(status);
    return task->done = true;
  }

  void Linger() {
    uint32_t turns;
    {
      std::lock_guard lock(random_mutex_);
      turns = random_() % 20;
    }
    for (uint32_t i = 0; i < turns; ++i) std::this_thread::yield();
  }

  const std::vector<uint32_t> host_of_;
  const Settings::Attends attends_;
  LocalSegmentSource segments_;
  std::mutex random_mutex_;
  std::mt19937 random_;
  std::array<std::atomic<size_t>, 64> sent_bytes_{};
  std::atomic<size_t> sent_messages_ = 0;
  InprocInterHostHub hub_;
  std::mutex mutex_;
  std::map<Key, Meeting> meetings_;
  std::map<std::tuple<uint32_t, int32_t, std::string>, uint64_t> rounds_;
  std::map<uint32_t, std::string> broken_;  // by host
  std::array<std::atomic<bool>, 64> left_{};
  std::vector<std::unique_ptr<Rank>> ranks_;
};

}  // namespace hvd::test

#endif  // HVD_TEST_FAKES_SIMULATED_HOSTS_H_
