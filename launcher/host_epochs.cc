#include "launcher/host_epochs.h"

#include <algorithm>
#include <asio/post.hpp>
#include <memory>
#include <optional>
#include <utility>

#include "launcher/one_process.h"
#include "runtime/base/log.h"
#include "runtime/net/directory.h"
#include "runtime/net/mesh_resolver.h"

namespace hvd {

namespace {

constexpr auto kHeaderLook = std::chrono::seconds(1);
constexpr auto kDeathShows = std::chrono::milliseconds(100);

}  // namespace

HostEpochs::HostEpochs(asio::io_context& io, HostEpochsObserver& observer, HostWorld world,
                       std::string job_key, std::string why_elsewhere)
    : io_(io),
      observer_(observer),
      world_(std::move(world)),
      why_elsewhere_(std::move(why_elsewhere)),
      links_(io, *this, static_cast<uint32_t>(world_.slots.size()), std::move(job_key)),
      slots_(world_.slots.size()),
      header_timer_(io) {}

bool HostEpochs::AllWaiting() const {
  return std::all_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.waiting; });
}

bool HostEpochs::in_use() const {
  return std::any_of(slots_.begin(), slots_.end(), [](const Slot& s) { return s.in_epoch != 0; });
}

void HostEpochs::OnJoin(uint32_t slot) {
  slots_[slot].in_epoch = 0;  // who joins has left
  slots_[slot].waiting = true;
  observer_.OnJoined(slot);
}

// Its peers may have failed of it, and said goodbye themselves, while it was still closing its connections.
void HostEpochs::OnGoodbye(uint32_t slot, const LinkGoodbye& goodbye) {
  Slot& s = slots_[slot];
  if (s.in_epoch != goodbye.epoch) return;
  s.in_epoch = 0;
  const TimePoint now = SteadyNow();
  const auto said = TimePoint(Duration(static_cast<int64_t>(goodbye.since_ns)));
  const bool possible = said >= begun_ && said <= now;
  const bool had_failed = HasPageOf(goodbye.epoch) && page_->HadFailed(slot);
  observer_.OnLeft(slot, {goodbye.epoch, possible ? said : now, had_failed});
  DropPageIfUnused();
}

void HostEpochs::OnLinkEnd(uint32_t slot) {
  Slot& s = slots_[slot];
  if (s.in_epoch != 0) {
    Lose(slot, links_.pid(slot), "died");
  } else if (std::exchange(s.waiting, false)) {
    observer_.OnLost(slot, LostRank{links_.pid(slot), 0, SteadyNow(), "", ""});
  }
  DropPageIfUnused();
  observer_.OnLinkClosed(slot);
}

void HostEpochs::NoteExit(uint32_t slot, int pid) {
  links_.Drain(slot);  // a goodbye may have been said just before
  if (slots_[slot].in_epoch != 0 && links_.pid(slot) == pid) Lose(slot, pid, "ended");
  slots_[slot].waiting = false;
}

Status HostEpochs::Begin(uint64_t epoch) {
  auto on_death = [this, epoch](uint32_t slot) {
    asio::post(io_, [this, epoch, slot] { OnMarkDied(slot, epoch); });
  };
  auto on_damage = [this, epoch](uint32_t slot) {
    asio::post(io_, [this, epoch, slot] {
      if (page_ && page_->epoch() == epoch) BreakDamaged(PartOf(slot));
    });
  };
  DropPage();
  links_.ForgetOwnerless();
  directory_.Begin(epoch);
  auto local_size = static_cast<uint32_t>(slots_.size());
  Result<std::unique_ptr<EpochPage>> page = EpochPage::Make(epoch, local_size, on_death, on_damage);
  if (!page.ok()) {
    std::string reason = "the page of epoch " + std::to_string(epoch) +
                         " could not be made on host " + world_.host + ": " +
                         page.status().message();
    TellBroken(0, reason);
    return Aborted(reason);
  }
  page_ = std::move(*page);
  begun_ = SteadyNow();
  WatchHeader();
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    slots_[slot].in_epoch = epoch;
    slots_[slot].waiting = false;
    SendEpoch(slot, epoch);
  }
  // A link may have ended while it was decided.
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (!links_.connected(slot) && slots_[slot].in_epoch == epoch)
      Lose(slot, links_.pid(slot), "died");
  }
  return Status::Ok();
}

void HostEpochs::SendEpoch(uint32_t slot, uint64_t epoch) {
  const std::vector<RankRun>& runs = world_.layout;
  for (size_t at = 0; at < runs.size(); at += kMaxRunsPerMessage) {
    size_t end = std::min(runs.size(), at + kMaxRunsPerMessage);
    links_.Send(slot, LinkLayout{epoch, {&runs[at], runs.data() + end}});
  }
  const Placement& p = world_.slots[slot];
  LinkEpoch message{epoch,        page_->bytes(), p.rank,       world_.size,        p.local_rank,
                    p.local_size, p.cross_rank,   p.cross_size, world_.homogeneous, world_.data_key,
                    world_.listen};
  links_.Send(slot, message, page_->fd());
}

