#include "launcher/generation/host_generations.h"

#include <algorithm>
#include <asio/post.hpp>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "launcher/process/one_process.h"
#include "runtime/base/log.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/mesh/mesh_resolver.h"

namespace hvd {

namespace {

constexpr auto kHeaderLook = std::chrono::seconds(1);
constexpr auto kDeathShows = std::chrono::milliseconds(100);

}  // namespace

HostGenerations::HostGenerations(asio::io_context& io, HostGenerationsObserver& observer,
                                 HostWorld world, std::string job_key, std::string why_elsewhere)
    : io_(io),
      observer_(observer),
      world_(std::move(world)),
      why_elsewhere_(std::move(why_elsewhere)),
      links_(io, *this, static_cast<uint32_t>(world_.slots.size()), std::move(job_key)),
      slots_(world_.slots.size()),
      header_timer_(io) {}

bool HostGenerations::AllWaiting() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.waiting; });
}

bool HostGenerations::in_use() const {
  return std::any_of(slots_.begin(), slots_.end(),
                     [](const Slot& s) { return s.in_generation != 0; });
}

void HostGenerations::OnJoin(uint32_t slot) {
  TakeOut(slot);  // a rank that joins has left
  slots_[slot].waiting = true;
  observer_.OnJoined(slot);
}

// Its peers may have failed of it, and said goodbye themselves, while it was still closing its
// connections.
void HostGenerations::OnGoodbye(uint32_t slot, const LinkGoodbye& goodbye) {
  Slot& s = slots_[slot];
  if (s.in_generation != goodbye.generation) return;
  TakeOut(slot);
  const TimePoint now = SteadyNow();
  const auto said = TimePoint(Duration(static_cast<int64_t>(goodbye.since_ns)));
  const bool possible = said >= begun_ && said <= now;
  const bool had_failed = HasPageOf(goodbye.generation) && page_->HadFailed(LocalRankOf(slot));
  observer_.OnLeft(slot, {goodbye.generation, possible ? said : now, had_failed});
  DropPageIfUnused();
}

void HostGenerations::OnLinkEnd(uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.in_generation != 0) {
    Lose(slot, links_.pid(slot), "died");
  } else if (std::exchange(s.waiting, false)) {
    observer_.OnLost(slot, LostRank{links_.pid(slot), 0, SteadyNow(), "", ""});
  }
  DropPageIfUnused();
  observer_.OnLinkClosed(slot);
}

void HostGenerations::NoteExit(uint32_t slot, int pid) {
  links_.Drain(slot);  // a goodbye may have been said just before
  if (slots_[slot].in_generation != 0 && links_.pid(slot) == pid) Lose(slot, pid, "ended");
  slots_[slot].waiting = false;
}

Status HostGenerations::Begin(uint64_t generation) {
  std::vector<uint32_t> all(slots_.size());
  std::iota(all.begin(), all.end(), 0U);
  return Begin(generation, all);
}

Status HostGenerations::Begin(uint64_t generation, const std::vector<uint32_t>& members) {
  auto on_death = [this, generation](uint32_t local_rank) {
    asio::post(io_, [this, generation, local_rank] {
      if (auto slot = SlotAt(local_rank, generation)) OnMarkDied(*slot, generation);
    });
  };
  auto on_damage = [this, generation](uint32_t local_rank) {
    asio::post(io_, [this, generation, local_rank] {
      if (auto slot = SlotAt(local_rank, generation)) BreakDamaged(PartOf(*slot));
    });
  };
  DropPage();
  links_.ForgetOwnerless();
  directory_.Begin(generation);
  if (members.empty()) return Status::Ok();
  auto local_size = static_cast<uint32_t>(members.size());
  Result<std::unique_ptr<GenerationPage>> page =
      GenerationPage::Make(generation, local_size, on_death, on_damage);
  if (!page.ok()) {
    std::string reason = "the page of generation " + std::to_string(generation) +
                         " could not be made on host " + world_.host + ": " +
                         page.status().message();
    SendBroken(0, reason);
    return Aborted(reason);
  }
  page_ = std::move(*page);
  begun_ = SteadyNow();
  WatchHeader();
  for (uint32_t slot : members) {
    slots_[slot].in_generation = generation;
    slots_[slot].waiting = false;
    SendGeneration(slot, generation);
  }
  // A link may have ended while it was decided.
  for (uint32_t slot : members) {
    if (!links_.connected(slot) && slots_[slot].in_generation == generation)
      Lose(slot, links_.pid(slot), "died");
  }
  return Status::Ok();
}

