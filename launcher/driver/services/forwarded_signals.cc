#include "launcher/driver/services/forwarded_signals.h"

#include "launcher/job/report/describe_end.h"
#include "runtime/base/text/format.h"

namespace hvd {

ForwardSignal ForwardedSignals::Begin(int signal, const std::vector<uint32_t>& hosts) {
  signals_[++last_] = {signal, {hosts.begin(), hosts.end()}, 0};
  return {last_, signal};
}

// A signal to a whole step of a scheduler reaches the agents of all hosts: one line is enough.
bool ForwardedSignals::ShownLately(int signal, TimePoint now) {
  constexpr Duration kLately = std::chrono::seconds(2);
  const auto [shown, first] = shown_.try_emplace(signal, now);
  if (!first && now < shown->second + kLately) return true;
  shown->second = now;
  return false;
}

std::string ForwardedSignals::Handle(uint32_t host, const std::string& name,
                                     const SignalForwarded& answer, TimePoint now) {
  if (answer.number == 0) {
    if (answer.ranks > 0 || ShownLately(answer.signal, now)) return "";
    return Format(
        "the agent on host {} got {}, and no rank there handles it, so none got it; the "
        "job goes on",
        name, SignalText(answer.signal));
  }
  const auto signal = signals_.find(answer.number);
  if (signal == signals_.end() || signal->second.awaited.erase(host) == 0) return "";
  signal->second.ranks += answer.ranks > 0;
  return Finish(answer.number, now);
}

std::string ForwardedSignals::HostGone(uint32_t host, TimePoint now) {
  std::string sentence;
  for (auto next = signals_.begin(); next != signals_.end();) {
    const auto signal = next++;
    if (signal->second.awaited.erase(host) != 0) sentence = Finish(signal->first, now);
  }
  return sentence;
}

std::string ForwardedSignals::Finish(uint32_t number, TimePoint now) {
  const Signal signal = signals_[number];
  if (!signal.awaited.empty()) return "";
  signals_.erase(number);
  if (signal.ranks > 0 || ShownLately(signal.signal, now)) return "";
  return "no rank handles " + SignalText(signal.signal) +
         ", so none got it: its default action is to end a process; the job goes on";
}

}  // namespace hvd
