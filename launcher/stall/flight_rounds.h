// FlightRounds: adds to the verdict about a script what PyTorch's flight recorders say. Asks the
// agents of all hosts for it and gives the verdict out when they have answered or have had their
// time. Where stacks show no wait (a rank waits in C, for a stream of its GPU), two looks at the
// recorders make a notice: the same collective has not ended. Pure: the time is an argument.
#ifndef HVD_LAUNCHER_STALL_FLIGHT_ROUNDS_H_
#define HVD_LAUNCHER_STALL_FLIGHT_ROUNDS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "launcher/stall/answer_round.h"
#include "launcher/stall/verdict/script_verdict.h"
#include "launcher/wire/messages.h"
#include "runtime/base/clock.h"

namespace hvd {

class FlightRounds {
 public:
  using Ask = std::function<void(uint32_t host, const AskFlight& question)>;

  explicit FlightRounds(Ask ask) : ask_(std::move(ask)) {}

  // A verdict that waits for what the recorders say. One that ends the job does not wait.
  void Begin(ScriptStall stall, const std::vector<uint32_t>& hosts, TimePoint now);
  // No rank shows anything, and no stack a wait. Asks once a warning time.
  void Suspect(const std::vector<uint32_t>& hosts, Duration warning, TimePoint now);
  void Take(uint32_t host, const FlightReply& answer);
  // The verdict, once it is complete, for a job of `size` ranks. Call it after each of these, and
  // at the tick.
  std::optional<ScriptStall> Result(uint32_t size, TimePoint now);
  // When Result may return something though no answer comes; TimePoint::max(): never.
  TimePoint NextTick() const { return round_.NextTick(); }
  // Lines on the dumps that PyTorch itself has written in ranks that failed; empty: there are none.
  std::string LinesOfFailure(uint32_t size) const;
  // Other processes record from now on.
  void Forget();

 private:
  struct Open {
    uint64_t number = 0;
    TimePoint seen{};  // first
  };

  void AskAll(const std::vector<uint32_t>& hosts, TimePoint now);
  std::optional<ScriptStall> Compare(uint32_t size, TimePoint now);

  const Ask ask_;
  AnswerRound round_;
  std::optional<ScriptStall> stall_;  // that waits for it
  std::vector<FlightRecord> records_;
  std::map<uint32_t, FlightRecord> of_failure_;  // by rank
  // Of Suspect.
  TimePoint next_look_{};
  std::map<std::string, Open> seen_open_;  // by KeyOf
  std::string said_;                       // collectives of the last notice
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_FLIGHT_ROUNDS_H_
