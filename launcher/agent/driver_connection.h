// DriverConnection: an agent's stream to its driver. Sends messages and output as the driver grants
// credit. When the connection is lost and the driver may come back (resume_listener.h), the stream
// continues over the next connection; until then output is kept, up to a limit.
//
// One thread, that of the io_context; the owner is called from it, and outlives this object.
#ifndef HVD_LAUNCHER_AGENT_DRIVER_CONNECTION_H_
#define HVD_LAUNCHER_AGENT_DRIVER_CONNECTION_H_

#include <algorithm>
#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "launcher/agent/resume_listener.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "launcher/process/byte_pump.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/stream.h"

namespace hvd {

// KeptOutput: output of workers that hvdrun may not have printed yet, kept by the agent for a
// driver that takes over. Positions in a worker's stream are in bytes since it started. Pure.
class KeptOutput {
 public:
  // Call before the first Add; otherwise nothing is kept.
  void Enable() { enabled_ = true; }

  // The two pieces follow each other.
  void Add(uint32_t rank, OutputStream stream, std::string_view first, std::string_view second);
  // Output up to there has been printed. A smaller position than before changes nothing.
  void NotePrinted(const OutputPrinted& printed);
  // Everything that was not printed, in order of arrival.
  void ForEach(const std::function<void(uint32_t rank, OutputStream stream,
                                        std::string_view bytes)>& take) const;
  // Bytes that are kept, also those that wait for older ones to be printed.
  size_t bytes() const { return bytes_; }

 private:
  using Writer = std::pair<uint32_t, OutputStream>;
  struct Piece {
    Writer writer;
    uint64_t begin = 0;
    std::string bytes;
  };
  struct Place {
    uint64_t end = 0, printed = 0;
  };

  bool enabled_ = false;
  std::deque<Piece> pieces_;
  std::map<Writer, Place> places_;
  size_t bytes_ = 0;
};

// DriverAbsence: the decisions of an agent while it has no connection to its driver, or receives
// nothing over it: how long the driver may stay away, how much output of the workers is kept for
// it, and when silence means that it is lost. Pure: the time is passed in.
class DriverAbsence {
 public:
  // Bytes that workers may print while there is no connection; then they block.
  static constexpr size_t kMostHeldBytes = 1024 * 1024;
  // Limit of the wait for the driver in a job that is already ending.
  static constexpr Duration kEndingGrace = std::chrono::seconds(5);

  // How long the driver may stay away; 0: a lost connection ends the job here.
  void set_grace(Duration grace) { grace_ = grace; }
  // The driver has begun to end the job.
  void NoteEnding() { ending_ = true; }
  // The workers are stopped, and so is the driver: its silence means nothing.
  void set_paused(bool paused) { paused_ = paused; }
  // How long the driver may be silent; 0: no limit.
  void set_silence_limit(Duration limit) { silence_limit_ = limit; }

  bool away() const { return away_; }
  // The connection is lost. False: it was lost already. True: the driver may come back within
  // grace().
  bool Begin() {
    held_bytes_ = away_ ? held_bytes_ : 0;
    return !std::exchange(away_, true);
  }
  Duration grace() const { return ending_ ? std::min(grace_, kEndingGrace) : grace_; }
  // The driver is back.
  void End() { away_ = false; }
  // The driver will not come back: output is dropped from now on.
  void GiveUp() { over_ = true; }
  bool over() const { return over_; }

  // Output that is kept for the driver.
  void NoteOutput(size_t bytes) { held_bytes_ += away_ ? bytes : 0; }
  // Workers may print although nothing can be sent.
  bool HasRoom() const { return over_ || (away_ && held_bytes_ < kMostHeldBytes); }

  // The driver has been silent for too long on a connection that seems to work.
  bool IsSilent(TimePoint last_heard, TimePoint now) const {
    return silence_limit_ > Duration::zero() && !paused_ && now - last_heard >= silence_limit_;
  }
  Duration silence_limit() const { return silence_limit_; }

