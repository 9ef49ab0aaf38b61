// RankRecord: what a job knows about one of its workers: the state that it is in, and what belongs
// to that state. A plain value; JobState::Change changes what WorkerKind names.
#ifndef HVD_LAUNCHER_JOB_STATE_RANK_RECORD_H_
#define HVD_LAUNCHER_JOB_STATE_RANK_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>

#include "launcher/process/process_end.h"
#include "runtime/base/clock.h"

namespace hvd {

enum class WorkerState {
  kStarting,  // its agent was asked to start it
  kOutside,   // its process runs and is in no generation
  kInInit,    // it waits in hvd.init() for the next generation
  kMember,    // it is in a generation
  kLost,      // gone from its generation without a goodbye; its process may still run
  kEnded,     // its process is gone, or was never there
};

// The list of transitions.
constexpr bool MayFollow(WorkerState from, WorkerState to) {
  using enum WorkerState;
  switch (to) {
    case kStarting: return false;
    // Its process runs; no generation is to come for it; it said goodbye to its generation.
    case kOutside: return from == kStarting || from == kInInit || from == kMember;
    // It called hvd.init(), once more perhaps; where it was lost, as another program.
    case kInInit: return from != kEnded;
    case kMember: return from == kInInit;
    case kLost: return from == kMember;
    case kEnded: return true;
  }
  return false;
}

// Whether the job needs the worker.
enum class Stay {
  kNeeded,
  kLeaving,    // its slot is no longer part of the job; it leaves at a commit
  kDismissed,  // and was told so
};

// Of kInInit.
struct InitWait {
  TimePoint since{};
  bool is_spare = false;  // all places are taken, and the user was told of it, or will be
};

// It left its generation for good, with a goodbye or without.
struct Parting {
  int64_t stamp_ns = 0;         // by the clock of its host
  bool is_consequence = false;  // as in first_cause.h
};

// Of kLost, and afterwards.
struct Loss {
  bool when_asked = false;  // that was after the job asked it to end
  std::string reason;       // what the agent saw
  std::string doing;        // the same agent on its collectives: "; its last one was 'x'"
};

// Of kEnded, unless its process was never there or is gone with its host.
struct WorkerEnd : ProcessEnd {
  bool by_us = false;  // after the job asked it to end
  bool out_of_memory = false;
  std::string last_stderr;
  uint64_t commits = 0;  // that it passed in its life
};

// A worker: a process of the job. In a job of fixed size its number is its rank.
struct RankRecord {
  WorkerState state = WorkerState::kStarting;
  Stay stay = Stay::kNeeded;
  int32_t pid = 0;
  uint32_t rank = 0;               // in the generation that it was in last, or is meant for
  uint64_t in_generation = 0;      // 0: in none
  uint64_t first_generation = 0;   // that it was in; 0: in none yet
  InitWait init;                   // of kInInit
  std::optional<Parting> parting;  // from the generation that it was in last
  std::optional<Loss> loss;
  std::optional<WorkerEnd> end;
  std::optional<TimePoint> end_by;  // then it gets SIGKILL; max: it has
  bool forgiven = false;            // its end is no failure of the job
  bool awaited = false;             // it was gone while others waited for it in hvd.init()
  bool init_failed = false;         // because a rank was gone that it waited for
  bool has_slot = true;             // its host is listed with the slot that it is on

  bool running() const { return state != WorkerState::kStarting && !ended(); }
  bool waiting() const { return state == WorkerState::kInInit; }
  bool ended() const { return state == WorkerState::kEnded; }
  // Its process runs, or is about to, and was not lost.
  bool alive() const { return !ended() && !loss; }
  bool leaving() const { return stay != Stay::kNeeded; }
  bool dismissed() const { return stay == Stay::kDismissed; }
  // It has been in a generation, and so it has the state of the job.
  bool was_member() const { return first_generation != 0; }
  bool is_consequence() const { return parting && parting->is_consequence; }
  bool ended_by_us() const { return end && end->by_us; }
  // It failed on its own, and the failure was not forgiven.
  bool failed() const { return !ended_by_us() && !forgiven && (loss || (end && !end->ok())); }
};

}  // namespace hvd

#endif  // HVD_LAUNCHER_JOB_STATE_RANK_RECORD_H_
