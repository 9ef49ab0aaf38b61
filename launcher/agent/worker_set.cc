#include "launcher/agent/worker_set.h"

#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace hvd {
namespace {

// A line without an end that a person may have to answer (a prompt) is shown after this time.
constexpr Duration kPromptWait = std::chrono::milliseconds(50);

}  // namespace

WorkerSet::WorkerSet(asio::io_context& io, ProcessHost& host, WorkerSetOwner& owner)
    : host_(host),
      owner_(owner),
      feeder_(io, [this](uint64_t bytes) { owner_.Send(InputTaken{bytes}); }),
      prompt_timer_(io) {}

void WorkerSet::Prepare(StartJob start, std::vector<Cpu> cpus) {
  start_ = std::move(start);
  slots_.resize(start_.slots.size());
  host_cores_ = static_cast<uint32_t>(cpus.size());
  cpus_ = std::move(cpus);
  bound_ = BindRanks(start_.bind_to, cpus_, static_cast<uint32_t>(slots_.size()));
  core_shares_ = CoreShares(bound_);
  for (const std::string& entry :
       WorkerEnvironment(start_, 0, {}, {}, {host_cores_, core_shares_.at(0)})) {
    if (entry.starts_with("OMP_NUM_THREADS="))
      owner_.Send(AgentNote{"workers share " + std::to_string(host_cores_) + " cores; " + entry});
  }
}

void WorkerSet::Start(const WorkerLink& link, const InstallPaths& paths) {
  link_ = link;
  paths_ = paths;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) StartWorker(slot);
}

void WorkerSet::Add(const AddWorkers& more) {
  const auto first = static_cast<uint32_t>(slots_.size());
  start_.size = more.size;
  start_.homogeneous = more.homogeneous;
  start_.master_address = more.master_address;
  start_.master_port = more.master_port;
  start_.restarts = more.restarts;
  start_.slots.insert(start_.slots.end(), more.slots.begin(), more.slots.end());
  start_.workers.insert(start_.workers.end(), more.workers.begin(), more.workers.end());
  slots_.resize(start_.slots.size());
  for (uint32_t slot = first; slot < slots_.size(); ++slot) {
    // As many parts of the cores as there are local ranks now, each for one of them.
    const Placement& place = start_.slots[slot];
    const auto bound = BindRanks(start_.bind_to, cpus_, std::max(1U, place.local_size));
    bound_.push_back(bound[place.local_rank % bound.size()]);
    core_shares_.push_back(CoreShares(bound)[place.local_rank % bound.size()]);
    StartWorker(slot);
  }
}

std::optional<uint32_t> WorkerSet::SlotOf(uint32_t worker) const {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (NumberOf(slot) == worker) return slot;
  }
  return std::nullopt;
}

void WorkerSet::ReportNotStarted(int error, const std::string& reason) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot)
    owner_.Send(WorkerNotStarted{NumberOf(slot), error, reason});
}

void WorkerSet::StartWorker(uint32_t slot) {
  const WorkerCores cores{host_cores_, core_shares_[slot]};
  SpawnRequest request{start_.argv, WorkerEnvironment(start_, slot, link_, paths_, cores),
                       start_.directory, bound_[slot]};
  UniqueFd input;
  if (ReadsInput(slot)) {
    input = feeder_.AddPipe();
    if (!input.valid())
      return owner_.Send(
          WorkerNotStarted{NumberOf(slot), EMFILE, "no pipe could be made for its stdin"});
    request.stdin_fd = input.get();
  }
  SpawnOutcome outcome = host_.Spawn(slot, request);
  if (outcome.pid == 0) {
    return owner_.Send(WorkerNotStarted{NumberOf(slot), outcome.error,
                                        outcome.reason + " (host " + start_.host + ")"});
  }
  slots_[slot].pid = outcome.pid;
  slots_[slot].running = true;
  if (!bound_[slot].empty())
    owner_.Send(AgentNote{"rank " + std::to_string(start_.slots[slot].rank) + " is kept on CPUs " +
                          CpuListText(bound_[slot])});
  owner_.Send(WorkerStarted{NumberOf(slot), outcome.pid});
}