 private:
  Duration grace_{}, silence_limit_{};
  bool away_ = false, over_ = false, ending_ = false, paused_ = false;
  size_t held_bytes_ = 0;  // since the connection was lost
};

class DriverConnectionOwner {
 public:
  virtual ~DriverConnectionOwner() = default;
  virtual void OnDriverMessage(ToAgent message) = 0;
  // After the messages that arrived together.
  virtual void OnDriverMessagesOver() = 0;
  // Something was sent or kept: HoldsOutput() may have changed.
  virtual void OnDriverFlushed() = 0;
  // With every heartbeat.
  virtual void OnDriverTick() = 0;
  // The connection is lost and the driver may come back; a sentence for the log.
  virtual void OnDriverAway(const std::string& reason) = 0;
  // The driver is gone for good. May be called more than once.
  virtual void OnDriverGone(const std::string& reason) = 0;
};

class DriverConnection {
 public:
  DriverConnection(asio::io_context& io, const std::string& job_id, DriverConnectionOwner& owner);
  DriverConnection(const DriverConnection&) = delete;

  // Begins, with the first connection.
  void Open(UniqueFd input, UniqueFd output);
  // The same with a connection that the agent has made; the end of `lifeline` is its end, too.
  void Open(SealedLine line, UniqueFd lifeline);
  // Stops waiting for the driver and sends nothing more to it.
  void GiveUp();

  void Send(const ToDriver& message);
  // A worker's output; the two pieces follow each other. Dropped after GiveUp.
  void SendOutput(uint32_t rank, OutputStream stream, std::string_view first,
                  std::string_view second);
  // Of a driver that has taken over: up to there its job's output has been printed; the rest is
  // sent once more.
  void SendKept(const std::vector<OutputPrinted>& printed);
  void NotePrinted(const OutputPrinted& printed) { kept_.NotePrinted(printed); }
  // Sends as much as the connection accepts now.
  void Flush();

  // Output waits for credit, or for a connection: workers should not print more.
  bool HoldsOutput() const { return stream_.LogsHeld() && !absence_.HasRoom(); }
  bool HasOutputToSend() const { return stream_.LogsHeld() || holds_kept_; }
  // For a driver that takes over, because the present one has not printed it.
  bool KeepsOutput() const { return kept_.bytes() > 0; }
  bool AllAcknowledged() const { return stream_.AllAcknowledged(); }

  void set_generation(uint64_t generation) {
    generation_ = generation;
    stream_.set_epoch(generation);
  }
  // The limit within which both sides of the connection detect silence; 0: this side does not.
  void SetSilenceLimit(Duration limit);
  // The driver may come back to listener_address(). Not ok: it cannot, and why.
  Status Await(AwaitDriver await);
  // The same for another driver, when this one is gone.
  Status Await(AwaitSuccessor await);
  bool awaits() const { return listener_ != nullptr; }
  const std::string& listener_address() const { return listener_address_; }
  DriverAbsence& absence() { return absence_; }

  // The process on this host that holds the connection, if it is not the warden's parent; else 0.
  int32_t HolderPid() const;

 private:
  template <typename MakePath>
  void Carry(MakePath make_path);
  void Begin();
  void Disconnect();
  void OnBytes(std::string_view bytes);
  void Lose(const std::string& reason);
  Status Listen(int64_t grace_ms);
  void Resume(ReturnedStream stream);
  void BeginAnew();
  void SendLog(uint32_t rank, OutputStream stream, std::string_view first, std::string_view second);
  void ScheduleTick();
  void LookForDriver(TimePoint now);

  asio::io_context& io_;
  DriverConnectionOwner& owner_;
  const std::string job_id_;
  Stream stream_;
  uint64_t generation_ = 0;
  DriverAbsence absence_;
  KeptOutput kept_;
  bool holds_kept_ = false;  // a driver that takes over has not said yet what was printed
  std::unique_ptr<BytePath> path_;
  std::unique_ptr<BytePump> lifeline_;
  UniqueFd client_;  // held by `hvdrun agent --resume`, which made the present connection
  asio::steady_timer tick_timer_, return_timer_;
  const std::string listener_address_ = MakeListenerAddress();
  std::unique_ptr<ResumeListener> listener_;
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_DRIVER_CONNECTION_H_
