// AgentLink: the worker's end of the link (runtime/net/link.h), used by several threads at once:
// one that waits for something reads, and puts what is for the others where they find it.
#ifndef HVD_RUNTIME_BOOTSTRAP_AGENT_LINK_H_
#define HVD_RUNTIME_BOOTSTRAP_AGENT_LINK_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/net/link.h"

namespace hvd {

// How this process comes to its agent.
class AgentConnector {
 public:
  virtual ~AgentConnector() = default;
  // A connected link whose hello is said.
  virtual Result<UniqueFd> Open() = 0;
  // True when an agent that went away without a word is replaced by opening again.
  virtual bool Reopens() const = 0;
  // For messages: "slot 3".
  virtual std::string who() const = 0;
};

// A generation that began.
struct BegunGeneration {
  LinkGeneration generation;
  UniqueFd page;
  std::vector<RankRun> layout;
};

class AgentLink {
 public:
  explicit AgentLink(AgentConnector& connector) : connector_(connector) {}

  // kAborted with the reason when the world cannot form; kDismissed with the reason when it forms
  // without this process; kInProgress never: a `timeout` <= 0 is no
  // limit.
  Result<BegunGeneration> Join(Duration timeout);
  void Leave(uint64_t generation, TimePoint since);
  // Sends the question and waits for the segment it is answered by.
  Result<ReceivedLink> AskForSegment(const LinkMessage& question);
  // Connected or not, without waiting for an answer.
  Status Send(const LinkMessage& message);
  Status Put(const std::string& key, const std::string& value);
  Result<std::string> Get(const std::string& key, Duration timeout);
  // Takes in what has come, without blocking. Not ok: the agent is gone.
  Status PollAgent();
  // Async-signal-safe; in a forked child.
  void CloseAfterFork() HVD_NO_THREAD_SAFETY_ANALYSIS { socket_.Reset(); }

 private:
  Status Connect() HVD_REQUIRES(mutex_);
  Status SendLocked(const LinkMessage& message) HVD_REQUIRES(mutex_);
  // Lets go of the mutex while it waits.
  Status Await(TimePoint deadline, const std::function<bool()>& ready) HVD_REQUIRES(mutex_);
  void ReceiveAll() HVD_REQUIRES(mutex_);
  void Take(ReceivedLink received) HVD_REQUIRES(mutex_);
  void Lose(Status why) HVD_REQUIRES(mutex_);
  Result<BegunGeneration> AwaitGeneration(TimePoint start, Duration timeout) HVD_REQUIRES(mutex_);
  Status CheckGeneration() const HVD_REQUIRES(mutex_);

  AgentConnector& connector_;
  // One question for a segment at a time: answers carry no number of their question.
  Mutex asking_;
  Mutex mutex_;  // of all below
  std::condition_variable_any arrived_;
  UniqueFd socket_
      HVD_GUARDED_BY(mutex_);  // connected when first needed, kept for the life of the process
  bool reading_ HVD_GUARDED_BY(mutex_) = false;  // a thread sleeps on the socket, without the lock
  bool heard_ HVD_GUARDED_BY(mutex_) = false;    // something came since the last LinkJoin
  bool shares_memory_ HVD_GUARDED_BY(mutex_) = false;  // by segments that this agent gave
  Status lost_ HVD_GUARDED_BY(mutex_);                 // why there is no socket any more
  uint64_t generation_ HVD_GUARDED_BY(mutex_) = 0;     // this process is in it
  std::optional<BegunGeneration> begun_ HVD_GUARDED_BY(mutex_);
  std::optional<Status> cannot_begin_
      HVD_GUARDED_BY(mutex_);  // broken, or this worker is no longer needed
  uint64_t layout_generation_ HVD_GUARDED_BY(mutex_) = 0;
  std::vector<RankRun> layout_ HVD_GUARDED_BY(mutex_);
  uint64_t broken_generation_ HVD_GUARDED_BY(mutex_) = 0;
  std::string broken_reason_ HVD_GUARDED_BY(mutex_);
  std::deque<ReceivedLink> segments_ HVD_GUARDED_BY(mutex_);
  std::map<std::string, std::string> values_ HVD_GUARDED_BY(mutex_);  // of generation_
};

}  // namespace hvd

#endif  // HVD_RUNTIME_BOOTSTRAP_AGENT_LINK_H_
