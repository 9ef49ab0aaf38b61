// The agent: one per host. Starts the host's workers when the driver asks for it, forwards their
// output, reports how they end, serves their links, keeps the page of the generation, notices
// deaths, and ends everything when the driver, the warden or the job ends. The driver decides about
// the job; the agent alone decides that a death breaks the generation.
//
// Runs on the main thread of its process (workers die with that thread); DeathWatch has threads of
// its own.
#ifndef HVD_LAUNCHER_AGENT_AGENT_H_
#define HVD_LAUNCHER_AGENT_AGENT_H_

#include <optional>
#include <string>

#include "launcher/agent/warden.h"
#include "launcher/overlay/dial/sealed_pump.h"
#include "runtime/base/unique_fd.h"

namespace hvd {

struct AgentOptions {
  std::string job_id;              // 16 hexadecimal digits
  std::string executable;          // of hvdrun; libhvd.so and the Python package are found from it
  UniqueFd input, output;          // the stream to the driver; or, of an agent that has dialed,
  std::optional<SealedLine> line;  // its connection, with the stdin of its step as `input`
  WardenLine warden;
  UniqueFd user_stdin;  // for rank 0, if it is here; invalid: what hvdrun reads comes as messages
};

// Blocks until nothing of the job is left on this host. Returns 0 when the driver ended it, 1
// otherwise.
int RunAgent(AgentOptions options);

}  // namespace hvd

#endif  // HVD_LAUNCHER_AGENT_AGENT_H_
