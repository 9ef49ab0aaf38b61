// AgentMessages: the messages that the agents of a job send, checked and turned into events of the
// job, or into messages to other agents.
//
// A host may send only what concerns its own ranks; one that violates the protocol is given up,
// with a message. One thread, that of the io_context.
#ifndef HVD_LAUNCHER_DRIVER_AGENT_MESSAGES_H_
#define HVD_LAUNCHER_DRIVER_AGENT_MESSAGES_H_

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "launcher/driver/driver_parts.h"
#include "launcher/driver/job_actions.h"
#include "launcher/driver/recorder_messages.h"
#include "launcher/overlay/relay/relay_switch.h"
#include "launcher/wire/messages.h"

namespace hvd {

template <typename Message>
concept IsOfRelay = requires(RelaySwitch relay, const Message& message) {
  relay.Take(0U, message);
};
template <typename Message>
concept IsWarning = requires(DriverParts parts, const Message& message) {
  parts.HandleWarning(0U, message, TimePoint());
};
template <typename Message>
concept IsOfRecorders = requires(RecorderMessages recorders, const Message& message) {
  recorders.Take(0U, message);
};
// The driver's observer prints output, its connection ends after AgentGone; the
// doctor asks for the rest.
template <typename Message>
concept IsForOthers = std::same_as<Message, WorkerOutput> || std::same_as<Message, AgentGone> ||
    std::same_as<Message, HostExam> || std::same_as<Message, PairMeasured> ||
    std::same_as<Message, HostSnapshot>;

class AgentMessages {
 public:
  // They outlive this object.
  AgentMessages(DriverParts& parts, JobActions& actions)
      : parts_(parts), actions_(actions), recorders_(parts) {}

  // A message that came over the host's own stream.
  void Receive(uint32_t host, ToDriver& message, TimePoint now);
  // Asks the agent for its time when that is due, so that departures of ranks on different hosts
  // can be ordered.
  void AskTimeIfDue(uint32_t host, TimePoint now);
  // At the tick, and when a host has answered.
  void TellScriptStall(TimePoint now);

 private:
  Status MaySay(uint32_t host, const ToDriver& message) const;
  void Take(uint32_t host, ToDriver& message);
  // Every message without its own overload is an event already.
  template <typename Event>
  void On(uint32_t host, const Event& event) {
    if constexpr (std::is_constructible_v<PlaceNews::News, Event>) {
      parts_.events.Push(PlaceNews{host, event});
    } else {
      parts_.events.Push(event);
    }
  }
  void On(uint32_t host, const AgentReady& ready);
  void On(uint32_t host, const AgentPath& path);
  void On(uint32_t host, CommandReport& report);
  void IsReady(uint32_t host);
  void On(uint32_t host, const ConnectivityProbed& probed);
  void On(uint32_t host, const RelayMeasured& measured);
  template <IsOfRelay Message>
  void On(uint32_t host, const Message& message) {
    if (!parts_.tree.Has(host)) return;
    parts_.agents.BreakUnless(host, parts_.relay.Take(parts_.tree.NumberOf(host), message));
  }
  template <IsOfRecorders Message>
  void On(uint32_t host, const Message& message) {
    parts_.agents.BreakUnless(host, recorders_.Take(host, message));
  }
  template <IsWarning Message>
  void On(uint32_t host, const Message& message) {
    parts_.HandleWarning(host, message, now_);
  }
  template <IsForOthers Message>
  void On(uint32_t, const Message&) {}
  void On(uint32_t host, const AgentNote& note) { parts_.log.VerboseHost(host, note.text); }
  void On(uint32_t host, const AgentWarning& warning) { parts_.log.Warning(host, warning.text); }
  void On(uint32_t host, const WorkerStarted& started);
  void On(uint32_t host, const RankJoined& joined);
  void On(uint32_t host, const RanksJoined& joined);
  void On(uint32_t host, const InputTaken& taken);
  void On(uint32_t host, PutKey& put);
  void On(uint32_t host, const WantKey& want);
  void On(uint32_t host, const TreeUp& batch);
  void On(uint32_t host, const TreeCut& cut);
  void On(uint32_t host, const TimeReply& reply);
  void On(uint32_t host, const StallReport& report);
  void On(uint32_t host, const GenerationIdle& told) {
    parts_.events.Push(HostIdle{host, told.generation, std::chrono::milliseconds(told.idle_ms)});
  }
  void On(uint32_t host, const RanksExamined& examined);
  void On(uint32_t host, const ScriptObserved& observed);
  void On(uint32_t host, const FlightReply& reply);
  void On(uint32_t host, const CommitsHeld& held) { parts_.events.Push(CommitsHeldBy{host, held}); }
  void On(uint32_t host, const StopRequested& request) {
    parts_.events.Push(StopAsked{request.signal, {}, host});
  }

  DriverParts& parts_;
  JobActions& actions_;
  RecorderMessages recorders_;
  TimePoint now_{};  // of the message being handled
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_DRIVER_AGENT_MESSAGES_H_
