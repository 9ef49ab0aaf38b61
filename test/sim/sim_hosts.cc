#include "test/sim/sim_hosts.h"

#include <numeric>
#include <thread>
#include <utility>

#include "runtime/api/compare_hosts.h"

namespace hvd::test {

SimHosts::SimHosts(std::vector<uint32_t> host_of, uint64_t seed)
    : host_of_(std::move(host_of)),
      host_count_(host_of_.back() + 1),
      ranks_of_(host_count_),
      random_(seed),
      left_(host_of_.size()),
      hub_([this](uint32_t, size_t) {
        ++messages_;
        Linger();
      }),
      ranks_(host_of_.size()) {
  for (uint32_t rank = 0; rank < host_of_.size(); ++rank) {
    std::vector<uint32_t>& neighbours = ranks_of_[host_of_[rank]];
    local_of_.push_back(static_cast<uint32_t>(neighbours.size()));
    neighbours.push_back(rank);
  }
}

SimHosts::~SimHosts() {
  for (uint32_t rank = 0; rank < ranks_.size(); ++rank) Leave(rank);
}

Group SimHosts::WorldOf(uint32_t rank) const {
  Group group;
  group.ranks.resize(host_of_.size());
  std::iota(group.ranks.begin(), group.ranks.end(), 0u);
  group.index = rank;
  group.local_to_group = ranks_of_[host_of_[rank]];
  group.local.resize(group.local_to_group.size());
  std::iota(group.local.begin(), group.local.end(), 0u);
  group.local_index = local_of_[rank];
  return group;
}

bool SimHosts::Span(const std::vector<uint32_t>& ranks) const {
  for (uint32_t rank : ranks) {
    if (host_of_[rank] != host_of_[ranks[0]]) return true;
  }
  return false;
}

Backend& SimHosts::Open(uint32_t rank, Backend& one_host, SharedHeap& heap,
                        SegmentSource& segments) {
  ranks_[rank] = std::make_unique<Rank>(segments);
  ranks_[rank]->comm = std::make_unique<InprocInterHostComm>(hub_, rank);
  HostsBackend::Options options;
  options.nudge_host = [] {};
  HostLeaderOptions& leader_service = options.leader_service;
  leader_service.map = {host_of_, rank};
  leader_service.cause_grace = std::chrono::milliseconds(1);
  leader_service.goodbye = std::chrono::seconds(60);
  leader_service.compare = CompareHosts;
  leader_service.coordinator.fusion_bytes = rank % 2 == 0 ? 4096 : 0;
  leader_service.coordinator.stall_warning = Duration(0);
  leader_service.coordinator.report_awaited_after = std::chrono::milliseconds(1);
  leader_service.wake_host = [] {};
  leader_service.broken = [this] { return broken(); };
  leader_service.has_left = [this](uint32_t other) { return left_[other].load(); };
  ranks_[rank]->backend = std::make_unique<HostsBackend>(one_host, heap, ranks_[rank]->peer_memory,
                                                         *ranks_[rank]->comm, std::move(options));
  return *ranks_[rank]->backend;
}

std::optional<std::string> SimHosts::broken() const {
  std::lock_guard lock(mutex_);
  return broken_;
}

void SimHosts::Linger() {
  uint64_t turns = 0;
  {
    std::lock_guard lock(mutex_);
    turns = random_() % 8;
  }
  for (uint64_t i = 0; i < turns; ++i) std::this_thread::yield();
}

void SimHosts::Break(const std::string& why) {
  std::lock_guard lock(mutex_);
  broken_ = why;
}

void SimHosts::Notify(uint32_t rank) {
  std::optional<std::string> why = broken();
  if (why && ranks_[rank] != nullptr) ranks_[rank]->backend->Abort(Aborted(*why));
}

void SimHosts::Attend(uint32_t rank) {
  if (ranks_[rank] == nullptr || left_[rank]) return;
  uint64_t choice = 0;
  {
    std::lock_guard lock(mutex_);
    choice = random_() % 8;
  }
  Attendance* attendance = ranks_[rank]->backend->attendance();
  if (attendance == nullptr) return;
  if (choice < 4) attendance->Attend();
  if (choice == 4) attendance->Rest();
}

void SimHosts::Leave(uint32_t rank) {
  if (ranks_[rank] == nullptr || left_[rank].exchange(true)) return;
  ranks_[rank]->backend->Leave();
  ranks_[rank]->comm.reset();
}

}  // namespace hvd::test
