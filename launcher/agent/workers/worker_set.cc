#include "launcher/agent/workers/worker_set.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launcher/agent/workers/worker_gpus.h"
#include "launcher/external/stock/own_address.h"
#include "launcher/output/text/phrases.h"
#include "runtime/base/cpu_quota.h"
#include "runtime/base/text/format.h"
#include "runtime/base/time_numbers.h"
#include "runtime/segment/shared_memory.h"

namespace hvd {
namespace {

// Adds the variables of the launcher in whose place the worker runs to those of hvdrun.
WorkerLink LinkFrom(WorkerLink link, const Place* place, const std::vector<std::string>& driver) {
  if (place == nullptr) return link;
  link.launcher_environment = VariablesOfLauncher(place->environment, driver, {});
  if (place->pmi.valid()) link.launcher_environment.push_back(Format("PMI_FD={}", kKeptDescriptor));
  return link;
}

// An anonymous file in memory.
Result<UniqueFd> FileOf(std::string_view bytes) {
  Result<UniqueFd> file = CreateSharedMemory("hvd-function", bytes.size());
  if (!file.ok()) return file.status();
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t put =
        ::pwrite(file->get(), bytes.data() + at, bytes.size() - at, static_cast<off_t>(at));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return SystemError("keeping the function of horovod.run()", errno);
    at += static_cast<size_t>(put);
  }
  return file;
}

}  // namespace

WorkerSet::WorkerSet(asio::io_context& io, ProcessHost& host, WorkerSetOwner& owner)
    : host_(host),
      owner_(owner),
      feeder_(io, [this](uint64_t bytes) { owner_.Send(InputTaken{bytes}); }),
      lines_(io, [this](uint32_t slot, OutputStream stream, std::string_view first,
                        std::string_view second) {
        owner_.SendOutput(NumberOf(slot), stream, first, second);
      }) {}

void WorkerSet::Prepare(StartJob start, std::vector<Cpu> cpus, const std::vector<GpuDevice>& gpus,
                        std::optional<double> quota) {
  start_ = std::move(start);
  const auto slots = static_cast<uint32_t>(start_.ranks.slots.size());
  const std::vector<std::string> shared = SharedGpus(start_, gpus);
  const uint32_t usable = UsableCpus(static_cast<uint32_t>(cpus.size()), quota);
  cpus_ = CpuAssignment(start_.share.bind_to, std::move(cpus), slots, NodesOfGpus(shared, gpus),
                        usable);
  gpus_ = AssignGpus(start_, shared, gpus);
  if (start_.share.gpus != GpuVisibility::kAll) WarnOfGpus(shared.size());
  while (slots_.size() < slots) AddSlot();
  for (const std::string& entry : WorkerEnvironment(start_, 0, {}, {}, cpus_.ShareOf(0))) {
    if (entry.starts_with("OMP_NUM_THREADS="))
      owner_.Send(AgentNote{
          Format("workers share {} cores{}; {}", host_cores(),
                 host_cores() < cpus_.all_cores()
                     ? Format(" (the CPU quota of their cgroup; {} are allowed)", cpus_.all_cores())
                     : "",
                 entry)});
  }
}

void WorkerSet::WarnOfGpus(size_t count) {
  const char* setting = start_.share.gpus == GpuVisibility::kOne ? "--gpus one" : "--gpus near";
  if (count == 0)
    owner_.Send(AgentWarning{
        Format("{}: there is no GPU on host {}; its ranks get none", setting, start_.host)});
  else if (count < start_.ranks.slots.size())
    owner_.Send(AgentWarning{Format("{}: host {} has {} for {} ranks, which share them", setting,
                                    start_.host, Counted(count, "GPU", "GPUs"),
                                    start_.ranks.slots.size())});
}

// Adds the next slot of `start_`.
void WorkerSet::AddSlot() {
  const auto slot = static_cast<uint32_t>(slots_.size());
  slots_.emplace_back();
  lines_.Add(start_.program.stdin_terminal != 0 && ReadsInput(slot));
}

