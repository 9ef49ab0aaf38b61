#include "launcher/generation/host_generations.h"

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/process/one_process.h"
#include "runtime/base/log.h"
#include "runtime/base/text/format.h"
#include "runtime/net/kv_store.h"
#include "runtime/net/mesh/mesh_resolver.h"

namespace hvd {

namespace {

constexpr auto kDeathShows = std::chrono::milliseconds(100);

std::string PartOf(uint32_t rank) { return Format("the part of rank {}", rank); }

}  // namespace

HostGenerations::HostGenerations(asio::io_context& io, HostGenerationsObserver& observer,
                                 HostWorld world, std::string job_key, std::string why_elsewhere)
    : io_(io),
      observer_(observer),
      world_(std::move(world)),
      why_elsewhere_(std::move(why_elsewhere)),
      links_(io, *this, static_cast<uint32_t>(world_.slots.size()), std::move(job_key)),
      slots_(world_.slots.size()),
      page_(io, {.on_death =
                     [this](uint32_t local_rank, uint64_t generation) {
                       if (auto slot = slots_.At(local_rank, generation))
                         OnMarkDied(*slot, generation);
                     },
                 .on_damage =
                     [this](uint32_t local_rank, uint64_t generation) {
                       if (auto slot = slots_.At(local_rank, generation))
                         BreakDamaged(PartOf(world_.RankOf(*slot)));
                     },
                 .on_header_damage = [this] { BreakDamaged("its header"); }}) {}

void HostGenerations::OnJoin(uint32_t slot) {
  LeaveGeneration(slot);  // a rank that joins has left
  slots_.Wait(slot);
  observer_.OnJoined(slot);
}

// Its peers may have failed because of it, and said goodbye themselves, while it was still closing
// its connections.
void HostGenerations::OnGoodbye(uint32_t slot, const LinkGoodbye& goodbye) {
  if (slots_.generation(slot) != goodbye.generation) return;
  LeaveGeneration(slot);
  const TimePoint now = SteadyNow();
  const auto since = TimePoint(Duration(static_cast<int64_t>(goodbye.since_ns)));
  const bool possible = since >= begun_ && since <= now;
  const GenerationPage* page = page_.Of(goodbye.generation);
  const bool had_failed = page != nullptr && page->HadFailed(world_.LocalRankOf(slot));
  observer_.OnLeft(slot, {goodbye.generation, possible ? since : now, had_failed});
  DropPageIfUnused();
}

void HostGenerations::OnLinkEnd(uint32_t slot) {
  if (slots_.generation(slot) != 0) {
    Lose(slot, links_.pid(slot), "died");
  } else if (slots_.StopWaiting(slot)) {
    observer_.OnLost(slot, LostRank{links_.pid(slot), 0, SteadyNow(), "", ""});
  }
  DropPageIfUnused();
  observer_.OnLinkClosed(slot);
}

void HostGenerations::NoteExit(uint32_t slot, int pid) {
  links_.Drain(slot);  // a goodbye may have been sent just before
  if (slots_.generation(slot) != 0 && links_.pid(slot) == pid) Lose(slot, pid, "ended");
  (void)slots_.StopWaiting(slot);
}

Status HostGenerations::Begin(uint64_t generation, const std::vector<uint32_t>& members) {
  page_.Drop();
  links_.ForgetOwnerless();
  directory_.Begin(generation);
  if (members.empty()) return Status::Ok();
  Status made = page_.Make(generation, static_cast<uint32_t>(members.size()));
  if (!made.ok()) {
    std::string reason = Format("the page of generation {} could not be made on host {}: {}",
                                generation, world_.host, made.message());
    SendBroken(0, reason);
    return Aborted(reason);
  }
  begun_ = SteadyNow();
  observer_.OnPage(members);
  for (uint32_t slot : members) {
    slots_.Enter(slot, generation, world_.LocalRankOf(slot));
    SendGeneration(slot, generation);
  }
  // A link may have ended during the decision.
  for (uint32_t slot : members) {
    if (!links_.connected(slot) && slots_.generation(slot) == generation)
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
  const GenerationPage& page = *page_.get();
  LinkGeneration message{generation,         page.bytes(),    p.rank,        world_.size,
                         p.local_rank,       p.local_size,    p.cross_rank,  p.cross_size,
                         world_.homogeneous, world_.data_key, world_.listen, world_.ranks_change};
  links_.Send(slot, message, page.fd());
}

// Its process is no longer in the generation.
void HostGenerations::LeaveGeneration(uint32_t slot) {
  slots_.Leave(slot, CommitsOf(slot) - slots_.commits(slot));
}

uint64_t HostGenerations::CommitsOf(uint32_t slot) const {
  const uint64_t generation = slots_.generation(slot);
  const GenerationPage* page = generation == 0 ? nullptr : page_.Of(generation);
  return slots_.commits(slot) + (page == nullptr ? 0 : page->Commits(world_.LocalRankOf(slot)));
}

void HostGenerations::AddSlots(const std::vector<Placement>& slots) {
  world_.slots.insert(world_.slots.end(), slots.begin(), slots.end());
  slots_.Add(slots.size());
  links_.AddSlots(static_cast<uint32_t>(slots.size()));
}

void HostGenerations::Dismiss(uint32_t slot, const std::string& reason) {
  if (!slots_.StopWaiting(slot)) return;
  links_.Send(slot, LinkDismissed{reason});
}

const RankBlock* HostGenerations::BlockOf(uint32_t slot, uint64_t generation) const {
  const GenerationPage* page = page_.Of(generation);
  if (page == nullptr || slots_.generation(slot) != generation) return nullptr;
  return &page->page().rank(world_.LocalRankOf(slot));
}

void HostGenerations::Break(uint64_t generation, const std::string& reason) {
  if (generation != 0 && !page_.Break(generation, reason)) return;
  SendBroken(generation, reason);
}

void HostGenerations::Lose(uint32_t slot, int pid, const char* how) {
  LostRank lost{pid, slots_.generation(slot), SteadyNow(), "", ""};
  LeaveGeneration(slot);
  GenerationPage* page = page_.Of(lost.generation);
  if (page != nullptr) {
    lost.doing = page->LastCollectiveText(world_.LocalRankOf(slot));
    lost.had_failed = page->HadFailed(world_.LocalRankOf(slot));
  }
  lost.reason =
      Format("rank {} on host {} (pid {}) {} in the middle of the job, without hvd.shutdown(){}{}",
             world_.RankOf(slot), world_.host, lost.pid, how, lost.doing, why_elsewhere_);
  if (page != nullptr) {
    page->Break(lost.reason);
    SendBroken(lost.generation, lost.reason);
  }
  observer_.OnLost(slot, lost);
  DropPageIfUnused();
}

void HostGenerations::SendBroken(uint64_t generation, const std::string& reason) {
  for (uint32_t slot : generation == 0 ? slots_.Waiting() : slots_.In(generation)) {
    (void)slots_.StopWaiting(slot);
    links_.Send(slot, LinkBroken{generation, reason});
  }
}

void HostGenerations::DropPageIfUnused() {
  if (slots_.in_use()) return;
  page_.Drop();
  links_.ForgetOwnerless();
}

// ---- damage: a process of the job has written outside its part of the page

// The kernel writes this word when the process is already ending, possibly a moment before the
// process shows it.
void HostGenerations::OnMarkDied(uint32_t slot, uint64_t generation) {
  if (slots_.generation(slot) != generation) return;
  if (IsDying(links_.pid(slot))) return Lose(slot, links_.pid(slot), "died");
  auto again = std::make_shared<asio::steady_timer>(io_, kDeathShows);
  again->async_wait([this, again, slot, generation](const asio::error_code& error) {
    if (error || slots_.generation(slot) != generation) return;
    if (IsDying(links_.pid(slot))) return Lose(slot, links_.pid(slot), "died");
    BreakDamaged(PartOf(world_.RankOf(slot)));
  });
}

void HostGenerations::BreakDamaged(const std::string& what) {
  if (page_.get() == nullptr) return;
  Break(page_.generation(), "the memory that the ranks of host " + world_.host +
                                " share was overwritten by a stray write (" + what +
                                "); a process of the job writes where it may not: look for it with "
                                "AddressSanitizer or valgrind");
}

// ---- the directory

void HostGenerations::OnPut(uint32_t slot, LinkPut put) {
  bool current =
      put.generation == slots_.generation(slot) && put.generation == directory_.generation();
  if (!current || !CheckKvKey(put.key).ok()) return;
  // Ignores an invalid entry; otherwise its host would be given up.
  if (put.value.size() > kMaxKvValue) return;
  const std::optional<uint32_t> rank = RankOfMeshKey(put.key);
  if (rank && *rank != world_.RankOf(slot)) return;
  observer_.OnPut(put);
  GiveValue(put.generation, put.key, put.value);
}

void HostGenerations::OnGet(uint32_t slot, LinkGet get) {
  bool current =
      get.generation == slots_.generation(slot) && get.generation == directory_.generation();
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
