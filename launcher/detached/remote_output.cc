#include "launcher/detached/remote_output.h"

#include <poll.h>

#include <string_view>
#include <utility>
#include <variant>

#include "launcher/detached/viewer_pipes.h"
#include "launcher/process/jobs/job_id.h"

namespace hvd {
namespace {

constexpr int kMomentAheadMs = 30;
// How much may be shown before the host gets a report while more is arriving.
constexpr uint64_t kReportEvery = 16 << 10;

}  // namespace

RemoteOutput::RemoteOutput(UniqueFd from, UniqueFd to)
    : from_(std::move(from)), to_(std::move(to)) {
  MakeNonblocking(from_.get());
  MakeNonblocking(to_.get());
}

std::optional<ToViewer> RemoteOutput::Broken(const std::string& trouble) {
  broken_ = true;
  trouble_ = trouble;
  return std::nullopt;
}

void RemoteOutput::Send() {
  if (outgoing_.empty() && shown_ != reported_) {
    reported_ = shown_;
    outgoing_ = messages_.Next(FromViewer(ShownUpTo{reported_}));
  }
  // If the host is gone, reading reports it.
  if (to_.valid() && !SendSome(to_.get(), &outgoing_)) to_.Reset();
}

std::optional<ToViewer> RemoteOutput::Receive() {
  Send();
  for (bool waited = false;; waited = true) {
    Result<std::optional<ToViewer>> message = reader_.Next();
    if (!message.ok()) return Broken(message.status().message());
    if (*message) return std::move(*message);
    if (broken_ || waited) return std::nullopt;
    pollfd entries[] = {{from_.get(), POLLIN, 0},
                        {outgoing_.empty() || !to_.valid() ? -1 : to_.get(), POLLOUT, 0}};
    (void)::poll(entries, std::size(entries), kMomentAheadMs);
    std::string bytes;
    if (!ReceiveSome(from_.get(), &bytes)) broken_ = true;  // after what came before
    if (preamble_.over()) {
      reader_.Append(bytes);
    } else if (const std::optional<std::string> rest = preamble_.Consume(bytes)) {
      reader_.Append(*rest);
    } else if (preamble_.too_long()) {
      return Broken("it does not come to an end with \"" + preamble_.printed() + "\"");
    }
  }
}

RemoteOutput::Opening RemoteOutput::Open() {
  std::optional<ToViewer> message = Receive();
  if (!message) return broken_ ? Opening::kBroken : Opening::kWaits;
  auto* there = std::get_if<JobThere>(&*message);
  if (there == nullptr || !ParseJobId(there->id)) {
    (void)Broken("it does not say which job it is");
    return Opening::kBroken;
  }
  job_ = std::move(*there);
  return Opening::kThere;
}

void RemoteOutput::Begin(LogPlace from, std::optional<ShownRecord> own) {
  own_ = std::move(own);
  received_ = shown_ = reported_ = from;
  outgoing_ += messages_.Next(FromViewer(ShowFrom{from}));
  Send();
}

OutputSource::Event RemoteOutput::Next(OutputPiece* piece) {
  if (ended_) return Event::kEnded;
  std::optional<ToViewer> message = Receive();
  if (!message) return broken_ ? Event::kBroken : Event::kIdle;
  if (auto* over = std::get_if<JobOver>(&*message)) {
    ended_ = true;
    end_ = {over->exit_code, 0, std::move(over->reason)};
    return Event::kEnded;
  }
  auto* text = std::get_if<OutputPiece>(&*message);
  const Status fits = text == nullptr ? InvalidArgument("it says again which job it is")
                                      : CheckPiece(*text, received_);
  if (!fits.ok()) {
    (void)Broken(fits.message());
    return Event::kBroken;
  }
  *piece = std::move(*text);
  received_ = EndOf(*piece);
  return Event::kPiece;
}

void RemoteOutput::Shown(LogPlace place) {
  shown_ = place;
  if (own_) (void)own_->Grow(place);
  if (shown_.offset - reported_.offset >= kReportEvery) Send();
}

void RemoteOutput::StopJob() {
  outgoing_ += messages_.Next(FromViewer(StopTheJob{}));
  Send();
}

bool RemoteOutput::Leave() {
  Send();
  if (outgoing_.empty() && shown_ == reported_) to_.Reset();
  pollfd entries[] = {{from_.get(), POLLIN, 0}, {to_.valid() ? to_.get() : -1, POLLOUT, 0}};
  (void)::poll(entries, std::size(entries), kMomentAheadMs);
  std::string bytes;
  return !ReceiveSome(from_.get(), &bytes);
}

}  // namespace hvd
