#include "launcher/host_meeting.h"

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <charconv>
#include <memory>
#include <utility>

#include "configs/message_text.h"
#include "launcher/job_id.h"
#include "launcher/note_seal.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/net/directory.h"

namespace hvd {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(10);
constexpr Duration kLongestDelay = std::chrono::milliseconds(500);
constexpr Duration kWatchDelay = std::chrono::milliseconds(500);
constexpr const char *kScope = "hvdrun", *kLeader = "leader";
constexpr size_t kMostNote = 256, kMostReason = 2000;  // bytes

// How long the server may be out of reach. Tests do not want to wait for it.
Duration MostSilence() {
  std::string ms = GetEnv("HVD_TEST_STORE_SILENCE_MS").value_or("");
  int value = 0;
  std::from_chars(ms.data(), ms.data() + ms.size(), value);
  return value > 0 ? Duration(std::chrono::milliseconds(value)) : std::chrono::seconds(30);
}

Duration Longer(Duration delay) { return std::min(delay * 2, kLongestDelay); }

}  // namespace

HostMeeting::HostMeeting(asio::io_context& io, std::string server, std::string secret)
    : io_(io),
      store_(io, std::move(server), kScope),
      secret_(std::move(secret)),
      most_silence_(MostSilence()) {}

std::string HostMeeting::Key(const char* what, const std::string& rest) const {
  return std::string(what) + "." + name_ + (rest.empty() ? "" : "." + rest);
}

void HostMeeting::GetNote(const std::string& key, size_t most_bytes, HttpStore::OnGet done) {
  store_.Get(key, most_bytes + kSealBytes, [this, key, done](auto value) {
    if (!value.ok() || !value->has_value()) return done(std::move(value));
    Result<std::string> text = OpenNote(secret_, key, **value);
    if (!text.ok()) return done(text.status());
    done(std::optional(std::move(*text)));
  });
}

void HostMeeting::PutNote(const std::string& key, const std::string& text, HttpStore::OnPut done) {
  store_.Put(key, SealNote(secret_, key, text), std::move(done));
}

void HostMeeting::Later(Duration delay, std::function<void()> then) {
  auto timer = std::make_shared<asio::steady_timer>(io_, delay);
  timer->async_wait([this, timer, turn = turn_, then](const asio::error_code& error) {
    if (!error && turn == turn_) then();
  });
}

bool HostMeeting::Tolerate(const std::string& key, const Status& status) {
  if (status.code() == Code::kInvalidArgument) {
    RefuseRecord(key, status);
    return false;
  }
  if (status.ok()) failing_since_ = {};
  if (!status.ok() && failing_since_ == TimePoint{}) failing_since_ = SteadyNow();
  if (status.ok() || SteadyNow() - failing_since_ < most_silence_) return true;
  Fail(status.message() + "; is it the one of this job, and still running?");
  return false;
}

void HostMeeting::RefuseRecord(const std::string& key, const Status& what) {
  std::string reason = "the key-value server at " + store_.server() + " has a record " + kScope +
                       "/" + key + " that " + what.message() +
                       ", so this world ends; does another job or program write to that server?";
  if (done_ && leads_) {
    Tell(Key("world"), EncodeRefusal(reason));
  } else {
    SayBroken(reason);
  }
  Fail(reason);
}

void HostMeeting::Fail(const std::string& reason) {
  if (done_) return Finish(Aborted(reason));
  if (broken_) std::exchange(broken_, nullptr)(reason);
}

// Until the key is there.
void HostMeeting::Poll(std::string key, size_t most_bytes, Duration delay, OnValue on_value) {
  auto take = [this, turn = turn_, key, most_bytes, delay, on_value](auto value) {
    if (turn != turn_ || !Tolerate(key, value.status())) return;
    if (value.ok() && value->has_value()) return on_value(**value);
    Later(delay, [=, this] { Poll(key, most_bytes, Longer(delay), on_value); });
  };
  // The name of a meeting is no secret, and proves nothing.
  if (key == kLeader) return store_.Get(key, most_bytes, take);
  GetNote(key, most_bytes, take);
}

void HostMeeting::Stop() {
  ++turn_;
  broken_ = nullptr;
}

void HostMeeting::Meet(WaitingHost here, std::function<void(Result<MetWorld>)> done) {
  Stop();
  here_ = std::move(here);
  done_ = std::move(done);
  token_ = MakeJobId();
  name_.clear();
  failing_since_ = {};
  leads_ = std::find(here_.ranks.begin(), here_.ranks.end(), 0U) != here_.ranks.end();
  if (!leads_) return LookForLeader(kFirstDelay);
  name_ = MakeJobId();
  notes_.assign(here_.size, RankNote{});
  for (uint32_t local = 0; local < here_.ranks.size(); ++local)
    notes_[here_.ranks[local]] = {token_, local, here_.last_epoch};
  Lead();
}

