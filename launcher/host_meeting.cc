#include "launcher/host_meeting.h"

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <charconv>
#include <memory>
#include <utility>

#include "launcher/job_id.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"

namespace hvd {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(10);
constexpr Duration kLongestDelay = std::chrono::milliseconds(500);
constexpr Duration kWatchDelay = std::chrono::milliseconds(500);
constexpr const char* kLeader = "leader";

// How long the server may be out of reach. Tests do not want to wait for it.
Duration MostSilence() {
  std::string ms = GetEnv("HVD_TEST_STORE_SILENCE_MS").value_or("");
  int value = 0;
  std::from_chars(ms.data(), ms.data() + ms.size(), value);
  return value > 0 ? Duration(std::chrono::milliseconds(value)) : std::chrono::seconds(30);
}

Duration Longer(Duration delay) { return std::min(delay * 2, kLongestDelay); }

}  // namespace

HostMeeting::HostMeeting(asio::io_context& io, std::string server)
    : io_(io), store_(io, std::move(server), "hvdrun"), most_silence_(MostSilence()) {}

std::string HostMeeting::Key(const char* what, const std::string& rest) const {
  return std::string(what) + "." + name_ + (rest.empty() ? "" : "." + rest);
}

void HostMeeting::Later(Duration delay, std::function<void()> then) {
  auto timer = std::make_shared<asio::steady_timer>(io_, delay);
  timer->async_wait([this, timer, turn = turn_, then](const asio::error_code& error) {
    if (!error && turn == turn_) then();
  });
}

bool HostMeeting::Tolerate(const Status& status) {
  if (status.ok()) failing_since_ = {};
  if (!status.ok() && failing_since_ == TimePoint{}) failing_since_ = SteadyNow();
  if (status.ok() || SteadyNow() - failing_since_ < most_silence_) return true;
  if (done_) Finish(Aborted(status.message() + "; is it the one of this job, and still running?"));
  return false;
}

// Until the key is there.
void HostMeeting::Poll(std::string key, Duration delay, OnValue on_value) {
  store_.Get(key, [this, turn = turn_, key, delay, on_value](auto value) {
    if (turn != turn_ || !Tolerate(value.status())) return;
    if (value.ok() && value->has_value()) return on_value(**value);
    Later(delay, [=, this] { Poll(key, Longer(delay), on_value); });
  });
}

void HostMeeting::Meet(WaitingHost here, std::function<void(Result<MetWorld>)> done) {
  Stop();
  here_ = std::move(here);
  done_ = std::move(done);
  token_ = MakeJobId();
  name_.clear();
  failing_since_ = {};
  bool leads = std::find(here_.ranks.begin(), here_.ranks.end(), 0U) != here_.ranks.end();
  if (!leads) return LookForLeader(kFirstDelay);
  name_ = MakeJobId();
  notes_.assign(here_.size, RankNote{});
  for (uint32_t local = 0; local < here_.ranks.size(); ++local)
    notes_[here_.ranks[local]] = {token_, local, here_.last_epoch};
  Lead();
}

void HostMeeting::Lead() {
  store_.Put(kLeader, name_, [this, turn = turn_](const Status& status) {
    if (turn != turn_ || !Tolerate(status)) return;
    if (status.ok()) return Gather();
    Later(kLongestDelay, [this] { Lead(); });
  });
}

// The host of rank 0: asks for one rank after the other.
void HostMeeting::Gather() {
  auto missing = std::find_if(notes_.begin(), notes_.end(),
                              [](const RankNote& note) { return note.token.empty(); });
  if (missing != notes_.end()) {
    auto rank = static_cast<size_t>(missing - notes_.begin());
    return Poll(Key("rank", std::to_string(rank)), kFirstDelay,
                [this, rank](const std::string& text) {
                  Result<RankNote> note = DecodeRankNote(text);
                  if (!note.ok()) return Finish(note.status());
                  notes_[rank] = std::move(*note);
                  Gather();
                });
  }
  Result<WorldNote> world = WorldOfNotes(notes_, MakeJobKey());
  if (!world.ok()) return Finish(world.status());
  store_.Put(Key("world"), EncodeNote(*world), [this, turn = turn_, world](const Status& status) {
    if (turn != turn_ || !Tolerate(status)) return;
    if (status.ok()) return Finish(MetWorld{*world, 0});
    Later(kLongestDelay, [this] { Gather(); });
  });
}

// Another host: a new name means that the host of rank 0 begins anew.
void HostMeeting::LookForLeader(Duration delay) {
  Poll(kLeader, delay, [this, delay](const std::string& name) {
    if (name == name_) return LookForWorld(delay);
    name_ = name;
    PutRanks(0, [this] { LookForWorld(kFirstDelay); });
  });
}

void HostMeeting::PutRanks(size_t next, std::function<void()> then) {
  if (next == here_.ranks.size()) return then();
  RankNote note{token_, static_cast<uint32_t>(next), here_.last_epoch};
  store_.Put(Key("rank", std::to_string(here_.ranks[next])), EncodeNote(note),
             [this, turn = turn_, next, then](const Status& status) {
               if (turn != turn_ || !Tolerate(status)) return;
               if (status.ok()) return PutRanks(next + 1, then);
               Later(kLongestDelay, [=, this] { PutRanks(next, then); });
             });
}

void HostMeeting::LookForWorld(Duration delay) {
  store_.Get(Key("world"), [this, turn = turn_, delay](auto value) {
    if (turn != turn_ || !Tolerate(value.status())) return;
    TakeWorld(value.ok() ? value->value_or("") : "", delay);
  });
}

void HostMeeting::TakeWorld(const std::string& text, Duration delay) {
  Result<WorldNote> world = DecodeWorldNote(text);
  if (world.ok()) {
    auto host = std::find(world->tokens.begin(), world->tokens.end(), token_);
    if (host != world->tokens.end()) {
      auto index = static_cast<uint32_t>(host - world->tokens.begin());
      return Finish(MetWorld{std::move(*world), index});
    }
  }
  Later(delay, [=, this] { LookForLeader(Longer(delay)); });
}

void HostMeeting::Finish(Result<MetWorld> outcome) {
  if (done_) std::exchange(done_, nullptr)(std::move(outcome));
}

void HostMeeting::SayBroken(const std::string& reason) {
  if (name_.empty()) return;
  store_.Put(Key("broken"), reason, [](const Status& status) {
    if (!status.ok()) LogWarning("the other hosts could not be told: " + status.message());
  });
}

void HostMeeting::Watch(OnValue broken) {
  store_.Get(Key("broken"), [this, turn = turn_, broken](auto value) {
    if (turn != turn_) return;
    if (value.ok() && value->has_value()) return broken(**value);
    Later(kWatchDelay, [this, broken] { Watch(broken); });
  });
}

void HostMeeting::Put(const std::string& key, const std::string& value) {
  store_.Put(Key("entry", key), value, [this, turn = turn_, key, value](const Status& status) {
    if (turn != turn_ || status.ok()) return;
    Later(kLongestDelay, [=, this] { Put(key, value); });
  });
}

void HostMeeting::Await(const std::string& key, OnValue done) {
  Poll(Key("entry", key), kFirstDelay, std::move(done));
}

}  // namespace hvd
