#include "launcher/live/live_service.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "launcher/live/metrics_text.h"
#include "launcher/live/view_json.h"
#include "runtime/base/clock.h"

namespace hvd {
namespace {

constexpr auto kLookEvery = std::chrono::seconds(1);
// How long the ranks measure their waits after the last question.
constexpr uint32_t kMeasuredMs = 5000;
// For the rings of one host, which are at most some megabytes.
constexpr auto kHostLimit = std::chrono::seconds(10);

}  // namespace

LiveService::LiveService(asio::io_context& io, Hooks hooks)
    : io_(io),
      hooks_(std::move(hooks)),
      look_timer_(io),
      dump_timer_(io),
      server_(io, {[this] { Look(); },
                   [this](uint64_t client, Dumped dumped) { BeginDump(client, dumped); },
                   [this](uint64_t client) {
                     if (dump_ && dump_->client == client && dump_->answered) AskNext();
                   }}) {}

Status LiveService::Open(const std::string& job_id) { return server_.Open(job_id); }

Status LiveService::OpenMetrics(const std::string& address, uint16_t port) {
  metrics_ = std::make_unique<MetricsServer>(io_, [this] { return MetricsText(View()); });
  if (Status open = metrics_->Open(address, port); !open.ok()) {
    metrics_.reset();
    return open;
  }
  Look();
  return Status::Ok();
}

void LiveService::Close() {
  server_.Close();
  metrics_.reset();
  look_timer_.cancel();
  dump_timer_.cancel();
  dump_.reset();
}

bool LiveService::wanted() const { return metrics_ != nullptr || server_.has_viewers(); }

// ---- views

// One round: publishes the answers received, and asks again.
void LiveService::Look() {
  if (looking_ || !wanted()) return;
  looking_ = true;
  AskAll();
  look_timer_.expires_after(kLookEvery);
  look_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    looking_ = false;
    PublishView();
    Look();
  });
}

void LiveService::AskAll() {
  const std::vector<uint32_t> hosts = hooks_.hosts();
  awaited_ = {hosts.begin(), hosts.end()};
  published_ = false;
  ++number_;
  for (uint32_t host : hosts) hooks_.send(host, AskCounts{number_, kMeasuredMs});
  if (hosts.empty()) PublishView();
}

// At most once per question: as soon as all have answered, or when the next is due.
void LiveService::PublishView() {
  if (published_) return;
  published_ = true;
  if (server_.has_viewers()) server_.Publish(ViewJson(View()));
}

Status LiveService::Handle(uint32_t host, const CountsReply& reply) {
  for (const WorkerCounts& counts : reply.workers) {
    if (counts.activity > RankActivity::kLeft)
      return InvalidArgument("its agent reported an unknown state of a rank");
    Looks& looks = looks_[counts.worker];
    const bool continues = looks.generation == reply.generation && looks.host == host;
    if (continues && reply.at_ns <= looks.at_ns) continue;
    looks.rates =
        continues ? RatesBetween(looks.counts, counts, reply.at_ns - looks.at_ns) : std::nullopt;
    looks.host = host;
    looks.generation = reply.generation;
    looks.at_ns = reply.at_ns;
    looks.counts = counts;
  }
  if (reply.number == number_ && awaited_.erase(host) > 0 && awaited_.empty()) PublishView();
  return Status::Ok();
}

JobView LiveService::View() const {
  JobView view = hooks_.outline();
  view.time = static_cast<double>(WallNanoseconds()) / 1e9;
  for (RankView& rank : view.ranks) {
    const auto found = looks_.find(rank.worker);
    if (found == looks_.end() || found->second.generation != view.generation) continue;
    const std::string state = rank.state;
    Fill(&rank, found->second.counts);
    if (state == "ended") {
      rank.state = state;
    } else {
      rank.rates = found->second.rates;
    }
  }
  view.straggler = FindStraggler(view.ranks);
  return view;
}