void HostMeeting::Lead() {
  store_.Put(kLeader, name_, [this, turn = turn_](const Status& status) {
    if (turn != turn_ || !Tolerate(kLeader, status)) return;
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
    std::string key = Key("rank", std::to_string(rank));
    return Poll(key, kMostNote, kFirstDelay, [this, rank, key](const std::string& text) {
      Result<RankNote> note = DecodeRankNote(text);
      if (!note.ok()) return RefuseRecord(key, note.status());
      notes_[rank] = std::move(*note);
      Gather();
    });
  }
  std::string key = Key("world");
  Result<WorldNote> world = WorldOfNotes(notes_, MakeJobKey());
  if (!world.ok()) {
    Tell(key, EncodeRefusal(world.status().message()));
    return Finish(world.status());
  }
  PutNote(key, EncodeNote(*world), [this, turn = turn_, key, world](const Status& status) {
    if (turn != turn_ || !Tolerate(key, status)) return;
    if (status.ok()) return FinishWith(key, *world);
    Later(kLongestDelay, [this] { Gather(); });
  });
}

// Another host: a new name means that the host of rank 0 begins anew.
void HostMeeting::LookForLeader(Duration delay) {
  Poll(kLeader, kMostNote, delay, [this, delay](const std::string& name) {
    if (name == name_) return LookForWorld(delay);
    if (!IsMeetingName(name)) return RefuseRecord(kLeader, InvalidArgument("names no meeting"));
    name_ = name;
    EnterMeeting();
  });
}

// A refusal that is there before our ranks are was not written for them.
void HostMeeting::EnterMeeting() {
  std::string key = Key("world");
  GetNote(key, MostBytesOfWorldNote(here_.size), [this, turn = turn_, key](auto value) {
    if (turn != turn_ || !Tolerate(key, value.status())) return;
    if (!value.ok()) return Later(kLongestDelay, [this] { EnterMeeting(); });
    old_refusal_ = value->has_value() && DecodeRefusal(**value);
    PutRanks(0, [this] { LookForWorld(kFirstDelay); });
  });
}

void HostMeeting::PutRanks(size_t next, std::function<void()> then) {
  if (next == here_.ranks.size()) return then();
  RankNote note{token_, static_cast<uint32_t>(next), here_.last_epoch};
  std::string key = Key("rank", std::to_string(here_.ranks[next]));
  PutNote(key, EncodeNote(note), [this, turn = turn_, key, next, then](const Status& status) {
    if (turn != turn_ || !Tolerate(key, status)) return;
    if (status.ok()) return PutRanks(next + 1, then);
    Later(kLongestDelay, [=, this] { PutRanks(next, then); });
  });
}

void HostMeeting::LookForWorld(Duration delay) {
  std::string key = Key("world");
  GetNote(key, MostBytesOfWorldNote(here_.size), [this, turn = turn_, key, delay](auto value) {
    if (turn != turn_ || !Tolerate(key, value.status())) return;
    if (value.ok() && value->has_value()) return TakeWorld(key, **value, delay);
    Later(delay, [=, this] { LookForLeader(Longer(delay)); });
  });
}

void HostMeeting::TakeWorld(const std::string& key, const std::string& text, Duration delay) {
  if (std::optional<std::string> reason = DecodeRefusal(text)) {
    if (!old_refusal_) return Finish(Aborted(*reason));
    return Later(delay, [=, this] { LookForLeader(Longer(delay)); });
  }
  Result<WorldNote> world = DecodeWorldNote(text, here_.size);
  if (!world.ok()) return RefuseRecord(key, world.status());
  bool ours = std::find(world->tokens.begin(), world->tokens.end(), token_) != world->tokens.end();
  if (ours) return FinishWith(key, *world);
  // Made with what an agent that has ended wrote for these ranks.
  Later(delay, [=, this] { LookForLeader(Longer(delay)); });
}

void HostMeeting::FinishWith(const std::string& key, const WorldNote& world) {
  Result<HostWorld> part = PartOfWaiting(world, here_, token_);
  if (!part.ok()) return RefuseRecord(key, part.status());
  part->data_key = KeyOfWorld(secret_, part->data_key);
  Finish(MetWorld{world.epoch, std::move(*part)});
}

void HostMeeting::Finish(Result<MetWorld> outcome) {
  if (done_) std::exchange(done_, nullptr)(std::move(outcome));
}

void HostMeeting::SayBroken(const std::string& reason) {
  if (!name_.empty()) Tell(Key("broken"), Printable(reason, kMostReason));
}

void HostMeeting::Tell(const std::string& key, const std::string& text) {
  ++telling_;
  PutNote(key, text, [this](const Status& status) {
    --telling_;
    if (!status.ok()) LogWarning("the other hosts could not be told: " + status.message());
  });
}

void HostMeeting::Watch(OnValue broken) {
  broken_ = std::move(broken);
  LookForBreak();
}

void HostMeeting::LookForBreak() {
  std::string key = Key("broken");
  GetNote(key, kMostReason * 2, [this, turn = turn_, key](auto value) {
    if (turn != turn_ || !broken_) return;
    if (value.status().code() == Code::kInvalidArgument) return RefuseRecord(key, value.status());
    if (value.ok() && value->has_value()) return Fail(Printable(**value, kMostReason));
    Later(kWatchDelay, [this] { LookForBreak(); });
  });
}

void HostMeeting::Put(const std::string& key, const std::string& value) {
  PutNote(Key("entry", key), value, [this, turn = turn_, key, value](const Status& status) {
    if (turn != turn_ || status.ok()) return;
    Later(kLongestDelay, [=, this] { Put(key, value); });
  });
}

void HostMeeting::Await(const std::string& key, OnValue done) {
  Poll(Key("entry", key), kMaxDirectoryValue, kFirstDelay, std::move(done));
}

}  // namespace hvd
