// The stages of a host's start-up, from its name to an agent that is ready, and their texts. Pure.
#ifndef HVD_LAUNCHER_JOB_HOST_RECORDS_STAGE_WORDS_H_
#define HVD_LAUNCHER_JOB_HOST_RECORDS_STAGE_WORDS_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "launcher/channels/host_channel.h"
#include "runtime/base/clock.h"

namespace hvd {

// In this order; a host leaves out what it does not have.
enum class HostStage : uint8_t {
  kResolve,
  kConnect,
  kKeyExchange,
  kHostKey,
  kLogin,
  kExec,
  kBundle,  // it is sent hvdrun; entered again whenever some of it has left
  kHello,   // the agent's program runs and has said nothing yet
  kProof,   // the hosts look for addresses at which they reach each other
  kThere,   // its agent waits for those of the other hosts
  kReady,   // nothing stands between the host and its workers
  kFailed,  // never left again
};
inline constexpr size_t kHostStages = static_cast<size_t>(HostStage::kThere);  // with a limit

// An attempt to reach a host failed in this stage and is retried.
struct HostTrouble {
  HostStage stage = HostStage::kResolve;
  std::string reason;  // a sentence without the host's name
  std::string no_answer =
      {};  // why no server answers there, "the connection was refused"; "": one does
};

struct StageTexts {
  const char* name;  // as --stage-timeouts says it
  const char* text;
  Duration limit;      // unless the user gives another
  const char* advice;  // when the limit has passed
};
extern const StageTexts kStageTexts[kHostStages];  // by HostStage

// Of a stage that has a limit; those of the last such stage for others.
const StageTexts& TextsOf(HostStage stage);
// Has a limit: the host is on its way.
constexpr bool InFlight(HostStage stage) { return stage < HostStage::kThere; }

HostStage StageOf(ChannelStage stage);
// "login", as --stage-timeouts and programs say it.
const char* StageName(HostStage stage);
// "logging in", for sentences.
const char* StageText(HostStage stage);

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_HOST_RECORDS_STAGE_WORDS_H_