// ---- dumps, one at a time

void LiveService::BeginDump(uint64_t client, Dumped dumped) {
  dump_clients_.emplace_back(client, dumped);
  if (dump_) return;
  while (!dump_clients_.empty() && !server_.Has(dump_clients_.front().first))
    dump_clients_.pop_front();
  if (dump_clients_.empty()) return;
  const std::vector<uint32_t> hosts = hooks_.hosts();
  Dump dump;
  std::tie(dump.client, dump.dumped) = dump_clients_.front();
  dump.hosts = {hosts.begin(), hosts.end()};
  dump_ = std::move(dump);
  dump_clients_.pop_front();
  AskNext();
}

void LiveService::AskNext() {
  if (dump_->hosts.empty() || !server_.Has(dump_->client)) return EndDump();
  dump_->answered = false;
  dump_->number = ++number_;
  if (dump_->dumped == Dumped::kEvents) {
    hooks_.send(dump_->hosts.front(), AskRings{dump_->number});
  } else {
    hooks_.send(dump_->hosts.front(),
                AskStacks{dump_->number, dump_->dumped == Dumped::kNativeStacks});
  }
  dump_timer_.expires_after(kHostLimit);
  dump_timer_.async_wait([this](const asio::error_code& error) {
    if (!error && dump_ && !dump_->answered) EndHost(false);
  });
}

void LiveService::Handle(uint32_t host, const RingReply& reply) {
  if (!dump_ || reply.number != dump_->number || dump_->hosts.front() != host) return;
  RingHead head;
  head.rank = reply.world_rank;
  head.host = hooks_.name_of(host);
  head.generation = reply.generation;
  HostOffset& offset = offsets_[host];
  head.offset_ns = offset.At(hooks_.clock_of(host), FirstStampIn(reply.records)).value_or(0);
  head.uncertainty_ns = offset.uncertainty_ns();
  head.bytes = reply.records.size();
  server_.Send(dump_->client, RingHeadJson(head) + "\n" + reply.records);
}

void LiveService::Handle(uint32_t host, const StacksReply& reply) {
  if (!dump_ || reply.number != dump_->number || dump_->hosts.front() != host) return;
  const JobView outline = hooks_.outline();
  for (const WorkerStacks& stacks : reply.workers) {
    const auto rank = std::ranges::find(outline.ranks, stacks.worker, &RankView::worker);
    if (rank == outline.ranks.end()) continue;
    RingHead head;
    head.rank = rank->rank;
    head.host = hooks_.name_of(host);
    head.generation = outline.generation;
    head.bytes = stacks.text.size();
    head.trouble = stacks.reason;
    server_.Send(dump_->client, RingHeadJson(head) + "\n" + stacks.text);
  }
  EndHost(true);
}

void LiveService::Handle(uint32_t host, const RingsOver& over) {
  if (dump_ && over.number == dump_->number && dump_->hosts.front() == host) EndHost(true);
}

// Asks the next host once the client has received the rings of this one.
void LiveService::EndHost(bool answered) {
  dump_timer_.cancel();
  if (!answered)
    dump_->missing += (dump_->missing.empty() ? "" : ", ") + hooks_.name_of(dump_->hosts.front());
  dump_->hosts.pop_front();
  dump_->answered = true;
  if (server_.IsDrained(dump_->client)) AskNext();
}

void LiveService::EndDump() {
  dump_timer_.cancel();
  RingHead end;
  end.end = true;
  if (!dump_->missing.empty())
    end.trouble = "the ranks of " + dump_->missing + " are missing: no answer within 10 s";
  server_.Send(dump_->client, RingHeadJson(end) + "\n");
  server_.Finish(dump_->client);
  dump_.reset();
  if (!dump_clients_.empty()) {
    const auto [client, dumped] = dump_clients_.front();
    dump_clients_.pop_front();
    BeginDump(client, dumped);
  }
}

}  // namespace hvd
