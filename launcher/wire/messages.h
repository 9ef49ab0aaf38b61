// The messages between driver and agent: the payloads of the control and log frames of their
// stream. PROTOCOL.md (runtime/net) has the sequence. Pure.
#ifndef HVD_LAUNCHER_WIRE_MESSAGES_H_
#define HVD_LAUNCHER_WIRE_MESSAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "configs/choices.h"
#include "launcher/process/process_end.h"
#include "launcher/wire/command_facts.h"
#include "launcher/wire/plan.h"
#include "launcher/wire/rank_facts.h"
#include "runtime/base/status.h"
#include "runtime/net/layout.h"

namespace hvd {

// Which trace events the agents send, for the timeline of the job.
enum class TraceMode : uint8_t { kOff = 0, kOn = 1, kWithCycles = 2 };

// ---- driver to agent

// The agent's part of the plan and everything needed to start it. Sent once.
//
// A worker is a process of the job, numbered from 0 for the life of the job; `rank` in all messages
// about workers is that number. In a job of fixed size it is the rank. In an elastic one each
// generation tells which rank a worker has in it (BeginGeneration).
struct StartJob {
  std::string job_id;   // the driver's id of the job, equal on all hosts
  std::string job_key;  // secret: authenticates the workers
  std::string host;     // the name of this host in the plan
  struct Ranks {
    uint32_t size = 0;  // of the job
    uint8_t homogeneous = 1;
    std::vector<Placement> slots;   // of this host
    std::vector<RankRun> layout;    // of all ranks
    std::vector<uint32_t> workers;  // by slot; empty: their numbers are the ranks in `slots`
  } ranks;
  struct Program {
    std::vector<std::string> argv;
    std::string function;  // pickled function to run (runner/run_task.py); empty: run argv
    std::string directory;
    // "NAME=value", later lists win: the driver's own, from the settings, from --env-file and -x.
    std::vector<std::string> environment, settings, given;
    StdinTo stdin_to = StdinTo::kNone;
    // Stdin is a terminal, so unfinished lines (prompts) must be shown.
    uint8_t stdin_terminal = 0;
  } program;
  struct Share {                   // of the machine's cores
    uint32_t part = 0, parts = 1;  // this agent's of `parts` equal parts
    int32_t omp_threads = -1;      // 0: cores of the share; -1: do not set
    BindTo bind_to = BindTo::kNone;
    GpuVisibility gpus = GpuVisibility::kAll;
  } share;
  struct Meeting {  // how ranks connect to other hosts
    std::vector<std::string> listen_addresses;
    std::vector<std::string> interfaces;     // of an elastic job: where they listen; empty: all
    uint16_t first_port = 0, last_port = 0;  // both 0: any
    std::string master_address;              // for torch.distributed
    uint32_t master_port = 0;
    // For workers that use stock Horovod: "10.0.0.1:4711"; empty: they use this runtime.
    std::string rendezvous;
  } meeting;
  struct Limits {
    int64_t terminate_grace_ms = 0;
    int64_t driver_grace_ms = 0;
    int64_t silence_ms = 0;  // without a message the driver counts as lost after this; 0: never
    // How long a script that uses other libraries' collectives may be silent before it is examined;
    // 0: no limit.
    int64_t script_warning_ms = 0;
    // Memory of this host for commits that survive its workers; 0: none.
    int64_t commit_bytes = 0;
  } limits;
  struct Tree {  // of agents (agent_tree.h); hosts 0: no tree
    uint32_t host = 0, hosts = 0, radix = 0;
    std::string above;  // mesh record of the parent (mesh_address.h); empty: the driver
  } tree;
  struct Restarts {  // for scripts of torchrun
    uint32_t done = 0, most = 0;
  } restarts;
  struct Policy {                   // see job/policy/job_policy.h
    uint8_t ranks_change = 0;       // each BeginGeneration lists its members
    uint8_t stops_at_commit = 0;    // a signal to the agent requests a stop at a commit
    uint8_t measures_training = 0;  // report ranks' waits (GenerationIdle)
  } policy;
  TraceMode trace = TraceMode::kOff;
};
// More workers of an elastic job on a host that has had StartJob. Their places are provisional
// until they join.
struct AddWorkers {
  std::vector<uint32_t> workers;
  std::vector<Placement> slots;  // one per worker
  uint32_t size = 0;
  uint8_t homogeneous = 1;
  std::string master_address;
  uint32_t master_port = 0;
  uint32_t restarts = 0;
  std::string rendezvous;  // as in StartJob
};
// Sets how long the agent waits for the driver to reconnect after a lost connection.
struct AwaitDriver {
  std::string key;  // secret: authenticates the returning driver
  int64_t grace_ms = 0;
};
// Sets how long the agent waits for a successor after its driver has died; that begins a new stream
// (HostSnapshot).
struct AwaitSuccessor {
  std::string key;  // secret: authenticates the successor
  int64_t grace_ms = 0;
};
// `bytes` of this worker's output have been printed; the agent may discard them.
struct OutputPrinted {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  uint64_t bytes = 0;  // since the worker started
};
// The first message of a driver that took over: how much was printed before. Answered by
// HostSnapshot, followed by the rest of the output.
struct TakeOver {
  std::vector<OutputPrinted> printed;
};
// A worker's place in a generation of an elastic job.
struct Member {
  uint32_t worker = 0;
  Placement place;
};
// All ranks of the job have joined: the world `generation` begins. The other fields are for elastic
// jobs; a job of fixed size has them from StartJob.
struct BeginGeneration {
  uint64_t generation = 0;
  uint32_t size = 0;
  uint8_t homogeneous = 1;
  std::vector<RankRun> layout;  // of all ranks
  std::vector<Member> members;  // on this host; none: it is not part of this generation
  uint8_t one_machine = 1;      // the ranks reach each other at the loopback address
};
// The generation has failed; 0: the one that ranks wait for.
struct BreakGeneration {
  uint64_t generation = 0;
  std::string reason;
};
// Sends a signal to every running worker. SIGKILL, SIGSTOP and SIGCONT go to whole process trees.
struct SignalWorkers {
  int32_t signal = 0;
};
// The same to one worker and its descendants.
struct SignalWorker {
  uint32_t rank = 0;
  int32_t signal = 0;
};
// hvdrun got a warning signal (SIGUSR1, SIGUSR2): forward it to the process of each rank that
// handles it (worker_signals.h). Answered by SignalForwarded.
struct ForwardSignal {
  uint32_t number = 0;  // from 1
  int32_t signal = 0;
};
// Asks for the memory of a worker. Answered by MemoryReply, unless it has ended.
struct AskMemory {
  uint32_t rank = 0;
};
// Answers RankJoined of a worker that the job no longer needs.
struct DismissWorker {
  uint32_t rank = 0;
  std::string reason;
};
// Holds the ranks of the generation at their next commit. Answered by CommitsHeld with the highest
// number of commits passed.
struct HoldCommits {
  uint64_t generation = 0;
};
// All ranks of the generation act at this commit; `update`: bits of CommitUpdate (runtime/segment).
struct ActAtCommit {
  uint64_t generation = 0, commit = 0;
  uint32_t update = 0;
  uint32_t grace_ms = 0;  // of a stop: time for the ranks to leave
};
// All workers have ended: kill their leftover processes, send the rest of their output, then
// AgentGone.
struct FinishJob {};
// Bytes of hvdrun's stdin; empty: end of file.
struct WorkerInput {
  std::string bytes;
};
// Probes whether the named hosts can be reached. Their listeners are exchanged through the
// directory of generation 0.
struct ProbeConnectivity {
  std::string job_key;
  uint32_t host = 0;  // the number of this one
  std::vector<uint32_t> others;
  std::vector<std::string> names;       // of the others
  std::vector<std::string> interfaces;  // to use; empty: all
  uint16_t first_port = 0, last_port = 0;
  uint8_t passes_on = 0;  // this agent will have children in the tree
};
// Asks what this program is on the host (command_facts.h). Answered by CommandReport.
struct LookAtCommand {
  std::string program, path, directory;
};
// An entry of the generation's directory that the agent requested by WantKey.
struct KeyValue {
  uint64_t generation = 0;
  std::string key, value;
};

// A message that agents pass down the tree: an encoded ToAgent for the hosts first..end-1.
struct TreeDownEntry {
  uint32_t first = 0, end = 0;
  std::string message;
};
struct TreeDown {
  std::vector<TreeDownEntry> entries;
};
// A part of the tree lost its connection to the driver, perhaps with messages: repeat which workers
// started and ended.
struct Resend {};
// Asks for the host's time. Answered at once by TimeReply.
struct AskTime {
  uint32_t number = 0;
};
// Examines the host as a worker would see it (hvdrun doctor). Answered by HostExam.
struct ExamineHost {
  std::string directory;
  std::string interpreter;               // Python interpreter: a name or a path
  std::vector<std::string> environment;  // "NAME=value", the driver's own
  int64_t limit_ms = 0;                  // for the answer
  int64_t silence_limit_ms = 0;          // as in StartJob
};
// Prepares measurements of the routes to the named hosts. As ProbeConnectivity, through the
// directory of generation 1.
struct OpenProbe {
  std::string job_key;
  uint32_t host = 0;  // the number of this one
  std::vector<uint32_t> others;
  std::vector<std::string> names;       // of the others
  std::vector<std::string> interfaces;  // to use; empty: all
  uint16_t first_port = 0, last_port = 0;
};
// Measures the route to one of them, which gets the same message. Answered by PairMeasured.
struct MeasurePair {
  uint32_t number = 0;
  uint32_t peer = 0;
  uint8_t leads = 0;  // set for one of the two
};
// Ranks here cannot connect to ranks on these hosts: relay their bytes through the driver. Answered
// by one RelayMeasured per host.
struct UseRelay {
  uint32_t host = 0;  // the number of this one
  std::vector<uint32_t> hosts;
};
// Flow control: `bytes` of TraceRecords were written; as many more may be sent.
struct TraceTaken {
  uint64_t bytes = 0;
};

// A collective takes too long: examines the ranks of the host, for those in `stacks` including
// their source lines. Answered by RanksExamined.
struct ExamineRanks {
  uint32_t number = 0;
  uint64_t generation = 0;
  std::vector<uint32_t> stacks;
};

// Asks for the work counters of the host's ranks. Answered by CountsReply. For `measure_ms`, ranks
// also measure how long they wait and count which of them is last.
struct AskCounts {
  uint32_t number = 0;
  uint32_t measure_ms = 0;
};
// Asks for the Python stacks of the host's workers; `native`: with C frames. Answered by
// StacksReply.
struct AskStacks {
  uint32_t number = 0;
  uint8_t native = 0;
};
// Asks for the PyTorch flight recorders of the host's workers. Answered by FlightReply.
struct AskFlight {
  uint32_t number = 0;
};
// Asks for the contents of the trace rings of a host. Answered by RingReply for each rank of the
// last generation, then RingsOver.
struct AskRings {
  uint32_t number = 0;
};

// Another launcher starts a process per rank, which hands its place to this agent's rank
// (launcher/external/places). Sent before StartJob. Answered by a PlaceTaken per process, or
// PlacesRefused.
struct AwaitPlaces {};

// ---- both directions

// Another user's process listens at MASTER_PORT. Detected by the agent of rank 0, forwarded to the
// others; a rank that connects there ends the job.
struct MasterPortTaken {
  uint32_t uid = 0;
  uint32_t port = 0;
  std::string host;  // rank 0's
};

// ---- both directions: relayed connections (relay_switch.h)

// Maximum bytes in flight between the two agents, per connection and direction.
inline constexpr uint64_t kRelayWindow = 1024 * 1024;
// Maximum bytes of one RelayData.
inline constexpr size_t kRelayPiece = 32 * 1024;
// Value of RelayOpen::rank for a probe: the other agent discards the bytes and returns the credit.
inline constexpr uint32_t kRelayProbe = UINT32_MAX;

// A connection to a rank's listener on another host. `id`: the number of the host that opens it in
// the upper 32 bits.
struct RelayOpen {
  uint64_t id = 0;
  uint32_t host = 0, rank = 0;  // target
};
struct RelayData {
  uint64_t id = 0;
  std::string bytes;
};
// The sender has closed its end in both directions.
struct RelayClose {
  uint64_t id = 0;
};
// Flow control: `bytes` of RelayData were delivered; as many more may be sent.
struct RelayCredit {
  uint64_t id = 0, bytes = 0;
};

// ---- agent to driver

// The first message: the agent and its host.
struct AgentReady {
  int32_t pid = 0, warden_pid = 0;
  std::string means;       // the agent's cleanup mechanism
  std::string version;     // of its hvdrun
  uint32_t free_port = 0;  // held by the agent for MASTER_PORT; 0: none
  std::string identity;    // of the host (host_identity.h)
  uint32_t slots = 0;      // default slots: number of GPUs, else cores
  uint32_t cpus = 0;       // of the whole host
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
// The rank waits for the next generation.
struct RankJoined {
  uint32_t rank = 0;
};
// The rank left the generation in an orderly way.
struct RankLeft {
  uint32_t rank = 0;
  uint64_t generation = 0;
  int64_t noticed_ns = 0;   // steady clock of the host, as all such stamps (host_clock.h)
  bool had_failed = false;  // a collective had failed because of other ranks: a secondary failure
};
// The rank ended without leaving; `generation` 0: while it waited for one.
struct RankLost {
  uint32_t rank = 0;
  int32_t pid = 0;
  uint64_t generation = 0;
  int64_t noticed_ns = 0;
  std::string reason;
  std::string doing;        // "; its last collective was 'x'", or empty
  bool had_failed = false;  // as in RankLeft
};
struct WorkerExited {
  uint32_t rank = 0;
  int32_t pid = 0;
  ProcessEnd end;
  int64_t noticed_ns = 0;
  std::string last_stderr;
  bool out_of_memory = false;  // killed by the kernel's OOM killer, by its counters
  uint64_t commits = 0;        // commits passed in all its generations
};
// Log frame: output of one worker, in whole lines where possible.
struct WorkerOutput {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  std::string bytes;
};
// Flow control: `bytes` of WorkerInput were passed to the workers.
struct InputTaken {
  uint64_t bytes = 0;
};
// A rank put an entry into the generation's directory.
struct PutKey {
  uint64_t generation = 0;
  std::string key, value;
};
// A rank of this host waits for an entry. Answered by KeyValue once it exists.
struct WantKey {
  uint64_t generation = 0;
  std::string key;
};
// Answers ProbeConnectivity: a problem, or the address at which each of the others answered.
struct ConnectivityProbed {
  std::string trouble;
  std::vector<std::string> addresses;  // numeric, without a port; empty: none
  std::string tree_record;             // where its children in the tree can connect
  std::vector<std::string> reasons;    // why there is no address, same index
};
// The answer to LookAtCommand.
struct CommandReport {
  CommandFacts facts;
};
// Speed of the route to that host through the driver. `trouble`: why the measurement failed.
struct RelayMeasured {
  uint32_t host = 0;
  uint64_t bytes = 0;
  int64_t elapsed_ns = 0, latency_ns = 0;  // latency: round trip
  std::string trouble;
};
// A sentence for --verbose.
struct AgentNote {
  std::string text;
};
// A warning that is always shown to the user, without the host's name.
struct AgentWarning {
  std::string text;
};
struct TimeReply {
  uint32_t number = 0;
  int64_t wall_ns = 0;    // since 1970
  int64_t steady_ns = 0;  // with an arbitrary origin
};
// "key=value" (host_facts.h of launcher/doctor); missing keys were not determined in time.
struct HostExam {
  std::vector<std::string> facts;
};
struct PairMeasured {
  uint32_t number = 0;
  uint32_t peer = 0;
  std::string trouble;          // a sentence; empty: both directions work
  std::string address;          // address of the peer that was reached
  int64_t latency_ns = 0;       // median round trip, from one of the pair; 0: not measured
  uint64_t bytes_a_second = 0;  // from here to the peer; 0: not measured
};
// The answer to HoldCommits.
struct CommitsHeld {
  uint64_t generation = 0, most = 0;
};
// The answer to ForwardSignal. Number 0: the agent itself got the signal.
struct SignalForwarded {
  uint32_t number = 0;
  int32_t signal = 0;
  uint32_t ranks = 0;  // number on this host that handle it
};
// The agent of training ranks got a signal that requests a stop after the step: SIGUSR1, in an
// elastic job also SIGTERM.
struct StopRequested {
  int32_t signal = 0;
};
// The answer to AskMemory: the resident bytes of the worker's own process.
struct MemoryReply {
  uint32_t rank = 0;
  uint64_t bytes = 0;
};
// A rank of this host has waited for a collective longer than the stall warning time.
struct StallReport {
  uint64_t generation = 0;
  uint32_t waiting = 0;           // the rank
  std::vector<uint32_t> awaited;  // missing ranks, as far as known
};
// Elastic jobs: how long a rank of this host has waited in a collective; 0: none waits long any
// more. Sent on changes.
struct GenerationIdle {
  uint64_t generation = 0;
  uint64_t idle_ms = 0;
};
// The answer to ExamineRanks, without ranks of another generation.
struct RanksExamined {
  uint32_t number = 0;
  uint64_t generation = 0;
  std::vector<RankFacts> ranks;
};
// The last message: no process, page or socket of the job is left on this host.
struct AgentGone {};
// Sent with AgentReady: path of hvdrun on this host, for side commands (side_command.h), and the
// address at which the agent will wait for a returning driver.
struct AgentPath {
  std::string hvdrun, resume_address;
};

// RankJoined of many ranks, merged by the tree: ranks first..first+count-1 per span.
struct RankSpan {
  uint32_t first = 0, count = 0;
  bool operator==(const RankSpan&) const = default;
};
struct RanksJoined {
  std::vector<RankSpan> spans;
};
// A host's message in a batch that goes up the tree; in order for each host.
struct TreeUpEntry {
  uint32_t host = 0;
  std::string message;  // an encoded ToDriver
};
struct TreeUp {
  std::vector<TreeUpEntry> entries;
};
// The agent lost its parent in the tree; it sends for itself and those below it over its own
// stream.
struct TreeCut {
  std::string reason;
};

// The worker records trace events as this rank of a generation from now on. This and the next
// message are sent only in jobs with a timeline.
struct TraceBegun {
  uint32_t rank = 0;  // the worker
  uint32_t world_rank = 0;
  uint64_t generation = 0;
  int64_t at_ns = 0;  // by the host's steady clock
};
// The records of a worker (runtime/trace/FORMAT.md), its stamps in nanoseconds of the host's steady
// clock.
struct TraceRecords {
  uint32_t rank = 0;  // the worker
  uint32_t world_rank = 0;
  uint64_t generation = 0;
  uint64_t lost = 0;  // number of records before these that were overwritten
  std::string records;
};

// The current activity of a worker, as seen from outside.
enum class RankActivity : uint8_t { kOutside = 0, kComputing, kWaiting, kStopped, kLeft };
// The counts of a worker's work since its generation began.
struct WorkerCounts {
  uint32_t worker = 0, rank = 0;
  RankActivity activity = RankActivity::kOutside;
  uint64_t operations = 0, bytes = 0, steps = 0, commits = 0;
  uint64_t last = 0;           // operations that it was the last of its host to submit
  int64_t waited_ns = 0;       // time that application threads waited for operations
  uint8_t collective = 0;      // hvd_collective of the last submitted operation
  std::string last_submitted;  // its name; empty: none
};
// The answer to AskCounts; generation 0: no world has begun on this host.
struct CountsReply {
  uint32_t number = 0;
  uint64_t generation = 0;
  int64_t at_ns = 0;  // by the host's steady clock
  std::vector<WorkerCounts> workers;
};
// py-spy's output for a worker, or for the Python that its command started.
struct WorkerStacks {
  uint32_t worker = 0;
  std::string text;    // empty: not available
  std::string reason;  // why not, a predicate without its subject
};
struct StacksReply {
  uint32_t number = 0;
  std::vector<WorkerStacks> workers;
};
// Observations of a host's workers that use another library's collectives, when all have been
// silent for half of the warning time. Sent repeatedly; once without ranks when one moves.
struct ScriptObserved {
  std::vector<ScriptObservation> ranks;
};
// Answers AskFlight. Number 0: unsolicited, after the end of a worker whose PyTorch had written a
// dump.
struct FlightReply {
  uint32_t number = 0;
  std::vector<FlightRecord>
      records;  // empty: no worker records, or none can be queried from outside
};
// Like TraceRecords: the current contents of a ring.
struct RingReply {
  uint32_t number = 0;
  uint32_t rank = 0;  // the worker
  uint32_t world_rank = 0;
  uint64_t generation = 0;
  std::string records;
};
struct RingsOver {
  uint32_t number = 0;
};
// Why places cannot be taken on this host: a sentence without its name.
struct PlacesRefused {
  std::string reason;
};
// A process of the other launcher has arrived, with its place and the number of places.
struct PlaceTaken {
  uint32_t place = 0, of = 0;
};

// What the agent knows of one worker.
struct WorkerSnapshot {
  uint32_t rank = 0;
  int32_t pid = 0;          // 0: not started
  uint8_t waiting = 0;      // for a generation
  uint64_t generation = 0;  // current; 0: none
};
// Answers TakeOver: the agent's complete state of its part of the job.
struct HostSnapshot {
  uint8_t started = 0;      // it has had StartJob
  uint64_t generation = 0;  // the last one begun here
  std::vector<WorkerSnapshot> workers;
  // Of the last generation.
  std::vector<RankLeft> left;
  std::vector<RankLost> lost;
  std::vector<WorkerExited> exited;
};

using ToAgent =
    std::variant<StartJob, BeginGeneration, BreakGeneration, SignalWorkers, FinishJob, WorkerInput,
                 KeyValue, ProbeConnectivity, LookAtCommand, TreeDown, Resend, AskTime, ExamineHost,
                 OpenProbe, MeasurePair, UseRelay, RelayOpen, RelayData, RelayClose, RelayCredit,
                 AwaitDriver, AddWorkers, SignalWorker, DismissWorker, HoldCommits, ActAtCommit,
                 TraceTaken, AskMemory, ExamineRanks, AskCounts, AskRings, AwaitPlaces,
                 MasterPortTaken, ForwardSignal, AskStacks, AskFlight, AwaitSuccessor, TakeOver,
                 OutputPrinted>;
using ToDriver =
    std::variant<AgentReady, WorkerStarted, WorkerNotStarted, RankJoined, RankLeft, RankLost,
                 WorkerExited, WorkerOutput, InputTaken, AgentNote, AgentGone, PutKey, WantKey,
                 ConnectivityProbed, CommandReport, TreeUp, TreeCut, RanksJoined, AgentPath,
                 TimeReply, HostExam, PairMeasured, RelayMeasured, RelayOpen, RelayData, RelayClose,
                 RelayCredit, AgentWarning, CommitsHeld, TraceBegun, TraceRecords, StopRequested,
                 MemoryReply, StallReport, RanksExamined, CountsReply, RingReply, RingsOver,
                 PlacesRefused, PlaceTaken, MasterPortTaken, SignalForwarded, GenerationIdle,
                 StacksReply, ScriptObserved, FlightReply, HostSnapshot>;

std::string EncodeToAgent(const ToAgent& message);
std::string EncodeToDriver(const ToDriver& message);
// kInvalidArgument unless the bytes are exactly one message.
Result<ToAgent> DecodeToAgent(std::string_view bytes);
Result<ToDriver> DecodeToDriver(std::string_view bytes);

// Bulk data: sent after control messages, in order among itself.
bool IsBulk(const ToAgent& message);
bool IsBulk(const ToDriver& message);

// Encodes WorkerOutput from two pieces without an intermediate copy; WorkerOutputView refers to the
// message.
std::string EncodeOutput(uint32_t rank, OutputStream stream, std::string_view first,
                         std::string_view second);
struct WorkerOutputView {
  uint32_t rank = 0;
  OutputStream stream = OutputStream::kStdout;
  std::string_view bytes;
};
// Nothing for another or an invalid message: use DecodeToDriver.
std::optional<WorkerOutputView> PeekOutput(std::string_view message);

// Encoding overhead of a WorkerOutput in bytes.
inline constexpr size_t kOutputOverhead = 10;

}  // namespace hvd

#endif  // HVD_LAUNCHER_WIRE_MESSAGES_H_
