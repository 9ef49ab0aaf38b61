// What driver and agent say to each other over their stream: the payloads of its control and log frames.
// PROTOCOL.md (runtime/net) has the conversation. Pure.
#ifndef HVD_LAUNCHER_MESSAGES_H_
#define HVD_LAUNCHER_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "launcher/plan.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

enum class OutputStream : uint8_t { kStdout = 0, kStderr = 1 };

// How a process ended.
struct ProcessEnd {
  bool by_signal = false;
  int32_t value = 0;  // the exit code, or the signal

  bool ok() const { return !by_signal && value == 0; }
  // What a shell would show: the exit code, or 128 + signal.
  int exit_code() const { return by_signal ? 128 + value : value; }
  bool operator==(const ProcessEnd&) const = default;
};

// Which workers read what hvdrun reads; the others have /dev/null.
enum class StdinTo : uint8_t { kNone = 0, kRank0 = 1, kAll = 2 };

// Which cores a worker may use.
enum class BindTo : uint8_t { kNone = 0, kCore = 1, kNuma = 2 };

// ---- driver to agent

// The agent's part of the plan and all it needs to start it. Sent once.
struct StartJob {
  std::string job_key;  // secret: workers prove with it that they belong to the job
  std::string host;     // the name of this host in the plan
  uint32_t size = 0;
  uint8_t homogeneous = 1;
  std::vector<Placement> slots;
  std::vector<RankRun> layout;  // of all ranks
  std::vector<std::string> argv;
  std::string directory;
  std::vector<std::string> environment;         // "NAME=value", the driver's own
  std::vector<std::string> worker_environment;  // "NAME=value", from the settings
  std::vector<std::string> given_environment;   // "NAME=value", from --env-file and -x
  std::string master_address;                   // for torch.distributed
  uint32_t master_port = 0;
  int32_t omp_threads = -1;  // 0: the share of cores; -1: left alone
  // Of so many equal parts of this machine's cores, that of this agent.
  uint32_t machine_part = 0, machine_parts = 1;
  BindTo bind_to = BindTo::kNone;
  StdinTo stdin_to = StdinTo::kNone;
  int64_t terminate_grace_ms = 0;
  int64_t driver_grace_ms = 0;
  int64_t silence_limit_ms =
      0;  // so long without a word of the driver, and it is lost; 0: for ever
  std::vector<std::string> listen_addresses;  // where workers listen for those on other hosts
  uint16_t first_port = 0, last_port = 0;     // both 0: any
};
// Every rank of the job asked for it: the world `epoch` begins.
struct BeginEpoch {
  uint64_t epoch = 0;
};
// The epoch (0: the one being waited for) cannot go on.
struct BreakEpoch {
  uint64_t epoch = 0;
  std::string reason;
};
// A signal to every worker that still runs. SIGKILL, SIGSTOP and SIGCONT go to whole trees.
struct SignalWorkers {
  int32_t signal = 0;
};
// All workers have ended: kill what they left behind, send the rest of their output, then say AgentGone.
struct FinishJob {};
// What hvdrun read on its stdin; empty: there is no more.
struct WorkerInput {
  std::string bytes;
};
// Find out whether the named hosts can be reached. Their listeners are told through the directory of epoch 0.
struct ProveReach {
  std::string job_key;
  uint32_t host = 0;  // the number of this one
  std::vector<uint32_t> others;
  std::vector<std::string> names;       // of the others
  std::vector<std::string> interfaces;  // to use; empty: all
  uint16_t first_port = 0, last_port = 0;
};
// An entry of the epoch's directory that the agent wanted.
struct KeyValue {
  uint64_t epoch = 0;
  std::string key, value;
};

// ---- agent to driver

// The first message: the agent and its host.
struct AgentReady {
  int32_t pid = 0, warden_pid = 0;
  std::string means;       // how this agent makes sure that nothing is left behind
  std::string version;     // of its hvdrun
  uint32_t free_port = 0;  // held by the agent for MASTER_PORT; 0: none
};
struct WorkerStarted {
  uint32_t rank = 0;
  int32_t pid = 0;
};
struct WorkerNotStarted {
  uint32_t rank = 0;
  int32_t error = 0;  // errno
  std::string reason;
};
// The rank wants to be in the next epoch.
struct RankJoined {
  uint32_t rank = 0;
};
// The rank said goodbye to the epoch.
struct RankLeft {
  uint32_t rank = 0;
  uint64_t epoch = 0;
  int64_t noticed_ns = 0;  // the agent's steady clock
};
// The rank is gone without a goodbye; `epoch` 0: while it waited for one.
struct RankLost {
  uint32_t rank = 0;
  int32_t pid = 0;
  uint64_t epoch = 0;
  int64_t noticed_ns = 0;
  std::string reason;
  std::string doing;  // "; its last collective was 'x'", or nothing
};
struct WorkerExited {
  uint32_t rank = 0;
  int32_t pid = 0;
  ProcessEnd end;
  int64_t noticed_ns = 0;
  std::string last_stderr;
  bool out_of_memory = false;  // the kernel killed it, by its counters
};
// A log: bytes of one worker, in whole lines where possible.
struct WorkerOutput {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  std::string bytes;
};
// So many bytes of WorkerInput have left the agent.
struct InputTaken {
  uint64_t bytes = 0;
};
// A rank put an entry into the epoch's directory.
struct PutKey {
  uint64_t epoch = 0;
  std::string key, value;
};
// A rank of this host waits for an entry. Answered by KeyValue once it is there.
struct WantKey {
  uint64_t epoch = 0;
  std::string key;
};
// The answer to ProveReach: what is in the way, or at which address each of the others answered.
struct ReachProven {
  std::string trouble;
  std::vector<std::string> addresses;  // numeric, without a port
};
// A sentence for --verbose.
struct AgentNote {
  std::string text;
};
// The last message: no process, page or socket of the job is left on this host.
struct AgentGone {};

using ToAgent = std::variant<StartJob, BeginEpoch, BreakEpoch, SignalWorkers, FinishJob,
                             WorkerInput, KeyValue, ProveReach>;
using ToDriver = std::variant<AgentReady, WorkerStarted, WorkerNotStarted, RankJoined, RankLeft,
                              RankLost, WorkerExited, WorkerOutput, InputTaken, AgentNote,
                              AgentGone, PutKey, WantKey, ReachProven>;

std::string EncodeToAgent(const ToAgent& message);
std::string EncodeToDriver(const ToDriver& message);
// kInvalidArgument for anything that is not exactly one message.
Result<ToAgent> DecodeToAgent(std::string_view bytes);
Result<ToDriver> DecodeToDriver(std::string_view bytes);

// A WorkerOutput without copies on the way: its bytes are those of both pieces, and a view into the message.
std::string EncodeOutput(uint32_t rank, OutputStream stream, std::string_view first,
                         std::string_view second);
struct WorkerOutputView {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  std::string_view bytes;
};
// Nothing when it is another message, or none: then DecodeToDriver tells.
std::optional<WorkerOutputView> PeekOutput(std::string_view message);

// Bytes that EncodeToDriver adds to those of a WorkerOutput.
inline constexpr size_t kOutputOverhead = 10;

}  // namespace hvd

#endif  // HVD_LAUNCHER_MESSAGES_H_
