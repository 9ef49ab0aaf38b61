#include "launcher/agent/worker_generations.h"

#include <algorithm>

#include "launcher/process/process_tree.h"
#include "launcher/tuning/link_kind.h"
#include "runtime/base/time_numbers.h"
#include "runtime/net/mesh/mesh_address.h"
#include "runtime/net/trouble.h"

namespace hvd {
namespace {

HostWorld WorldOf(const StartJob& start) {
  HostWorld world;
  world.host = start.host;
  world.slots = start.ranks.slots;
  world.size = start.ranks.size;
  world.homogeneous = start.ranks.homogeneous != 0;
  world.layout = start.ranks.layout;
  world.data_key = start.job_key;
  world.listen = {start.meeting.listen_addresses, start.meeting.first_port,
                  start.meeting.last_port};
  world.ranks_change = start.policy.ranks_change != 0;
  return world;
}

// The addresses at which workers of an elastic job listen for those of other hosts: which of them
// work is determined when they connect, because hosts come and go.
std::vector<std::string> ListenAddresses(const StartJob& start, bool one_machine) {
  if (one_machine) return {kLoopbackAddress};
  Result<std::vector<std::string>> addresses = AddressesOfInterfaces(start.meeting.interfaces);
  return addresses.ok() ? *addresses : std::vector<std::string>{};
}

}  // namespace

HostGenerations& WorkerGenerations::Open() {
  HostGenerationsObserver& observer = *this;
  return host_.emplace(parts_.io, observer, WorldOf(start()), start().job_key,
                       "; see the last lines of hvdrun's output for the reason");
}

Status WorkerGenerations::Listen(const std::string& address) {
  return host_->links().Listen(address);
}

// ---- messages from the driver

// A driver that has taken over may begin the present generation again.
void WorkerGenerations::Handle(const BeginGeneration& message) {
  if (message.generation <= begun_) return;
  begun_ = message.generation;
  left_.clear();
  lost_.clear();
  puts_.clear();
  wanted_.clear();
  parts_.relay.BeginGeneration(message.generation);
  if (!host_) return;
  // If it fails, the waiting ranks have received the reason.
  const std::vector<uint32_t> slots =
      start().policy.ranks_change != 0 ? UseMembers(message) : host_->slots().All();
  (void)host_->Begin(message.generation, slots);
}

std::vector<uint32_t> WorkerGenerations::UseMembers(const BeginGeneration& message) {
  HostWorld world = host_->world();
  world.size = message.size;
  world.homogeneous = message.homogeneous != 0;
  world.layout = message.layout;
  world.listen.addresses = ListenAddresses(start(), message.one_machine != 0);
  std::vector<uint32_t> slots;
  for (const Member& member : message.members) {
    const std::optional<uint32_t> slot = parts_.workers.SlotOf(member.worker);
    if (!slot) continue;
    world.slots[*slot] = member.place;
    slots.push_back(*slot);
  }
  host_->set_world(std::move(world));
  return slots;
}

// Runs before the ranks get the page, so that their first operations are recorded.
void WorkerGenerations::OnPage(const std::vector<uint32_t>& slots) {
  const GenerationPage* page = host_->page().get();
  std::vector<TracedRank> ranks;
  for (uint32_t slot : slots) {
    const Placement& place = host_->world().slots[slot];
    ranks.push_back(
        {parts_.workers.NumberOf(slot), place.rank, place.local_rank, host_->PidOf(slot)});
  }
  parts_.recorders.UsePage(page->fd()->get(), page->bytes(), page->generation(), ranks);
  UseTuner(*page, ranks);
  parts_.traces.UsePage(page->fd()->get(), page->bytes(), page->generation(), std::move(ranks));
}

// The kind of the interfaces by which other hosts may reach this one.
std::string WorkerGenerations::KindOfLinks() const {
  std::vector<std::string> interfaces;
  for (const std::string& address : host_->world().listen.addresses) {
    std::string name = InterfaceOf(address);
    if (!name.empty()) interfaces.push_back(std::move(name));
  }
  return LinkKind(interfaces, "/sys/class/net");
}

// The agent of rank 0's host tunes the job.
void WorkerGenerations::UseTuner(const GenerationPage& page, const std::vector<TracedRank>& ranks) {
  const auto first = std::find_if(ranks.begin(), ranks.end(),
                                  [](const TracedRank& rank) { return rank.rank == 0; });
  if (first == ranks.end()) return parts_.tuner.Rest();
  const TunedWorld world{host_->world().size, static_cast<uint32_t>(ranks.size()),
                         parts_.workers.host_cores()};
  parts_.tuner.UsePage(page.fd()->get(), page.bytes(), world, first->local_rank,
                       world.size == world.local_size ? "" : KindOfLinks());
}

void WorkerGenerations::Handle(const BreakGeneration& message) {
  if (!host_) return;
  host_->Break(message.generation, message.reason);
  if (message.generation == 0 || parts_.signals.paused()) return;
  // Checked before any of them is asked to end, which continues them.
  for (uint32_t slot : parts_.workers.StoppedSlots(ListProcesses())) {
    TroubleEntry entry = EncodeTrouble(RankStopped{host_->world().RankOf(slot)});
    send_(PutKey{message.generation, std::move(entry.key), std::move(entry.value)});
  }
}

void WorkerGenerations::Handle(const AddWorkers& more) {
  if (!host_ || more.slots.size() != more.workers.size() || start().policy.ranks_change == 0)
    return;
  host_->AddSlots(more.slots);
  parts_.workers.Add(more);
}

void WorkerGenerations::Handle(const DismissWorker& message) {
  const std::optional<uint32_t> slot = parts_.workers.SlotOf(message.rank);
  if (host_ && slot) host_->Dismiss(*slot, message.reason);
}

void WorkerGenerations::Handle(const HoldCommits& message) {
  if (!host_) return;
  send_(CommitsHeld{message.generation, host_->page().HoldCommits(message.generation)});
}

void WorkerGenerations::Handle(const ActAtCommit& message) {
  if (host_)
    host_->page().ActAt(message.generation, message.commit, message.update, message.grace_ms);
}

void WorkerGenerations::Handle(const KeyValue& message) {
  if (!host_) return;
  if (message.generation == begun_) wanted_.erase(message.key);
  host_->GiveValue(message.generation, message.key,
                   parts_.relay.ValueFor(message.generation, message.key, message.value));
}

void WorkerGenerations::DropPage() {
  if (host_) host_->page().Drop();
}

// ---- actions of the ranks

void WorkerGenerations::OnJoined(uint32_t slot) {
  send_(RankJoined{parts_.workers.NumberOf(slot)});
}

void WorkerGenerations::OnLeft(uint32_t slot, const LeftRank& left) {
  const RankLeft message{parts_.workers.NumberOf(slot), left.generation, NanosecondsOf(left.since),
                         left.had_failed};
  if (left.generation == begun_) left_[slot] = message;
  send_(message);
}

void WorkerGenerations::OnLost(uint32_t slot, const LostRank& lost) {
  const RankLost message{parts_.workers.NumberOf(slot),
                         lost.pid,
                         lost.generation,
                         NanosecondsOf(lost.noticed),
                         lost.reason,
                         lost.doing,
                         lost.had_failed};
  if (lost.generation == begun_ && begun_ != 0) lost_[slot] = message;
  send_(message);
}

void WorkerGenerations::OnPut(const LinkPut& put) {
  parts_.relay.NoteEntry(put.generation, put.key, put.value);
  const PutKey message{put.generation, put.key, put.value};
  if (put.generation == begun_) puts_.push_back(message);
  send_(message);
}

void WorkerGenerations::OnWanted(const LinkGet& get) {
  if (get.generation == begun_) wanted_.insert(get.key);
  send_(WantKey{get.generation, get.key});
}

// ---- for a driver that takes over

void WorkerGenerations::AddTo(HostSnapshot& snapshot) const {
  snapshot.generation = begun_;
  for (const auto& [slot, left] : left_) snapshot.left.push_back(left);
  for (const auto& [slot, lost] : lost_) snapshot.lost.push_back(lost);
  if (!host_) return;
  for (WorkerSnapshot& worker : snapshot.workers) {
    const std::optional<uint32_t> slot = parts_.workers.SlotOf(worker.rank);
    if (!slot) continue;
    worker.waiting = host_->slots().waiting(*slot) ? 1 : 0;
    worker.generation = host_->slots().generation(*slot);
  }
}

std::vector<ToDriver> WorkerGenerations::OpenEntries() const {
  std::vector<ToDriver> messages(puts_.begin(), puts_.end());
  for (const std::string& key : wanted_) messages.emplace_back(WantKey{begun_, key});
  return messages;
}

}  // namespace hvd
