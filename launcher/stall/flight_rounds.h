// FlightRounds: adds the data of PyTorch's flight recorders to a verdict about a script. Asks the
// agents of all hosts and returns the verdict when all have answered or the deadline has passed. If
// stacks show no wait (a rank waits in C, for a CUDA stream), two readings of the recorders in
// which the same collective has not ended make a notice. Pure: the time is an argument.
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

  // Holds a verdict until the recorders' data is there. A verdict that ends the job is not held.
  void Begin(ScriptStall stall, const std::vector<uint32_t>& hosts, TimePoint now);
  // All ranks are silent, but no stack shows a wait. Asks once per `warning`.
  void Suspect(const std::vector<uint32_t>& hosts, Duration warning, TimePoint now);
  void Handle(uint32_t host, const FlightReply& answer);
  // The verdict, once complete, for a job of `size` ranks. Call after each of the above, and at the
  // tick.
  std::optional<ScriptStall> Result(uint32_t size, TimePoint now);
  // When Result may return something without another answer; TimePoint::max(): never.
  TimePoint NextTick() const { return round_.NextTick(); }
  // Lines about the dumps that PyTorch itself wrote in failed ranks; empty: none.
  std::string LinesOfFailure(uint32_t size) const;
  // Discards all records: the workers were replaced.
  void Forget();

 private:
  struct Open {
    uint64_t number = 0;
    TimePoint seen{};  // when it was first seen open
  };

  void AskAll(const std::vector<uint32_t>& hosts, TimePoint now);
  std::optional<ScriptStall> Compare(uint32_t size, TimePoint now);

  const Ask ask_;
  AnswerRound round_;
  std::optional<ScriptStall> stall_;  // waits for the recorders' data
  std::vector<FlightRecord> records_;
  std::map<uint32_t, FlightRecord> of_failure_;  // by rank
  // State of Suspect.
  TimePoint next_look_{};
  std::map<std::string, Open> seen_open_;  // by KeyOf
  std::string reported_;                   // the collectives in the last notice
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_STALL_FLIGHT_ROUNDS_H_
