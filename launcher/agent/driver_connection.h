// DriverConnection: an agent's stream to its driver. Sends messages and output as the driver grants
// credit. When the connection is lost and the driver may come back (resume_listener.h), the stream
// continues over the next connection; until then output is kept, up to a limit (driver_absence.h).
//
// One thread, that of the io_context; the owner is called from it, and outlives this object.
#ifndef HVD_LAUNCHER_AGENT_DRIVER_CONNECTION_H_
#define HVD_LAUNCHER_AGENT_DRIVER_CONNECTION_H_

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "launcher/agent/driver_absence.h"
#include "launcher/agent/kept_output.h"
#include "launcher/agent/resume_listener.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "launcher/process/byte_pump.h"
#include "launcher/wire/messages.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/stream.h"

namespace hvd {

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