void WorkerSet::Start(const WorkerLink& link, const InstallPaths& paths, UniqueFd user_stdin) {
  if (start_.program.stdin_to == StdinTo::kRank0 && start_.program.stdin_terminal == 0)
    user_stdin_ = std::move(user_stdin);
  link_ = link;
  paths_ = paths;
  FindInterface();
  if (!start_.program.function.empty()) {
    Result<UniqueFd> function = FileOf(start_.program.function);
    if (!function.ok()) return ReportNotStarted(EIO, function.status().message());
    function_ = std::move(*function);
  }
  if (start_.limits.commit_bytes > 0) OpenCommits();
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) StartWorker(slot);
  user_stdin_.Reset();  // rank 0 alone has it now
}

// Its pages are allocated by the worker that needs them.
void WorkerSet::OpenCommits() {
  Result<UniqueFd> memory =
      CreateSharedMemory("hvd-commits", static_cast<size_t>(start_.limits.commit_bytes));
  Status status = memory.ok() ? SealSize(memory->get()) : memory.status();
  struct stat info {};
  if (status.ok() && ::fstat(memory->get(), &info) != 0)
    status = SystemError("examining shared memory", errno);
  if (!status.ok())
    return owner_.Send(AgentWarning{
        Format("--keep-commits: host {} keeps no commits, because it has no memory for them: {}",
               start_.host, status.message())});
  commits_ = std::move(*memory);
  link_.commits = Format("{},{},{}", kCommitsDescriptor, info.st_dev, info.st_ino);
}

void WorkerSet::Add(const AddWorkers& more) {
  const auto first = static_cast<uint32_t>(slots_.size());
  start_.ranks.size = more.size;
  start_.ranks.homogeneous = more.homogeneous;
  start_.meeting.master_address = more.master_address;
  start_.meeting.master_port = more.master_port;
  start_.restarts.done = more.restarts;
  start_.meeting.rendezvous = more.rendezvous;
  FindInterface();
  start_.ranks.slots.insert(start_.ranks.slots.end(), more.slots.begin(), more.slots.end());
  start_.ranks.workers.insert(start_.ranks.workers.end(), more.workers.begin(), more.workers.end());
  for (uint32_t slot = first; slot < start_.ranks.slots.size(); ++slot) {
    AddSlot();
    cpus_.Add(start_.ranks.slots[slot]);
    StartWorker(slot);
  }
}