void HostEpochs::Break(uint64_t epoch, const std::string& reason) {
  if (epoch != 0) {
    if (!page_ || page_->epoch() != epoch || page_->broken()) return;
    page_->Break(reason);
  }
  TellBroken(epoch, reason);
}

void HostEpochs::Lose(uint32_t slot, int pid, const char* how) {
  LostRank lost{pid, std::exchange(slots_[slot].in_epoch, 0), SteadyNow(), "", ""};
  const bool has_page = HasPageOf(lost.epoch);
  if (has_page) {
    lost.doing = page_->LastCollectiveText(slot);
    lost.had_failed = page_->HadFailed(slot);
  }
  lost.reason = "rank " + std::to_string(world_.slots[slot].rank) + " (pid " +
                std::to_string(lost.pid) + " on host " + world_.host + ") " + how +
                " in the middle of the job, without hvd.shutdown()" + lost.doing + why_elsewhere_;
  if (has_page) {
    page_->Break(lost.reason);
    TellBroken(lost.epoch, lost.reason);
  }
  observer_.OnLost(slot, lost);
  DropPageIfUnused();
}

void HostEpochs::TellBroken(uint64_t epoch, const std::string& reason) {
  for (uint32_t slot = 0; slot < slots_.size(); ++slot) {
    Slot& s = slots_[slot];
    if (epoch == 0 ? !s.waiting : s.in_epoch != epoch) continue;
    s.waiting = false;
    links_.Send(slot, LinkBroken{epoch, reason});
  }
}

bool HostEpochs::HasPageOf(uint64_t epoch) const { return page_ && page_->epoch() == epoch; }

void HostEpochs::DropPageIfUnused() {
  if (in_use()) return;
  DropPage();
  links_.ForgetOwnerless();
}

void HostEpochs::DropPage() {
  header_timer_.cancel();
  page_.reset();
}

// ---- damage: a process of the job has written where it may not

// The kernel writes this word when the process is ending already, or a moment before that shows.
void HostEpochs::OnMarkDied(uint32_t slot, uint64_t epoch) {
  if (slot >= slots_.size() || slots_[slot].in_epoch != epoch) return;
  if (IsDying(links_.pid(slot))) return Lose(slot, links_.pid(slot), "died");
  auto again = std::make_shared<asio::steady_timer>(io_, kDeathShows);
  again->async_wait([this, again, slot, epoch](const asio::error_code& error) {
    if (error || slots_[slot].in_epoch != epoch) return;
    if (IsDying(links_.pid(slot))) return Lose(slot, links_.pid(slot), "died");
    BreakDamaged(PartOf(slot));
  });
}

void HostEpochs::WatchHeader() {
  header_timer_.expires_after(kHeaderLook);
  header_timer_.async_wait([this](const asio::error_code& error) {
    if (error || !page_) return;
    if (!page_->HeaderIsSound()) return BreakDamaged("its header");
    WatchHeader();
  });
}

std::string HostEpochs::PartOf(uint32_t slot) const {
  return "the part of rank " + std::to_string(world_.slots[slot].rank);
}

void HostEpochs::BreakDamaged(const std::string& what) {
  if (!page_) return;
  Break(page_->epoch(), "the memory that the ranks of host " + world_.host +
                            " share was overwritten by a stray write (" + what +
                            "); a process of the job writes where it may not: look for it with "
                            "AddressSanitizer or valgrind");
}

// ---- the directory

void HostEpochs::OnPut(uint32_t slot, LinkPut put) {
  bool current = put.epoch == slots_[slot].in_epoch && put.epoch == directory_.epoch();
  if (!current || !CheckDirectoryKey(put.key).ok()) return;
  // A process that puts what it may not is not heard; its host would be given up for it.
  if (put.value.size() > kMaxDirectoryValue) return;
  const std::optional<uint32_t> rank = RankOfMeshKey(put.key);
  if (rank && *rank != world_.slots[slot].rank) return;
  observer_.OnPut(put);
  GiveValue(put.epoch, put.key, put.value);
}

void HostEpochs::OnGet(uint32_t slot, LinkGet get) {
  bool current = get.epoch == slots_[slot].in_epoch && get.epoch == directory_.epoch();
  if (!current || !CheckDirectoryKey(get.key).ok()) return;
  if (const std::string* value = directory_.Find(get.key))
    return links_.Send(slot, LinkValue{get.epoch, get.key, *value});
  if (directory_.Await(slot, get.key)) observer_.OnWanted(get);
}

void HostEpochs::GiveValue(uint64_t epoch, const std::string& key, const std::string& value) {
  if (epoch != directory_.epoch()) return;
  for (uint32_t slot : directory_.Put(key, value)) links_.Send(slot, LinkValue{epoch, key, value});
}

}  // namespace hvd