void HostGenerations::SendGeneration(uint32_t slot, uint64_t generation) {
  const std::vector<RankRun>& runs = world_.layout;
  for (size_t at = 0; at < runs.size(); at += kMaxRunsPerMessage) {
    size_t end = std::min(runs.size(), at + kMaxRunsPerMessage);
    links_.Send(slot, LinkLayout{generation, {&runs[at], runs.data() + end}});
  }
  const Placement& p = world_.slots[slot];
  LinkGeneration message{generation,         page_->bytes(),  p.rank,        world_.size,
                         p.local_rank,       p.local_size,    p.cross_rank,  p.cross_size,
                         world_.homogeneous, world_.data_key, world_.listen, world_.elastic};
  links_.Send(slot, message, page_->fd());
}

// Its process is not in the generation any more.
void HostGenerations::TakeOut(uint32_t slot) {
  slots_[slot].commits = CommitsOf(slot);
  slots_[slot].in_generation = 0;
}

uint64_t HostGenerations::CommitsOf(uint32_t slot) const {
  const Slot& s = slots_[slot];
  const bool counts = s.in_generation != 0 && HasPageOf(s.in_generation);
  return s.commits + (counts ? page_->Commits(LocalRankOf(slot)) : 0);
}

std::optional<uint32_t> HostGenerations::SlotAt(uint32_t local_rank, uint64_t generation) const {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].in_generation == generation && LocalRankOf(slot) == local_rank) return slot;
  }
  return std::nullopt;
}

void HostGenerations::AddSlots(const std::vector<Placement>& slots) {
  world_.slots.insert(world_.slots.end(), slots.begin(), slots.end());
  slots_.resize(world_.slots.size());
  links_.AddSlots(static_cast<uint32_t>(slots.size()));
}

void HostGenerations::Dismiss(uint32_t slot, const std::string& reason) {
  if (!std::exchange(slots_[slot].waiting, false)) return;
  links_.Send(slot, LinkDismissed{reason});
}

const RankBlock* HostGenerations::BlockOf(uint32_t slot, uint64_t generation) const {
  if (!HasPageOf(generation) || slots_[slot].in_generation != generation) return nullptr;
  return &page_->page().rank(LocalRankOf(slot));
}

uint64_t HostGenerations::HoldCommits(uint64_t generation) {
  return HasPageOf(generation) ? page_->HoldCommits() : 0;
}

void HostGenerations::ActAt(uint64_t generation, uint64_t commit, uint32_t update,
                            uint32_t grace_ms) {
  if (HasPageOf(generation)) page_->ActAt(commit, update, grace_ms);
}

void HostGenerations::Break(uint64_t generation, const std::string& reason) {
  if (generation != 0) {
    if (!page_ || page_->generation() != generation || page_->broken()) return;
    page_->Break(reason);
  }
  SendBroken(generation, reason);
}

void HostGenerations::Lose(uint32_t slot, int pid, const char* how) {
  LostRank lost{pid, slots_[slot].in_generation, SteadyNow(), "", ""};
  TakeOut(slot);
  const bool has_page = HasPageOf(lost.generation);
  if (has_page) {
    lost.doing = page_->LastCollectiveText(LocalRankOf(slot));
    lost.had_failed = page_->HadFailed(LocalRankOf(slot));
  }
  lost.reason = "rank " + std::to_string(world_.slots[slot].rank) + " (pid " +
                std::to_string(lost.pid) + " on host " + world_.host + ") " + how +
                " in the middle of the job, without hvd.shutdown()" + lost.doing + why_elsewhere_;
  if (has_page) {
    page_->Break(lost.reason);
    SendBroken(lost.generation, lost.reason);
  }
  observer_.OnLost(slot, lost);
  DropPageIfUnused();
}

