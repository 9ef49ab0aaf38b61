#include "launcher/external/adopt/external_view.h"

#include <algorithm>
#include <asio/post.hpp>
#include <utility>
#include <variant>

#include "runtime/base/log.h"

namespace hvd {

ExternalView::ExternalView(asio::io_context& io, std::string job_id,
                           const HostGenerations& generations)
    : io_(io),
      job_id_(std::move(job_id)),
      generations_(generations),
      recorders_(io, [this](const ToDriver& answer) { Handle(answer); }),
      stacks_(io, [this](const ToDriver& answer) { Handle(answer); }),
      live_(io, Hooks()) {}

// This host is number 0, the only one.
LiveService::Hooks ExternalView::Hooks() {
  return {[this] { return Outline(); },
          [this] {
            return generations_.page().generation() == 0 ? std::vector<uint32_t>{}
                                                         : std::vector<uint32_t>{0};
          },
          [this](uint32_t, const ToAgent& question) { Ask(question); },
          [this](uint32_t) { return generations_.world().host; },
          [this](uint32_t) -> const HostClock& { return clock_; }};
}

void ExternalView::UsePage(const std::vector<uint32_t>& slots) {
  const GenerationPage* page = generations_.page().get();
  std::vector<TracedRank> ranks;
  for (uint32_t slot : slots) {
    const Placement& place = generations_.world().slots[slot];
    ranks.push_back({slot, place.rank, place.local_rank, generations_.PidOf(slot)});
  }
  recorders_.UsePage(page->fd()->get(), page->bytes(), page->generation(), std::move(ranks));
}

JobView ExternalView::Outline() const {
  JobView view;
  view.job = job_id_;
  view.generation = generations_.page().generation();
  const HostWorld& world = generations_.world();
  view.size = world.size;
  for (uint32_t slot = 0; view.generation != 0 && slot < generations_.slots().size(); ++slot) {
    RankView rank;
    rank.worker = slot;
    rank.rank = generations_.world().RankOf(slot);
    rank.host = world.host;
    rank.pid = generations_.PidOf(slot);
    rank.state = "outside";
    view.ranks.push_back(std::move(rank));
  }
  std::ranges::sort(view.ranks, {}, &RankView::rank);
  return view;
}

StackReader::Workers ExternalView::Ranks() const {
  StackReader::Workers ranks;
  for (const RankView& rank : Outline().ranks) {
    if (rank.pid > 0) ranks.emplace_back(rank.worker, rank.pid);
  }
  return ranks;
}

// The answer must not arrive while the service is still asking.
void ExternalView::Ask(const ToAgent& question) {
  asio::post(io_, [this, question] {
    if (const auto* counts = std::get_if<AskCounts>(&question)) recorders_.Answer(*counts);
    if (const auto* rings = std::get_if<AskRings>(&question)) recorders_.Answer(*rings);
    if (const auto* stacks = std::get_if<AskStacks>(&question)) stacks_.Answer(*stacks, Ranks());
  });
}

void ExternalView::Handle(const ToDriver& answer) {
  if (const auto* counts = std::get_if<CountsReply>(&answer)) {
    if (Status taken = live_.Handle(0, *counts); !taken.ok()) LogError(taken.message());
  } else if (const auto* ring = std::get_if<RingReply>(&answer)) {
    live_.Handle(0, *ring);
  } else if (const auto* stacks = std::get_if<StacksReply>(&answer)) {
    live_.Handle(0, *stacks);
  } else if (const auto* over = std::get_if<RingsOver>(&answer)) {
    live_.Handle(0, *over);
  }
}

}  // namespace hvd
