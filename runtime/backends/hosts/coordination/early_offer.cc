#include "runtime/backends/hosts/coordination/early_offer.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hvd {

std::optional<uint32_t> EarlyReceiver(const HostMap& map, uint32_t leader,
                                      const ReadyMessage& report) {
  const bool offers = !report.sum.empty() && report.failure.ok() && report.joined.empty();
  if (!offers || leader != map.rank) return std::nullopt;
  const std::vector<uint32_t> leaders = FirstMembers(map, report.ranks);
  if (leaders.size() != 2 || leaders[0] != leader) return std::nullopt;
  const auto first_there = std::ranges::find(map.host_of, map.host_of[leaders[1]]);
  if (first_there - map.host_of.begin() != leaders[1]) return std::nullopt;
  return leaders[1];
}

bool HaveSameName(const ReadyMessage& a, const ReadyMessage& b) {
  return a.name == b.name && a.domain == b.domain && a.ranks == b.ranks;
}

bool Completes(const ReadyMessage& early, size_t early_bytes, const ReadyMessage& report,
               size_t offered_bytes) {
  return HaveSameName(early, report) && report.collective == early.collective &&
         report.detail == early.detail && report.parts == early.parts && report.failure.ok() &&
         report.joined.empty() && offered_bytes != 0 && offered_bytes == early_bytes;
}

RunMessage EarlyRun(uint32_t leader, uint64_t ticket, MessageBytes part, size_t set_size) {
  RunMessage run;
  run.entries.push_back({ticket, static_cast<uint32_t>(set_size), {}});
  run.sums.resize(2);
  run.sums[1 - leader] = std::move(part);
  return run;
}

Status KeptOffer::Keep(ReadyMessage&& offer) {
  if (offer_) return Internal("the coordinator sent an early offer behind another one");
  offer_ = std::move(offer);
  return Status::Ok();
}

void KeptOffer::Drop(uint64_t ticket) {
  if (offer_ && offer_->ticket == ticket) offer_.reset();
}

// A join is announced differently, and may have any name.
bool KeptOffer::IsFor(const ReadyMessage& report) const {
  const bool joins = report.collective == Collective::kJoin && report.failure.ok();
  return offer_ && !joins && HaveSameName(*offer_, report);
}

std::optional<RunMessage> KeptOffer::Use(const ReadyMessage& report, size_t offered_bytes,
                                         size_t set_size) {
  std::optional<RunMessage> run;
  if (Completes(*offer_, offer_->sum.size(), report, offered_bytes))
    run = EarlyRun(1, report.ticket, std::move(offer_->sum), set_size);
  offer_.reset();
  return run;
}

}  // namespace hvd
