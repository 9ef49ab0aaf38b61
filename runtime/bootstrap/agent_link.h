// AgentLink: the worker's end of the link (runtime/net/link.h). Thread-safe: one of the waiting
// threads reads and dispatches the messages of all.
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

// Connects this process to its agent.
class AgentConnector {
 public:
  virtual ~AgentConnector() = default;
  // A connected link on which the hello has been sent.
  virtual Result<UniqueFd> Open() = 0;
  // Whether to open a new link if the agent disappears without a message.
  virtual bool Reopens() const = 0;
  // For messages: "slot 3".
  virtual std::string who() const = 0;
};

// A generation that has begun.
struct BegunGeneration {
  LinkGeneration generation;
  UniqueFd page;
  std::vector<RankRun> layout;
};

class AgentLink {
 public:
  explicit AgentLink(AgentConnector& connector) : connector_(connector) {}

  // kAborted with the reason if the world cannot form, or not within `timeout` (<= 0: no limit);
  // kDismissed with the reason if it forms without this process; never kInProgress.
  Result<BegunGeneration> Join(Duration timeout);
  void Leave(uint64_t generation, TimePoint since);
  // Sends the request and waits for the segment in the reply.
  Result<ReceivedLink> AskForSegment(const LinkMessage& question);
  // Sends without waiting for a reply; an error if not connected.
  Status Send(const LinkMessage& message);
  Status Put(const std::string& key, const std::string& value);
  Result<std::string> Get(const std::string& key, Duration timeout);
  // Receives pending messages without blocking. Not ok: the agent is gone.
  Status PollAgent();
  // For a forked child; async-signal-safe.
  void CloseAfterFork() HVD_NO_THREAD_SAFETY_ANALYSIS { socket_.Reset(); }

 private:
  Status Connect() HVD_REQUIRES(mutex_);
  Status SendLocked(const LinkMessage& message) HVD_REQUIRES(mutex_);
  // Releases the mutex while it waits.
  Status Await(TimePoint deadline, const std::function<bool()>& ready) HVD_REQUIRES(mutex_);
  void ReceiveAll() HVD_REQUIRES(mutex_);
  void Handle(ReceivedLink received) HVD_REQUIRES(mutex_);
  void Lose(Status why) HVD_REQUIRES(mutex_);
  Result<BegunGeneration> AwaitGeneration(TimePoint start, Duration timeout) HVD_REQUIRES(mutex_);
  Status CheckGeneration() const HVD_REQUIRES(mutex_);

  AgentConnector& connector_;
  // One segment request at a time: replies carry no request id.
  Mutex asking_;
  Mutex mutex_;  // guards all below
  std::condition_variable_any arrived_;
  UniqueFd socket_
      HVD_GUARDED_BY(mutex_);  // connected on first use, kept for the life of the process
  bool reading_ HVD_GUARDED_BY(mutex_) = false;  // a thread sleeps on the socket, without the lock
  bool heard_ HVD_GUARDED_BY(mutex_) = false;    // a message has arrived since the last LinkJoin
  bool shares_memory_ HVD_GUARDED_BY(mutex_) = false;  // through segments that this agent allocated
  Status lost_ HVD_GUARDED_BY(mutex_);                 // why the socket was closed
  uint64_t generation_ HVD_GUARDED_BY(mutex_) = 0;     // the one this process is in; 0: none
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