void HostGenerations::SendBroken(uint64_t generation, const std::string& reason) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Slot& s = slots_[slot];
    if (generation == 0 ? !s.waiting : s.in_generation != generation) continue;
    s.waiting = false;
    links_.Send(slot, LinkBroken{generation, reason});
  }
}

bool HostGenerations::HasPageOf(uint64_t generation) const {
  return page_ && page_->generation() == generation;
}

void HostGenerations::DropPageIfUnused() {
  if (in_use()) return;
  DropPage();
  links_.ForgetOwnerless();
}

void HostGenerations::DropPage() {
  header_timer_.cancel();
  page_.reset();
}

// ---- damage: a process of the job has written where it may not

// The kernel writes this word when the process is ending already, or a moment before that shows.
void HostGenerations::OnMarkDied(uint32_t slot, uint64_t generation) {
  if (slot >= slots_.size() || slots_[slot].in_generation != generation) return;
  if (IsDying(links_.pid(slot))) return Lose(slot, links_.pid(slot), "died");
  auto again = std::make_shared<asio::steady_timer>(io_, kDeathShows);
  again->async_wait([this, again, slot, generation](const asio::error_code& error) {
    if (error || slots_[slot].in_generation != generation) return;
    if (IsDying(links_.pid(slot))) return Lose(slot, links_.pid(slot), "died");
    BreakDamaged(PartOf(slot));
  });
}

void HostGenerations::WatchHeader() {
  header_timer_.expires_after(kHeaderLook);
  header_timer_.async_wait([this](const asio::error_code& error) {
    if (error || !page_) return;
    if (!page_->HeaderIsSound()) return BreakDamaged("its header");
    WatchHeader();
  });
}

std::string HostGenerations::PartOf(uint32_t slot) const {
  return "the part of rank " + std::to_string(world_.slots[slot].rank);
}

void HostGenerations::BreakDamaged(const std::string& what) {
  if (!page_) return;
  Break(page_->generation(),
        "the memory that the ranks of host " + world_.host +
            " share was overwritten by a stray write (" + what +
            "); a process of the job writes where it may not: look for it with "
            "AddressSanitizer or valgrind");
}

// ---- the directory

void HostGenerations::OnPut(uint32_t slot, LinkPut put) {
  bool current =
      put.generation == slots_[slot].in_generation && put.generation == directory_.generation();
  if (!current || !CheckKvKey(put.key).ok()) return;
  // A process that puts what it may not is not heard; its host would be given up for it.
  if (put.value.size() > kMaxKvValue) return;
  const std::optional<uint32_t> rank = RankOfMeshKey(put.key);
  if (rank && *rank != world_.slots[slot].rank) return;
  observer_.OnPut(put);
  GiveValue(put.generation, put.key, put.value);
}

void HostGenerations::OnGet(uint32_t slot, LinkGet get) {
  bool current =
      get.generation == slots_[slot].in_generation && get.generation == directory_.generation();
  if (!current || !CheckKvKey(get.key).ok()) return;
  if (const std::string* value = directory_.Find(get.key))
    return links_.Send(slot, LinkValue{get.generation, get.key, *value});
  if (directory_.Await(slot, get.key)) observer_.OnWanted(get);
}

void HostGenerations::GiveValue(uint64_t generation, const std::string& key,
                                const std::string& value) {
  if (generation != directory_.generation()) return;
  for (uint32_t slot : directory_.Put(key, value))
    links_.Send(slot, LinkValue{generation, key, value});
}

}  // namespace hvd
