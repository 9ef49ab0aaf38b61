#include "launcher/agent/driver_connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <asio/post.hpp>
#include <optional>
#include <utility>

#include "launcher/process/jobs/job_id.h"
#include "runtime/base/text/format.h"

namespace hvd {

void KeptOutput::Add(uint32_t rank, OutputStream stream, std::string_view first,
                     std::string_view second) {
  if (!enabled_ || stream == OutputStream::kResult) return;
  const size_t size = first.size() + second.size();
  if (size == 0) return;
  Place& place = places_[{rank, stream}];
  Piece piece{{rank, stream}, place.end, {}};
  piece.bytes.reserve(size);
  piece.bytes.append(first).append(second);
  place.end += size;
  bytes_ += size;
  pieces_.push_back(std::move(piece));
}

void KeptOutput::NotePrinted(const OutputPrinted& printed) {
  Place& place = places_[{printed.rank, printed.stream}];
  place.printed = std::max(place.printed, std::min(printed.bytes, place.end));
  while (!pieces_.empty()) {
    const Piece& first = pieces_.front();
    if (first.begin + first.bytes.size() > places_[first.writer].printed) return;
    bytes_ -= first.bytes.size();
    pieces_.pop_front();
  }
}

void KeptOutput::ForEach(const std::function<void(uint32_t rank, OutputStream stream,
                                                  std::string_view bytes)>& take) const {
  for (const Piece& piece : pieces_) {
    const uint64_t printed = places_.at(piece.writer).printed;
    const uint64_t over = printed > piece.begin ? printed - piece.begin : 0;
    if (over >= piece.bytes.size()) continue;
    take(piece.writer.first, piece.writer.second, std::string_view(piece.bytes).substr(over));
  }
}

namespace {

constexpr size_t kMaxLogPiece = kMaxFramePayload - kOutputOverhead;

StreamOptions OptionsOf(const std::string& job_id) {
  StreamOptions options;
  options.job = ParseJobId(job_id).value_or(0);
  return options;
}

// The process at the other end of a unix socket; our own if the kernel does not reveal it.
int32_t PeerOf(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  bool known = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.pid > 0;
  return known ? peer.pid : ::getpid();
}

}  // namespace

DriverConnection::DriverConnection(asio::io_context& io, const std::string& job_id,
                                   DriverConnectionOwner& owner)
    : io_(io),
      owner_(owner),
      job_id_(job_id),
      stream_(OptionsOf(job_id)),
      tick_timer_(io),
      return_timer_(io) {}

void DriverConnection::Open(UniqueFd input, UniqueFd output) {
  Begin();
  Carry([&](BytePumpHandlers handlers) {
    return std::make_unique<BytePump>(io_, std::move(input), std::move(output),
                                      std::move(handlers));
  });
}

void DriverConnection::Open(SealedLine line, UniqueFd lifeline) {
  Begin();
  Carry([&](BytePumpHandlers handlers) {
    return std::make_unique<SealedPump>(io_, std::move(line), std::move(handlers));
  });
  lifeline_ = std::make_unique<BytePump>(
      io_, std::move(lifeline), UniqueFd(),
      BytePumpHandlers{[](std::string_view) {}, [] {}, [this] { Lose("its step ended"); }});
}

void DriverConnection::Begin() {
  stream_.Attach(SteadyNow());
  ScheduleTick();
}

template <typename MakePath>
void DriverConnection::Carry(MakePath make_path) {
  // Drops events of a former connection that are still queued.
  auto current = std::make_shared<BytePath*>(nullptr);
  auto if_current = [this, current](auto&& then) {
    if (*current == path_.get()) then();
  };
  path_ = make_path(BytePumpHandlers{
      [this, if_current](std::string_view bytes) { if_current([&] { OnBytes(bytes); }); },
      [this, if_current] { if_current([this] { Flush(); }); },
      [this, if_current] { if_current([this] { Lose("the stream to the driver ended"); }); }});
  *current = path_.get();
}

void DriverConnection::Disconnect() {
  stream_.Detach();
  client_.Reset();
  if (lifeline_) lifeline_->Close();
  if (!path_) return;
  path_->Close();
  // This call may come from one of its handlers, and another handler may be queued.
  asio::post(io_, [old = std::shared_ptr<BytePath>(std::move(path_))] {});
}

void DriverConnection::GiveUp() {
  Disconnect();
  absence_.GiveUp();
  return_timer_.cancel();
}

// The workers continue; their output is kept. Nothing else changes until the grace period is over.
void DriverConnection::Lose(const std::string& reason) {
  Disconnect();
  if (!listener_ || absence_.over()) return owner_.OnDriverGone(reason);
  if (!absence_.Begin()) return;
  Flush();
  owner_.OnDriverAway(reason);
  return_timer_.expires_after(absence_.grace());
  return_timer_.async_wait([this](const asio::error_code& error) {
    if (!error && absence_.away()) owner_.OnDriverGone("the driver did not come back");
  });
}

// The end of the former connection may not have been noticed here yet.
void DriverConnection::Resume(ReturnedStream stream) {
  if (absence_.over()) return;
  Disconnect();
  absence_.End();
  return_timer_.cancel();
  client_ = std::move(stream.client);
  if (stream.of_successor) BeginAnew();
  stream_.Attach(SteadyNow());
  Carry([&](BytePumpHandlers handlers) {
    return std::make_unique<BytePump>(io_, std::move(stream.input), std::move(stream.output),
                                      std::move(handlers));
  });
  Flush();
}

// The new driver has neither received nor sent anything. What was in flight is part of the owner's
// report to it.
void DriverConnection::BeginAnew() {
  stream_ = Stream(OptionsOf(job_id_));
  stream_.set_epoch(generation_);
  holds_kept_ = true;
  SetSilenceLimit(absence_.silence_limit());
}

void DriverConnection::OnBytes(std::string_view bytes) {
  Status status = stream_.Receive(bytes, SteadyNow());
  while (std::optional<StreamMessage> message = stream_.Next()) {
    Result<ToAgent> decoded = DecodeToAgent(message->bytes);
    if (!decoded.ok()) {
      status = decoded.status();
      break;
    }
    owner_.OnDriverMessage(std::move(*decoded));
  }
  if (!status.ok()) {
    Disconnect();
    return owner_.OnDriverGone("the stream to the driver is damaged: " + status.message());
  }
  Flush();
  owner_.OnDriverMessagesOver();
}

void DriverConnection::Send(const ToDriver& message) {
  if (IsBulk(message)) {
    stream_.SendBulk(EncodeToDriver(message));
  } else {
    stream_.SendControl(EncodeToDriver(message));
  }
  Flush();
}

void DriverConnection::SendOutput(uint32_t rank, OutputStream stream, std::string_view first,
                                  std::string_view second) {
  if (absence_.over()) return;
  kept_.Add(rank, stream, first, second);
  if (holds_kept_) return absence_.NoteOutput(first.size() + second.size());
  SendLog(rank, stream, first, second);
  Flush();
}

void DriverConnection::SendKept(const std::vector<OutputPrinted>& printed) {
  holds_kept_ = false;
  for (const OutputPrinted& one : printed) kept_.NotePrinted(one);
  kept_.ForEach([this](uint32_t rank, OutputStream stream, std::string_view bytes) {
    SendLog(rank, stream, bytes, {});
  });
  Flush();
}

void DriverConnection::SendLog(uint32_t rank, OutputStream stream, std::string_view first,
                               std::string_view second) {
  while (!first.empty() || !second.empty()) {
    std::string_view head = first.substr(0, kMaxLogPiece);
    std::string_view tail = second.substr(0, kMaxLogPiece - head.size());
    absence_.NoteOutput(head.size() + tail.size());
    stream_.SendLog(EncodeOutput(rank, stream, head, tail));
    first.remove_prefix(head.size());
    second.remove_prefix(tail.size());
  }
}

void DriverConnection::Flush() {
  while (path_) {
    std::string_view out = stream_.Outgoing();
    if (out.empty()) break;
    size_t wanted = out.size();
    size_t written = path_->Write(out);
    stream_.Consume(written);
    if (written < wanted) break;
  }
  owner_.OnDriverFlushed();
}

void DriverConnection::ScheduleTick() {
  tick_timer_.expires_at(stream_.NextTick());
  tick_timer_.async_wait([this](const asio::error_code& error) {
    if (error) return;
    const TimePoint now = SteadyNow();
    stream_.Tick(now);
    owner_.OnDriverTick();
    Flush();
    LookForDriver(now);
    ScheduleTick();
  });
}

// A driver that was cut off leaves the stream open.
void DriverConnection::LookForDriver(TimePoint now) {
  if (!path_ || !absence_.IsSilent(stream_.last_heard(), now)) return;
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(absence_.silence_limit());
  Lose(Format("nothing was heard of the driver for {} s", seconds.count()));
}

// The driver expects a heartbeat within the same limit.
void DriverConnection::SetSilenceLimit(Duration limit) {
  absence_.set_silence_limit(limit);
  if (limit <= Duration::zero()) return;
  stream_.set_heartbeat(std::min<Duration>(StreamOptions().heartbeat, limit / 5));
  ScheduleTick();
}

Status DriverConnection::Await(AwaitDriver await) {
  if (await.key.empty() || await.grace_ms <= 0) return Status::Ok();
  HVD_RETURN_IF_ERROR(Listen(await.grace_ms));
  listener_->set_driver_key(std::move(await.key));
  return Status::Ok();
}

Status DriverConnection::Await(AwaitSuccessor await) {
  if (await.key.empty() || await.grace_ms <= 0) return Status::Ok();
  HVD_RETURN_IF_ERROR(Listen(await.grace_ms));
  kept_.Enable();
  listener_->set_successor_key(std::move(await.key));
  return Status::Ok();
}

Status DriverConnection::Listen(int64_t grace_ms) {
  absence_.set_grace(std::chrono::milliseconds(grace_ms));
  if (listener_) return Status::Ok();
  auto listener = std::make_unique<ResumeListener>(
      io_, [this](ReturnedStream stream) { Resume(std::move(stream)); });
  HVD_RETURN_IF_ERROR(listener->Open(listener_address_));
  listener_ = std::move(listener);
  return Status::Ok();
}

int32_t DriverConnection::HolderPid() const { return client_.valid() ? PeerOf(client_.get()) : 0; }

}  // namespace hvd
