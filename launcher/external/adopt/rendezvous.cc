#include "launcher/external/adopt/rendezvous.h"

#include <algorithm>
#include <asio/steady_timer.hpp>
#include <memory>
#include <utility>

#include "configs/message_text.h"
#include "launcher/external/adopt/record_seal.h"
#include "launcher/output/text/phrases.h"
#include "launcher/process/jobs/job_id.h"
#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "runtime/base/test_env.h"
#include "runtime/base/text/format.h"
#include "runtime/base/text/number_text.h"
#include "runtime/net/kv_store.h"

namespace hvd {
namespace {

constexpr Duration kFirstDelay = std::chrono::milliseconds(10);
constexpr Duration kLongestDelay = std::chrono::milliseconds(500);
constexpr Duration kWatchDelay = std::chrono::milliseconds(500);
constexpr const char *kScope = "hvdrun", *kLeader = "leader";
constexpr size_t kMostNote = 256, kMostReason = 2000;  // bytes

// How long the server may be unreachable. Shorter in tests.
Duration MostSilence() {
  return std::chrono::milliseconds(TestNumber("HVD_TEST_STORE_SILENCE_MS", 30'000));
}

// How long the ranks of a world may take to come together; zero: no limit. From Horovod's variable
// if it is set: some launchers start their ranks minutes apart.
Duration MostWait() {
  const auto seconds =
      ParseWhole<uint32_t>(GetEnv("HOROVOD_GLOO_TIMEOUT_SECONDS").value_or("")).value_or(0);
  return std::chrono::seconds(seconds);
}

// The error about ranks without a record, or about some host.
std::string LateText(const std::vector<RankEntry>& notes, Duration limit) {
  std::vector<uint32_t> late;
  for (uint32_t rank = 0; rank < notes.size(); ++rank) {
    if (notes[rank].token.empty()) late.push_back(rank);
  }
  const std::string who = late.empty()
                              ? "some ranks of the world have"
                              : Format("rank{} {} {}", late.size() == 1 ? "" : "s",
                                       RankRanges(late), late.size() == 1 ? "has" : "have");
  return Format("{} not called hvd.init() within the {} of HOROVOD_GLOO_TIMEOUT_SECONDS", who,
                SecondsText(limit));
}

// Hosts send their reasons as sentences; without a secret anyone can write to the server.
bool IsReason(const std::string& text) {
  return text.find(' ') != std::string::npos && Printable(text, text.size()) == text;
}

Duration Longer(Duration delay) { return std::min(delay * 2, kLongestDelay); }

}  // namespace

Rendezvous::Rendezvous(asio::io_context& io, std::string server, std::string secret)
    : io_(io),
      store_(io, std::move(server), kScope),
      secret_(std::move(secret)),
      most_silence_(MostSilence()) {}

std::string Rendezvous::Key(const char* what, const std::string& rest) const {
  return std::string(what) + "." + name_ + (rest.empty() ? "" : "." + rest);
}

void Rendezvous::GetRecord(const std::string& key, size_t most_bytes, HttpStore::OnGet done) {
  store_.Get(key, most_bytes + kSealBytes, [this, key, done](auto value) {
    if (!value.ok() || !value->has_value()) return done(std::move(value));
    Result<std::string> text = OpenRecord(secret_, key, **value);
    if (!text.ok()) return done(text.status());
    done(std::optional(std::move(*text)));
  });
}

void Rendezvous::PutRecord(const std::string& key, const std::string& text, HttpStore::OnPut done) {
  store_.Put(key, SealRecord(secret_, key, text), std::move(done));
}

void Rendezvous::Later(Duration delay, std::function<void()> then) {
  auto timer = std::make_shared<asio::steady_timer>(io_, delay);
  timer->async_wait([this, timer, turn = turn_, then](const asio::error_code& error) {
    if (!error && turn == turn_) then();
  });
}

bool Rendezvous::Tolerate(const std::string& key, const Status& status) {
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

void Rendezvous::RefuseRecord(const std::string& key, const Status& what) {
  std::string reason = "the key-value server at " + store_.server() + " has a record " + kScope +
                       "/" + key + " that " + what.message() +
                       ", so this world ends; does another job or program write to that server?";
  if (done_ && leads_) {
    Send(Key("world"), EncodeRefusal(reason));
  } else {
    SendBroken(reason);
  }
  Fail(reason);
}

void Rendezvous::Fail(const std::string& reason) {
  if (done_) return Finish(Aborted(reason));
  if (broken_) std::exchange(broken_, nullptr)(reason);
}

// Polls until the key exists.
void Rendezvous::Poll(std::string key, size_t most_bytes, Duration delay, OnValue on_value) {
  auto take = [this, turn = turn_, key, most_bytes, delay, on_value](auto value) {
    if (turn != turn_ || !Tolerate(key, value.status())) return;
    if (value.ok() && value->has_value()) return on_value(**value);
    Later(delay, [=, this] { Poll(key, most_bytes, Longer(delay), on_value); });
  };
  // The name of a rendezvous is not secret, and proves nothing.
  if (key == kLeader) return store_.Get(key, most_bytes, take);
  GetRecord(key, most_bytes, take);
}

void Rendezvous::Stop() {
  ++turn_;
  broken_ = nullptr;
}

void Rendezvous::Meet(WaitingHost here, std::function<void(Result<MetWorld>)> done) {
  Stop();
  here_ = std::move(here);
  done_ = std::move(done);
  token_ = MakeJobId();
  name_.clear();
  failing_since_ = {};
  leads_ = std::find(here_.ranks.begin(), here_.ranks.end(), 0U) != here_.ranks.end();
  notes_.clear();
  if (const Duration limit = MostWait(); limit > Duration::zero()) {
    Later(limit, [this, limit] {
      if (!done_) return;
      const std::string reason = LateText(notes_, limit);
      if (leads_) Send(Key("world"), EncodeRefusal(reason));
      ++turn_;  // cancels everything else
      Finish(Aborted(reason));
    });
  }
  if (!leads_) return LookForLeader(kFirstDelay);
  name_ = MakeJobId();
  notes_.assign(here_.size, RankEntry{});
  for (uint32_t local = 0; local < here_.ranks.size(); ++local)
    notes_[here_.ranks[local]] = {token_, local, here_.last_generation};
  Lead();
}

void Rendezvous::Lead() {
  store_.Put(kLeader, name_, [this, turn = turn_](const Status& status) {
    if (turn != turn_ || !Tolerate(kLeader, status)) return;
    if (status.ok()) return Gather();
    Later(kLongestDelay, [this] { Lead(); });
  });
}

// The host of rank 0 collects the records of one rank after the other.
void Rendezvous::Gather() {
  auto missing = std::find_if(notes_.begin(), notes_.end(),
                              [](const RankEntry& note) { return note.token.empty(); });
  if (missing != notes_.end()) {
    auto rank = static_cast<size_t>(missing - notes_.begin());
    std::string key = Key("rank", std::to_string(rank));
    return Poll(key, kMostNote, kFirstDelay, [this, rank, key](const std::string& text) {
      Result<RankEntry> note = DecodeRankEntry(text);
      if (!note.ok()) return RefuseRecord(key, note.status());
      notes_[rank] = std::move(*note);
      Gather();
    });
  }
  std::string key = Key("world");
  Result<WorldRecord> world = WorldOfRecords(notes_, MakeJobKey());
  if (!world.ok()) {
    Send(key, EncodeRefusal(world.status().message()));
    return Finish(world.status());
  }
  PutRecord(key, EncodeRecord(*world), [this, turn = turn_, key, world](const Status& status) {
    if (turn != turn_ || !Tolerate(key, status)) return;
    if (status.ok()) return FinishWith(key, *world);
    Later(kLongestDelay, [this] { Gather(); });
  });
}

// On other hosts, a new name means that the host of rank 0 starts over.
void Rendezvous::LookForLeader(Duration delay) {
  Poll(kLeader, kMostNote, delay, [this, delay](const std::string& name) {
    if (name == name_) return LookForWorld(delay);
    if (!IsRendezvousName(name))
      return RefuseRecord(kLeader, InvalidArgument("names no rendezvous"));
    name_ = name;
    EnterRendezvous();
  });
}

// A refusal that is older than our ranks was not written for them.
void Rendezvous::EnterRendezvous() {
  std::string key = Key("world");
  GetRecord(key, MostBytesOfWorldRecord(here_.size), [this, turn = turn_, key](auto value) {
    if (turn != turn_ || !Tolerate(key, value.status())) return;
    if (!value.ok()) return Later(kLongestDelay, [this] { EnterRendezvous(); });
    old_refusal_ = value->has_value() && DecodeRefusal(**value);
    PutRanks(0, [this] { LookForWorld(kFirstDelay); });
  });
}

void Rendezvous::PutRanks(size_t next, std::function<void()> then) {
  if (next == here_.ranks.size()) return then();
  RankEntry note{token_, static_cast<uint32_t>(next), here_.last_generation};
  std::string key = Key("rank", std::to_string(here_.ranks[next]));
  PutRecord(key, EncodeRecord(note), [this, turn = turn_, key, next, then](const Status& status) {
    if (turn != turn_ || !Tolerate(key, status)) return;
    if (status.ok()) return PutRanks(next + 1, then);
    Later(kLongestDelay, [=, this] { PutRanks(next, then); });
  });
}

void Rendezvous::LookForWorld(Duration delay) {
  std::string key = Key("world");
  GetRecord(key, MostBytesOfWorldRecord(here_.size), [this, turn = turn_, key, delay](auto value) {
    if (turn != turn_ || !Tolerate(key, value.status())) return;
    if (value.ok() && value->has_value()) return HandleWorld(key, **value, delay);
    Later(delay, [=, this] { LookForLeader(Longer(delay)); });
  });
}

void Rendezvous::HandleWorld(const std::string& key, const std::string& text, Duration delay) {
  if (std::optional<std::string> reason = DecodeRefusal(text)) {
    if (!IsReason(*reason)) return RefuseRecord(key, InvalidArgument("is no sentence"));
    if (!old_refusal_) return Finish(Aborted(*reason));
    return Later(delay, [=, this] { LookForLeader(Longer(delay)); });
  }
  Result<WorldRecord> world = DecodeWorldRecord(text, here_.size);
  if (!world.ok()) return RefuseRecord(key, world.status());
  bool ours = std::find(world->tokens.begin(), world->tokens.end(), token_) != world->tokens.end();
  if (ours) return FinishWith(key, *world);
  // Made from records of an agent that has ended.
  Later(delay, [=, this] { LookForLeader(Longer(delay)); });
}

void Rendezvous::FinishWith(const std::string& key, const WorldRecord& world) {
  Result<HostWorld> part = PartOfWaiting(world, here_, token_);
  if (!part.ok()) return RefuseRecord(key, part.status());
  part->data_key = KeyOfWorld(secret_, part->data_key);
  Finish(MetWorld{world.generation, std::move(*part)});
}

void Rendezvous::Finish(Result<MetWorld> outcome) {
  if (done_) std::exchange(done_, nullptr)(std::move(outcome));
}

void Rendezvous::SendBroken(const std::string& reason) {
  if (!name_.empty()) Send(Key("broken"), Printable(reason, kMostReason));
}

void Rendezvous::Send(const std::string& key, const std::string& text) {
  ++telling_;
  PutRecord(key, text, [this](const Status& status) {
    --telling_;
    if (!status.ok()) LogWarning("the other hosts could not be told: " + status.message());
  });
}

void Rendezvous::Watch(OnValue broken) {
  broken_ = std::move(broken);
  LookForBreak();
}

void Rendezvous::LookForBreak() {
  std::string key = Key("broken");
  GetRecord(key, kMostReason * 2, [this, turn = turn_, key](auto value) {
    if (turn != turn_ || !broken_) return;
    if (value.status().code() == Code::kInvalidArgument) return RefuseRecord(key, value.status());
    if (value.ok() && value->has_value()) {
      if (!IsReason(**value)) return RefuseRecord(key, InvalidArgument("is no sentence"));
      return Fail(Printable(**value, kMostReason));
    }
    Later(kWatchDelay, [this] { LookForBreak(); });
  });
}

void Rendezvous::Put(const std::string& key, const std::string& value) {
  PutRecord(Key("entry", key), value, [this, turn = turn_, key, value](const Status& status) {
    if (turn != turn_ || status.ok()) return;
    Later(kLongestDelay, [=, this] { Put(key, value); });
  });
}

void Rendezvous::Await(const std::string& key, OnValue done) {
  Poll(Key("entry", key), kMaxKvValue, kFirstDelay, std::move(done));
}

}  // namespace hvd