bool WorkerSet::ReadsInput(uint32_t slot) const {
  return start_.stdin_to == StdinTo::kAll ||
         (start_.stdin_to == StdinTo::kRank0 && start_.slots[slot].rank == 0);
}

bool WorkerSet::AnyRunning() const {
  return std::ranges::any_of(slots_, [](const Slot& slot) { return slot.running; });
}

bool WorkerSet::AnyDying(const std::function<bool(pid_t)>& dying) const {
  return std::ranges::any_of(slots_,
                             [&](const Slot& slot) { return slot.running && dying(slot.pid); });
}

std::vector<uint32_t> WorkerSet::StoppedSlots(const std::vector<ProcessInfo>& processes) const {
  std::vector<uint32_t> stopped;
  for (const ProcessInfo& process : processes) {
    if (process.state != 'T' && process.state != 't') continue;
    for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
      if (slots_[slot].running && slots_[slot].pid == process.pid) stopped.push_back(slot);
    }
  }
  return stopped;
}

void WorkerSet::Signal(int signal) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) Signal(slot, signal);
}

void WorkerSet::Signal(uint32_t slot, int signal) {
  if (slots_[slot].running) host_.Signal(slot, signal);
}

void WorkerSet::Resend() {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].pid != 0) owner_.Send(WorkerStarted{NumberOf(slot), slots_[slot].pid});
    if (slots_[slot].exited) owner_.Send(*slots_[slot].exited);
  }
}

void WorkerSet::OnOutput(uint32_t slot, OutputStream stream, std::string_view bytes) {
  if (stream == OutputStream::kStderr) slots_[slot].last_stderr.Add(bytes);
  LineBuffer::Ready ready = slots_[slot].lines[static_cast<int>(stream)].Add(bytes);
  owner_.SendOutput(NumberOf(slot), stream, ready.held, ready.bytes);
  ShowPromptSoon(slot);
}

// A rank that has the terminal may wait for an answer: `(Pdb) `, input("...").
void WorkerSet::ShowPromptSoon(uint32_t slot) {
  if (start_.stdin_terminal == 0 || !ReadsInput(slot) || prompt_due_) return;
  const auto& lines = slots_[slot].lines;
  if (lines[0].empty() && lines[1].empty()) return;
  prompt_due_ = true;
  prompt_timer_.expires_after(kPromptWait);
  prompt_timer_.async_wait([this](const asio::error_code& error) {
    if (!error) ShowPrompts();
  });
}

void WorkerSet::ShowPrompts() {
  prompt_due_ = false;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!ReadsInput(slot)) continue;
    for (OutputStream stream : {OutputStream::kStdout, OutputStream::kStderr})
      FlushLine(slot, stream);
  }
}

void WorkerSet::FlushLine(uint32_t slot, OutputStream stream) {
  const std::string line = slots_[slot].lines[static_cast<int>(stream)].Flush();
  owner_.SendOutput(NumberOf(slot), stream, line, {});
}

void WorkerSet::OnOutputEnd(uint32_t slot, OutputStream stream) {
  FlushLine(slot, stream);
  owner_.OnWorkerOver();
}

void WorkerSet::OnExit(uint32_t slot, ProcessEnd end, TimePoint noticed) {
  Slot& s = slots_[slot];
  s.running = false;
  const uint64_t commits = owner_.CommitsOf(slot);
  const bool killed = end.by_signal && end.value == SIGKILL && !killing_;
  const bool out_of_memory = owner_.OnWorkerExit(slot, s.pid, killed);
  s.exited =
      WorkerExited{NumberOf(slot),       s.pid,         end,    noticed.time_since_epoch().count(),
                   s.last_stderr.Text(), out_of_memory, commits};
  owner_.Send(*s.exited);
  owner_.OnWorkerOver();
}

}  // namespace hvd
