// AgentMessages: the messages that the agents of a job send, checked and passed to the part of the
// driver that handles them, or turned into events of the job.
//
// A host may send only what concerns its own ranks; one that violates the protocol is given up,
// with a message. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_AGENT_MESSAGES_H_
#define HVD_LAUNCHER_DRIVER_AGENT_MESSAGES_H_

#include <concepts>
#include <cstdint>

#include "launcher/driver/agent_network.h"
#include "launcher/driver/driver_log.h"
#include "launcher/driver/event_queue.h"
#include "launcher/driver/hang_watch.h"
#include "launcher/driver/host_readiness.h"
#include "launcher/driver/job_hosts.h"
#include "launcher/driver/rank_signals.h"
#include "launcher/driver/recordings.h"
#include "launcher/driver/worker_stdin.h"
#include "launcher/job/state/job_state.h"
#include "launcher/output/screen.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"
#include "runtime/base/status.h"

namespace hvd {

// The parts that handle messages of agents.
struct MessageHandlers {
  AgentNetwork& network;
  HostReadiness& readiness;
  HangWatch& hangs;
  Recordings& recordings;
  RankSignals& signals;
  WorkerStdin& input;
};

template <typename Part, typename Message>
concept Handles = requires(Part part, const Message& message) {
  { part.Handle(0U, message, TimePoint()) } -> std::same_as<Status>;
};

class AgentMessages {
 public:
  // All of them outlive this object.
  AgentMessages(const JobState& state, JobHosts& hosts, EventQueue& events, Screen& screen,
                DriverLog& log, MessageHandlers handlers)
      : state_(state),
        hosts_(hosts),
        events_(events),
        screen_(screen),
        log_(log),
        to_(handlers),
        network_(handlers.network) {}

  // A message that came over the host's own stream.
  void Receive(uint32_t host, ToDriver& message, TimePoint now);

 private:
  Status CheckSender(uint32_t host, const ToDriver& message) const;
  void Dispatch(uint32_t host, ToDriver& message);

  // Most messages are handled by one part, or are events as they are.
  template <typename Message>
  void On(uint32_t host, const Message& message) {
    if constexpr (Handles<AgentNetwork, Message>) {
      PassTo(to_.network, host, message);
    } else if constexpr (Handles<HostReadiness, Message>) {
      PassTo(to_.readiness, host, message);
    } else if constexpr (Handles<HangWatch, Message>) {
      PassTo(to_.hangs, host, message);
    } else if constexpr (Handles<Recordings, Message>) {
      PassTo(to_.recordings, host, message);
    } else if constexpr (Handles<RankSignals, Message>) {
      PassTo(to_.signals, host, message);
    } else if constexpr (Handles<WorkerStdin, Message>) {
      PassTo(to_.input, host, message);
    } else {
      events_.Push(message);
    }
  }
  template <typename Part, typename Message>
  void PassTo(Part& part, uint32_t host, const Message& message) {
    network_.agents().BreakUnless(host, part.Handle(host, message, now_));
  }
  // The others concern several parts, or are shown to the user.
  void On(uint32_t host, const AgentNote& note) { log_.VerboseHost(host, note.text); }
  void On(uint32_t host, const AgentWarning& warning) { log_.Warning(host, warning.text); }
  void On(uint32_t host, const ConnectivityProbed& probed);
  void On(uint32_t host, const RelayMeasured& measured);
  void On(uint32_t host, const TimeReply& reply);
  void On(uint32_t host, const TreeUp& batch);
  void On(uint32_t host, const TreeCut& cut);
  void On(uint32_t host, PutKey& put);
  void On(uint32_t host, const MasterPortTaken& taken);
  void On(uint32_t host, const WorkerStarted& started);
  void On(uint32_t host, const RankJoined& joined);
  void On(uint32_t host, const RanksJoined& joined);
  void On(uint32_t host, const GenerationIdle& idle);
  void On(uint32_t host, const CommitsHeld& held) { events_.Push(CommitsHeldBy{host, held}); }
  void On(uint32_t host, const StopRequested& request) {
    events_.Push(StopAsked{request.signal, {}, host});
  }
  void On(uint32_t host, const PlaceTaken& taken) { events_.Push(PlaceEvent{host, taken}); }
  void On(uint32_t host, const PlacesRefused& refused) { events_.Push(PlaceEvent{host, refused}); }
  // The driver shows output as it comes, and takes over with snapshots; a connection ends after
  // AgentGone; the doctor asks for the rest.
  void On(uint32_t, const WorkerOutput&) {}
  void On(uint32_t, const HostSnapshot&) {}
  void On(uint32_t, const AgentGone&) {}
  void On(uint32_t, const HostExam&) {}
  void On(uint32_t, const PairMeasured&) {}

  const JobState& state_;
  JobHosts& hosts_;
  EventQueue& events_;
  Screen& screen_;
  DriverLog& log_;
  const MessageHandlers to_;
  AgentNetwork& network_;
  TimePoint now_{};  // of the message being handled
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_AGENT_MESSAGES_H_