// The interface at which workers of stock Horovod listen: with the address that was proven to the
// other hosts, else the one from which this host reaches the rendezvous.
void WorkerSet::FindInterface() {
  const bool proven = start_.policy.ranks_change == 0 && !link_.interface.empty();
  if (start_.meeting.rendezvous.empty() || proven) return;
  const std::string address =
      start_.meeting.rendezvous.substr(0, start_.meeting.rendezvous.rfind(':'));
  link_.interface = InterfaceWith(OwnAddressTowards(address));
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

Place* WorkerSet::PlaceOf(uint32_t slot) const {
  return places_ == nullptr ? nullptr : places_->Find(start_.ranks.slots[slot].rank);
}

void WorkerSet::StartWorker(uint32_t slot) {
  Place* place = PlaceOf(slot);
  if (place != nullptr) cpus_.UseIfUnbound(slot, place->cpus);
  const std::vector<int>& cpus = cpus_.Of(slot);
  const WorkerLink link = LinkFrom(link_, place, start_.program.environment);
  WorkerShare share = cpus_.ShareOf(slot);
  // A launcher that chose a GPU for its process takes precedence.
  if (!ChosenGpus(link.launcher_environment))
    share.gpu = gpus_.Acquire(slot, start_.ranks.slots[slot].local_rank, cpus_.NodesOf(slot));
  SpawnRequest request{start_.program.argv, WorkerEnvironment(start_, slot, link, paths_, share),
                       start_.program.directory, cpus};
  if (place != nullptr) request.kept_fd = place->pmi.get();
  request.function_fd = function_.get();
  request.commits_fd = commits_.get();
  UniqueFd input;
  if (ReadsInput(slot) && user_stdin_.valid()) {
    request.stdin_fd = user_stdin_.get();
  } else if (ReadsInput(slot)) {
    input = feeder_.AddPipe();
    if (!input.valid())
      return owner_.Send(
          WorkerNotStarted{NumberOf(slot), EMFILE, "no pipe could be made for its stdin"});
    request.stdin_fd = input.get();
  }
  SpawnOutcome outcome = host_.Spawn(slot, request);
  if (place != nullptr) *place = {place->number, {}, {}, UniqueFd()};  // the worker has it now
  if (outcome.pid == 0) {
    return owner_.Send(WorkerNotStarted{NumberOf(slot), outcome.error,
                                        outcome.reason + " (host " + start_.host + ")"});
  }
  slots_[slot].pid = outcome.pid;
  slots_[slot].running = true;
  if (!cpus.empty())
    owner_.Send(AgentNote{
        Format("rank {} is kept on CPUs {}", start_.ranks.slots[slot].rank, CpuListText(cpus))});
  owner_.Send(WorkerStarted{NumberOf(slot), outcome.pid});
}

bool WorkerSet::ReadsInput(uint32_t slot) const {
  return start_.program.stdin_to == StdinTo::kAll ||
         (start_.program.stdin_to == StdinTo::kRank0 && start_.ranks.slots[slot].rank == 0);
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

void WorkerSet::Answer(const AskMemory& question) {
  const std::optional<uint32_t> slot = SlotOf(question.rank);
  if (!slot || !slots_[*slot].running) return;
  if (const std::optional<uint64_t> bytes = ResidentBytes(slots_[*slot].pid))
    owner_.Send(MemoryReply{question.rank, *bytes});
}

std::vector<std::pair<uint32_t, pid_t>> WorkerSet::Running() const {
  std::vector<std::pair<uint32_t, pid_t>> running;
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].running) running.emplace_back(NumberOf(slot), slots_[slot].pid);
  }
  return running;
}

void WorkerSet::Resend() {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].pid != 0) owner_.Send(WorkerStarted{NumberOf(slot), slots_[slot].pid});
    if (slots_[slot].exited) owner_.Send(*slots_[slot].exited);
  }
}

void WorkerSet::AddTo(HostSnapshot& snapshot) const {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    snapshot.workers.push_back({NumberOf(slot), slots_[slot].pid});
    if (slots_[slot].exited) snapshot.exited.push_back(*slots_[slot].exited);
  }
}

void WorkerSet::OnOutput(uint32_t slot, OutputStream stream, std::string_view bytes) {
  if (stream == OutputStream::kResult) return owner_.SendOutput(NumberOf(slot), stream, bytes, {});
  lines_.Append(slot, stream, bytes);
}

void WorkerSet::OnOutputEnd(uint32_t slot, OutputStream stream) {
  if (stream != OutputStream::kResult) lines_.Flush(slot, stream);
  owner_.OnWorkerOver();
}

void WorkerSet::OnExit(uint32_t slot, ProcessEnd end, TimePoint noticed) {
  Slot& s = slots_[slot];
  s.running = false;
  gpus_.GiveBack(slot);
  const uint64_t commits = owner_.CommitsOf(slot);
  const bool killed = end.by_signal && end.value == SIGKILL && !killing_;
  const bool out_of_memory = owner_.OnWorkerExit(slot, s.pid, killed);
  s.exited = WorkerExited{NumberOf(slot),          s.pid,         end,    NanosecondsOf(noticed),
                          lines_.LastOutput(slot), out_of_memory, commits};
  owner_.Send(*s.exited);
  if (places_ != nullptr) places_->End(start_.ranks.slots[slot].rank, end);
  owner_.OnWorkerOver();
}

}  // namespace hvd
